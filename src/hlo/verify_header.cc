// The module's header against its entry: layouts (H206), aliases and donors (H205, H732).
#include <set>

#include "hlo/verify_rules.h"

namespace hloom::hlo {
namespace {

using Place = std::pair<std::int64_t, ShapeIndex>;

std::string to_string(const ShapeIndex& index) {
  std::string text = "{";
  for (const std::int64_t i : index) text += (text.size() > 1 ? "," : "") + std::to_string(i);
  return text + "}";
}

const Shape* parameter_shape(const Module& module, const Place& place) {
  const auto& parameters = module.entry()->parameters();
  if (place.first < 0 || place.first >= static_cast<std::int64_t>(parameters.size())) return nullptr;
  return subshape(module.entry()->parameter(place.first)->shape(), place.second);
}

// Bytes of leaves whose sizes are known to fit; others are reported with their instruction.
bool same_sizes(const Shape& a, const Shape& b) {
  if (compatible(a, b)) return true;
  const auto bytes = [](const Shape& s) {
    const auto count = s.is_array() ? s.element_count() : std::nullopt;
    return count ? static_cast<__int128>(*count) * byte_width(s.dtype()) : -1;
  };
  return bytes(a) >= 0 && bytes(a) == bytes(b);
}

void check_layouts(const Module& module, Report& report) {
  const ModuleConfig& config = module.config();
  if (!config.has_entry_layout) return;
  const auto& parameters = module.entry()->parameters();
  if (config.entry_parameters.size() != parameters.size())
    return report.add("H206", module, "entry_computation_layout has ", config.entry_parameters.size(),
                      " parameters, the entry ", parameters.size());
  for (std::size_t n = 0; n < parameters.size(); ++n)
    if (!compatible(config.entry_parameters[n], parameters[n]->shape()))
      report.add("H705", *parameters[n], "is ", parameters[n]->shape(), ", in entry_computation_layout ",
                 config.entry_parameters[n]);
  const Instruction& root = *module.entry()->root();
  if (!compatible(config.entry_result, root.shape()))
    report.add("H705", root, "is ", root.shape(), ", the result in entry_computation_layout ", config.entry_result);
}

}  // namespace

void verify_header(const Module& module, Report& report) {
  check_layouts(module, report);
  const ModuleConfig& config = module.config();
  if (config.replica_count < 1 || config.num_partitions < 1)
    report.add("H722", module, "replica_count ", config.replica_count, " and num_partitions ", config.num_partitions,
               " must be at least 1");
  std::set<Place> taken;
  std::set<ShapeIndex> outputs;
  for (const InputOutputAlias& a : config.aliases) {
    const Place place{a.parameter, a.parameter_index};
    const Shape* from = parameter_shape(module, place);
    const Shape* to = subshape(module.entry()->root()->shape(), a.output);
    if (from == nullptr || to == nullptr) {
      report.add("H205", module, "input_output_alias names ", to_string(a.output), ": (", a.parameter, ", ",
                 to_string(a.parameter_index), "), which is no place");
      continue;
    }
    if (!same_sizes(*from, *to))
      report.add("H732", module, "input_output_alias joins ", *to, " and ", *from, " of different size");
    if (!taken.insert(place).second)
      report.add("H732", module, "parameter ", a.parameter, " ", to_string(a.parameter_index), " is aliased twice");
    if (!outputs.insert(a.output).second)
      report.add("H732", module, "output ", to_string(a.output), " is aliased twice");
  }
  for (const BufferDonor& d : config.donors) {
    const Place place{d.parameter, d.parameter_index};
    if (parameter_shape(module, place) == nullptr)
      report.add("H205", module, "buffer_donor names (", d.parameter, ", ", to_string(d.parameter_index),
                 "), which is no place");
    else if (!taken.insert(place).second)
      report.add("H732", module, "parameter ", d.parameter, " ", to_string(d.parameter_index),
                 " is donated twice, or aliased as well");
  }
}

}  // namespace hloom::hlo
