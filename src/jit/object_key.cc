#include "jit/object_key.h"

#include <llvm-c/Core.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Bitcode/BitcodeWriter.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/BLAKE3.h>
#include <llvm/Support/raw_ostream.h>

#include <sstream>

namespace hloom::jit {
namespace {

// To be raised when objects of old would no longer do though their IR is the same: what is called from them changed, or what an object holds.
constexpr int kVersion = 2;

// LLVM's library may be newer than its headers.
std::string llvm_version() {
  unsigned major = 0, minor = 0, patch = 0;
  LLVMGetVersion(&major, &minor, &patch);
  return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(patch);
}

std::string circumstances(const base::Target& target, Level level) {
  std::ostringstream text;
  text << kVersion << '\n' << llvm_version() << '\n' << static_cast<int>(level) << '\n'
       << target.triple << '\n' << target.cpu << '\n' << target.features << '\n' << target.vector_bytes << '\n'
       << target.vector_registers << '\n' << target.has_fma << target.has_masks << target.has_byte_products << '\n';
  return std::move(text).str();
}

ObjectKey hash(std::string_view first, std::string_view second) {
  llvm::BLAKE3 hasher;
  hasher.update(llvm::StringRef(first.data(), first.size()));
  hasher.update(llvm::StringRef(second.data(), second.size()));
  return hasher.final<32>();
}

}  // namespace

ObjectKey digest(std::string_view bytes) { return hash(bytes, {}); }

std::string to_hex(const ObjectKey& key) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const std::uint8_t byte : key) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

ObjectKey key_of(const llvm::Module& module, const base::Target& target, Level level) {
  llvm::SmallVector<char, 0> bitcode;
  llvm::raw_svector_ostream out(bitcode);
  llvm::WriteBitcodeToFile(module, out);
  return hash(circumstances(target, level), {bitcode.data(), bitcode.size()});
}

ObjectKey key_of(std::string_view kernel, const base::Target& target, Level level) {
  return hash(circumstances(target, level), kernel);
}

}  // namespace hloom::jit
