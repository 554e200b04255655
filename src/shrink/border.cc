// Nothing but the computation: no donations, schedule, layouts, annotations.
#include "shrink/step.h"

namespace hloom::shrink {
namespace {

void plain_layouts(Shape& shape) {
  for (Shape& e : shape.elements()) plain_layouts(e);
  if (shape.is_array() && shape.has_layout()) shape.set_layout(Layout::descending(shape.rank()));
}

bool forget_layouts(Program& p) {
  for (Computation& c : p.module->computations())
    for (Instruction& i : c.instructions()) {
      Shape shape = i.shape();
      plain_layouts(shape);
      i.set_shape(std::move(shape));
    }
  for (Shape& s : p.module->config().entry_parameters) plain_layouts(s);
  plain_layouts(p.module->config().entry_result);
  return true;
}

bool forget_annotations(Program& p) {
  for (Computation& c : p.module->computations())
    for (Instruction& i : c.instructions())
      if (i.has_annotations()) i.mutable_annotations() = {};
  p.module->config().tables = {};
  p.module->config().frontend_attributes.clear();
  return true;
}

bool forget_control_edges(Program& p) {
  for (Computation& c : p.module->computations())
    for (Instruction& i : c.instructions()) i.drop_control_edges();
  return true;
}

}  // namespace

Steps plainer_border(const Program& program) {
  Steps steps{{"no annotations", forget_annotations},
              {"no layouts", forget_layouts},
              {"no control edges", forget_control_edges}};
  const hlo::ModuleConfig& config = program.module->config();
  if (config.is_scheduled)
    steps.push_back({"no schedule", [](Program& p) { return p.module->config().is_scheduled = false, true; }});
  for (std::size_t n = 0; n < config.aliases.size(); ++n)
    steps.push_back({"a donation less", [n](Program& p) {
                       auto& aliases = p.module->config().aliases;
                       aliases.erase(aliases.begin() + static_cast<std::ptrdiff_t>(n));
                       return true;
                     }});
  if (!config.donors.empty())
    steps.push_back({"no donors", [](Program& p) { return p.module->config().donors.clear(), true; }});
  return steps;
}

}  // namespace hloom::shrink
