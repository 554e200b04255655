// Where layouts say that arrays lie: memory spaces and splits (H736).
#include "hlo/verify_rules.h"

namespace hloom::hlo {
namespace {

// Arena, collective memory, mapped host memory, constants, host offload.
bool is_known_space(std::int64_t space) { return space >= 0 && space <= 5 && space != 4; }

// Cuts rise, and leave a part on each side.
bool is_good_split(const Layout::Split& split, const Shape& leaf) {
  if (split.dimension < 0 || split.dimension >= leaf.rank() || split.indices.empty()) return false;
  std::int64_t before = 0;
  for (const std::int64_t at : split.indices) {
    if (at <= before) return false;
    before = at;
  }
  return before < leaf.dim(split.dimension);
}

void check(const Shape& shape, const Instruction& i, Report& report) {
  for (const Shape* leaf : leaves(shape)) {
    if (!leaf->is_array() || !leaf->has_layout() || leaf->layout().extra == nullptr) continue;
    const Layout::Extra& parts = leaf->layout().parts();
    if (!is_known_space(parts.memory_space))
      report.add("H736", i, "memory space ", parts.memory_space, " has no meaning here; known are 0, 1, 2, 3 and 5");
    for (const Layout::Split& split : parts.splits)
      if (!is_good_split(split, *leaf))
        report.add("H736", i, "the split of dimension ", split.dimension, " in ", hloom::to_string(*leaf),
                   ": cuts must rise between 0 and the dimension's size");
  }
}

}  // namespace

void verify_placement(const Instruction& i, Report& report) { check(i.shape(), i, report); }

void verify_entry_placement(const Module& module, Report& report) {
  const ModuleConfig& config = module.config();
  if (!config.has_entry_layout) return;
  const auto& parameters = module.entry()->parameters();
  for (std::size_t n = 0; n < parameters.size() && n < config.entry_parameters.size(); ++n)
    if (!(config.entry_parameters[n] == parameters[n]->shape())) check(config.entry_parameters[n], *parameters[n], report);
  const Instruction& root = *module.entry()->root();
  if (!(config.entry_result == root.shape())) check(config.entry_result, root, report);
}

}  // namespace hloom::hlo
