#include "jit/target.h"

#include <unistd.h>

#include <llvm/ADT/StringMap.h>
#include <llvm/ADT/StringSet.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Target/TargetOptions.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/TargetParser/Triple.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/fail.h"
#include "base/try.h"

namespace hloom::jit {
namespace {

Expected<const llvm::Target*> find_target(const std::string& triple) {
  [[maybe_unused]] static const bool initialised = [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    return true;
  }();
  std::string reason;
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(llvm::Triple(triple), reason);
  if (target == nullptr) return fail(Code::InvalidArgument, "target ", triple, ": ", reason);
  return target;
}

// Instructions for systems, transactions and secrets, which no code generator uses of itself and virtual machines often
// lack.
const llvm::StringSet<> kOfSystems{
    "cldemote", "clflushopt", "clwb",   "clzero", "enqcmd",  "fsgsbase", "hreset", "invpcid", "kl",     "lwp",
    "mwaitx",   "pconfig",    "pku",    "ptwrite", "rdpid",  "rdpru",    "rtm",    "serialize", "sgx",  "shstk",
    "tsxldtrk", "uintr",      "usermsr", "waitpkg", "wbnoinvd", "widekl", "xsave", "xsavec",  "xsaveopt", "xsaves"};

std::string host_features() {
  std::vector<std::string> words;
  for (const auto& feature : llvm::sys::getHostCPUFeatures())
    words.push_back((feature.second ? "+" : "-") + feature.first().str());
  std::ranges::sort(words);  // LLVM's map has no order, and cache keys need one
  std::string result;
  for (const std::string& word : words) result += (result.empty() ? "" : ",") + word;
  return result;
}

std::int64_t cache_bytes(int name, std::int64_t otherwise) {
  const long bytes = sysconf(name);
  return bytes > 0 ? bytes : otherwise;
}

// Fills in what the registers and caches say. Features are asked of LLVM so that a named processor works as well.
Expected<base::Target> describe(base::Target target) {
  const llvm::Target* llvm_target = TRY(find_target(target.triple));
  const std::unique_ptr<llvm::MCSubtargetInfo> info(
      llvm_target->createMCSubtargetInfo(llvm::Triple(target.triple), target.cpu, target.features));
  const auto has = [&](const char* feature) { return info->checkFeatures(feature); };
  if (llvm::Triple(target.triple).isX86()) {
    target.vector_bytes = has("+avx512f") ? 64 : has("+avx") ? 32 : 16;
    target.vector_registers = has("+avx512f") ? 32 : 16;
    target.has_fma = has("+fma");
    target.has_masks = has("+avx512vl") && has("+avx512bw");
    target.has_byte_products = target.vector_bytes == 64 ? target.has_masks && has("+avx512vnni") : has("+avxvnni");
  } else {
    target.has_fma = true;
    target.vector_registers = 32;
  }
  target.l1_bytes = cache_bytes(_SC_LEVEL1_DCACHE_SIZE, target.l1_bytes);
  target.l2_bytes = cache_bytes(_SC_LEVEL2_CACHE_SIZE, target.l2_bytes);
  target.l3_bytes = cache_bytes(_SC_LEVEL3_CACHE_SIZE, target.l3_bytes);
  return target;
}

}  // namespace

const base::Target& host_target() {
  static const base::Target target = [] {
    base::Target host;
    host.triple = llvm::sys::getProcessTriple();
    host.cpu = llvm::sys::getHostCPUName().str();
    host.features = host_features();
    return *describe(std::move(host));
  }();
  return target;
}

Expected<base::Target> target_named(std::string_view cpu) {
  base::Target target;
  target.triple = llvm::sys::getProcessTriple();
  target.cpu = cpu;
  const llvm::Target* llvm_target = TRY(find_target(target.triple));
  const std::unique_ptr<llvm::MCSubtargetInfo> info(
      llvm_target->createMCSubtargetInfo(llvm::Triple(target.triple), "", ""));
  if (!info->isCPUStringValid(target.cpu)) return fail(Code::InvalidArgument, "no processor is called '", cpu, "'");
  return describe(std::move(target));
}

Expected<base::Target> target_or_host(std::string_view cpu) {
  if (cpu.empty()) return host_target();
  return target_named(cpu);
}

// What LLVM asks processors about are instructions, not how best to use them.
Expected<std::string> required_features(const base::Target& target) {
  const llvm::Target* llvm_target = TRY(find_target(target.triple));
  const std::unique_ptr<llvm::MCSubtargetInfo> info(
      llvm_target->createMCSubtargetInfo(llvm::Triple(target.triple), target.cpu, target.features));
  std::set<std::string> required;
  for (const auto& feature : llvm::sys::getHostCPUFeatures())
    if (!kOfSystems.contains(feature.first()) && info->checkFeatures("+" + feature.first().str()))
      required.insert(feature.first().str());
  std::string list;
  for (const std::string& name : required) list += (list.empty() ? "" : ",") + name;
  return list;
}

std::string missing_features(std::string_view required) {
  const llvm::StringMap<bool> here = llvm::sys::getHostCPUFeatures();
  std::string missing;
  while (!required.empty()) {
    const std::string_view name = required.substr(0, required.find(','));
    required.remove_prefix(std::min(name.size() + 1, required.size()));
    if (!here.lookup(llvm::StringRef(name.data(), name.size())))
      missing.append(missing.empty() ? "" : ", ").append(name);
  }
  return missing;
}

Expected<> check_runs_here(const base::Target& target) {
  const std::string required = TRY(required_features(target));
  const std::string missing = missing_features(required);
  if (missing.empty()) return {};
  return fail(Code::FailedPrecondition, "code for ", target.cpu, " needs ", missing, "; this machine is ",
              host_target().cpu);
}

Expected<std::unique_ptr<llvm::TargetMachine>> make_target_machine(const base::Target& target, Level level) {
  const llvm::Target* llvm_target = TRY(find_target(target.triple));
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  options.EmulatedTLS = false;
  // Some processors' tuning splits 512-bit vectors into halves, which costs up to 1.9 times.
  std::string features = target.features;
  if (llvm::Triple(target.triple).isX86()) features += features.empty() ? "-prefer-256-bit" : ",-prefer-256-bit";
  std::unique_ptr<llvm::TargetMachine> machine(llvm_target->createTargetMachine(
      llvm::Triple(target.triple), target.cpu, features, options, llvm::Reloc::PIC_, llvm::CodeModel::Small,
      static_cast<llvm::CodeGenOptLevel>(level), /*JIT=*/true));
  if (machine == nullptr) return fail(Code::InvalidArgument, "target ", target.triple, ": LLVM has no code generator");
  return machine;
}

}  // namespace hloom::jit
