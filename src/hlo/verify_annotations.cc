// Tokens (H725), buffers (H726), shardings (H727), composites (H733), domains (H734), accuracy (H735).
#include <algorithm>
#include <set>

#include "hlo/verify_rules.h"

namespace hloom::hlo {
namespace {

bool holds(const Shape& s, DType type) {
  if (s.dtype() == type) return true;
  return s.is_tuple() && std::ranges::any_of(s.elements(), [&](const Shape& e) { return holds(e, type); });
}

bool passes_values_on(Opcode opcode) {
  switch (opcode) {
    case Opcode::AsyncDone:
    case Opcode::AsyncStart:
    case Opcode::AsyncUpdate:
    case Opcode::Call:
    case Opcode::Conditional:
    case Opcode::CustomCall:
    case Opcode::Domain:
    case Opcode::GetTupleElement:
    case Opcode::OptBarrier:
    case Opcode::Parameter:
    case Opcode::Tuple:
    case Opcode::While: return true;
    default: return false;
  }
}

bool takes_tokens(Opcode opcode) {
  switch (opcode) {
    case Opcode::AddDependency:
    case Opcode::AfterAll:
    case Opcode::Infeed:
    case Opcode::Outfeed:
    case Opcode::Recv:
    case Opcode::RecvDone:
    case Opcode::Send:
    case Opcode::SendDone: return true;
    default: return passes_values_on(opcode);
  }
}

void check_tokens(const Instruction& i, Report& report) {
  if (takes_tokens(i.opcode())) return;
  for (const Instruction* operand : i.operands())
    if (holds(operand->shape(), DType::Token))
      report.add("H725", i, i.opcode(), " may not take the token of ", operand->name());
  if (holds(i.shape(), DType::Token)) report.add("H725", i, i.opcode(), " may not give a token");
}

// Custom calls that name this value in an alias write to it.
bool writes_to(const Instruction& user, const Instruction& value) {
  const auto* call = user.attributes().get_if<CustomCallAttr>();
  return call != nullptr && std::ranges::any_of(call->aliasing, [&](const Aliasing& a) {
           return a.operand >= 0 && a.operand < user.num_operands() && user.operand(a.operand) == &value;
         });
}

void check_buffers(const Instruction& i, Report& report) {
  if (!holds(i.shape(), DType::Buffer)) return;
  if (!passes_values_on(i.opcode())) report.add("H726", i, i.opcode(), " may not give a buffer");
  if (i.opcode() == Opcode::Parameter && i.parent() == i.module().entry())
    report.add("H726", i, "is a buffer, which may not cross the entry's boundary");
  std::set<const Instruction*> writers;
  for (const Instruction* user : i.users()) {
    if (!passes_values_on(user->opcode())) report.add("H726", *user, "may not take the buffer ", i.name());
    if (i.shape().dtype() == DType::Buffer && writes_to(*user, i)) writers.insert(user);
  }
  if (writers.size() > 1) report.add("H726", i, "has ", writers.size(), " writers, may have one");
}

std::optional<std::int64_t> product(const std::vector<std::int64_t>& factors) {
  std::int64_t result = 1;
  for (const std::int64_t f : factors)
    if (f < 1 || __builtin_mul_overflow(result, f, &result)) return std::nullopt;
  return result;
}

std::string tiled_fault(const Sharding& s, const Shape& shape, std::int64_t partitions) {
  const auto count = product(s.tile_dims);
  if (!count) return "the tile grid is empty or too large";
  const std::int64_t subgroups =
      (s.last_tile_dim_replicate ? 1 : 0) + static_cast<std::int64_t>(s.last_tile_dims.size());
  if (shape.is_array() && static_cast<std::int64_t>(s.tile_dims.size()) - subgroups != shape.rank())
    return "the tile grid has another rank than " + to_string(shape, false);
  const auto devices = s.iota ? product(s.iota->dims) : std::optional(static_cast<std::int64_t>(s.devices.size()));
  if (devices != count) return "the tile grid and its devices differ in number";
  if (partitions > 1 && *count > partitions)
    return "it names " + std::to_string(*count) + " devices of " + std::to_string(partitions);
  std::set<std::int64_t> seen;
  for (const std::int64_t d : s.devices)
    if (d < 0 || !seen.insert(d).second) return "device " + std::to_string(d) + " is named twice or negative";
  return {};
}

std::string named_fault(const Sharding& s, const Shape& shape) {
  if (s.has_dims && shape.is_array() && static_cast<std::int64_t>(s.dims.size()) != shape.rank())
    return "it has another rank than " + to_string(shape, false);
  std::set<std::string_view> names;
  for (const auto& [axis, size] : s.mesh.axes)
    if (size < 1 || !names.insert(axis).second) return "axis '" + axis + "' is named twice or of size below 1";
  const auto known = [&](const std::vector<MeshAxis>& axes) {
    return std::ranges::all_of(axes, [&](const MeshAxis& a) { return names.contains(a.name); });
  };
  bool all_known = known(s.replicated_axes) && known(s.manual_axes) && known(s.unreduced_axes);
  for (const Sharding::Dim& d : s.dims) all_known = all_known && known(d.axes);
  return all_known ? "" : "it names an axis that the mesh lacks";
}

std::string sharding_fault(const Sharding& s, const Shape& shape, std::int64_t partitions) {
  switch (s.kind) {
    case Sharding::Kind::Tuple: {
      const std::vector<const Shape*> parts = leaves(shape);
      if (!shape.is_tuple()) return "it is a tuple's";
      if (s.elements.size() != parts.size() && !(parts.empty() && s.elements.size() == 1))
        return "it has " + std::to_string(s.elements.size()) + " parts for " + std::to_string(parts.size()) + " leaves";
      for (std::size_t k = 0; k < parts.size(); ++k)
        if (std::string fault = sharding_fault(s.elements[k], *parts[k], partitions); !fault.empty()) return fault;
      return {};
    }
    case Sharding::Kind::Tiled: return tiled_fault(s, shape, partitions);
    case Sharding::Kind::Named: return named_fault(s, shape);
    case Sharding::Kind::Maximal:
    case Sharding::Kind::NamedMaximal: return s.device < 0 ? "its device is negative" : "";
    case Sharding::Kind::Replicated:
    case Sharding::Kind::Manual:
    case Sharding::Kind::Unknown:
    case Sharding::Kind::Unreduced: return {};
  }
  return {};
}

void check_sharding(const Instruction& i, Report& report) {
  if (!i.annotations().sharding) return;
  const std::int64_t partitions = i.module().config().num_partitions;
  if (const std::string fault = sharding_fault(*i.annotations().sharding, i.shape(), partitions); !fault.empty())
    report.add("H727", i, "its sharding does not fit: ", fault);
}

void check_composite(const Instruction& i, Report& report) {
  if (i.opcode() != Opcode::Call || !i.attr<CallAttr>().is_composite) return;
  const StringMap& map = i.annotations().frontend_attributes;
  if (const auto found = map.find("composite.name"); found == map.end() || found->second.empty())
    report.add("H733", i, "a composite needs the frontend attribute composite.name");
  const auto version = map.find("composite.version");
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (version != map.end() && (version->second.empty() || !std::ranges::all_of(version->second, is_digit)))
    report.add("H733", i, "composite.version must be a number from 0 on, found \"", version->second, "\"");
}

bool has_accuracy(Opcode opcode) {
  if (opcode == Opcode::Rsqrt || opcode == Opcode::Sqrt) return true;
  return is_function(opcode) && opcode != Opcode::Atan2 && opcode != Opcode::Power;
}

void check_accuracy(const Instruction& i, Report& report) {
  const auto& accuracy = i.annotations().result_accuracy;
  if (!accuracy) return;
  if (!has_accuracy(i.opcode())) report.add("H735", i, i.opcode(), " takes no result_accuracy");
  if (!(accuracy->atol >= 0) || !(accuracy->rtol >= 0) || accuracy->ulps < 0)
    report.add("H735", i, "tolerances must be at least 0");
}

}  // namespace

void verify_annotations(const Instruction& i, Report& report) {
  check_tokens(i, report);
  check_buffers(i, report);
  check_sharding(i, report);
  check_composite(i, report);
  if (const auto* domain = i.attributes().get_if<DomainAttr>(); domain != nullptr && domain->kind != "sharding")
    report.add("H734", i, "domain kind \"", domain->kind, "\" is not known, only \"sharding\"");
  check_accuracy(i, report);
  verify_custom_call(i, report);
}

}  // namespace hloom::hlo
