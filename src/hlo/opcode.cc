#include "hlo/opcode.h"

#include <array>
#include <string>
#include <unordered_map>

namespace hloom::hlo {
namespace {

struct Entry {
  std::string_view name;
  int arity;
  OpcodeKind kind;
};

constexpr std::array<Entry, kNumOpcodes> kEntries = {{
#define HLOOM_OPCODE(enumerator, text, arity, kind) {text, arity, OpcodeKind::kind},
#include "hlo/opcodes.def"
#undef HLOOM_OPCODE
}};

const Entry& entry(Opcode opcode) { return kEntries[static_cast<std::size_t>(opcode)]; }

}  // namespace

std::string_view name(Opcode opcode) { return entry(opcode).name; }

std::optional<Opcode> opcode_named(std::string_view text) {
  static const auto* const table = [] {
    auto* t = new std::unordered_map<std::string_view, Opcode>;
    for (int i = 0; i < kNumOpcodes; ++i) t->emplace(kEntries[static_cast<std::size_t>(i)].name, Opcode(i));
    return t;
  }();
  const auto found = table->find(text);
  if (found == table->end()) return std::nullopt;
  return found->second;
}

OpcodeKind kind(Opcode opcode) { return entry(opcode).kind; }
int arity(Opcode opcode) { return entry(opcode).arity; }
bool is_elementwise(Opcode opcode) {
  return kind(opcode) == OpcodeKind::Elementwise || opcode == Opcode::Copy;
}
std::ostream& operator<<(std::ostream& out, Opcode opcode) { return out << name(opcode); }

bool is_function(Opcode opcode) {
  switch (opcode) {
    case Opcode::Acos:
    case Opcode::Acosh:
    case Opcode::Asin:
    case Opcode::Asinh:
    case Opcode::Atan:
    case Opcode::Atan2:
    case Opcode::Atanh:
    case Opcode::Cbrt:
    case Opcode::Cosh:
    case Opcode::Cosine:
    case Opcode::Erf:
    case Opcode::Exponential:
    case Opcode::ExponentialMinusOne:
    case Opcode::Log:
    case Opcode::LogPlusOne:
    case Opcode::Logistic:
    case Opcode::Power:
    case Opcode::Sine:
    case Opcode::Sinh:
    case Opcode::Tan:
    case Opcode::Tanh: return true;
    default: return false;
  }
}

}  // namespace hloom::hlo
