#include "generate/generate.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"
#include "generate/literals.h"
#include "generate/places.h"
#include "generate/scope.h"
#include "hlo/verify.h"

namespace hloom::generate {
namespace {

constexpr std::uint64_t kArgumentsSeed = 0x5DEECE66D;

Random stream(std::uint64_t seed) { return Random(Random(seed).next()); }

// What the entry gives: the last value and others, the same one twice or a parameter among them.
Instruction* draw_root(Scope& s) {
  std::vector<Instruction*> results{s.values().back()};
  const std::int64_t more = s.random().of({0, 0, 1, 1, 2, 3, 5});
  for (std::int64_t n = 0; n < more; ++n) results.push_back(s.pick());
  if (results.size() == 1 && s.random().chance(60)) return results[0];
  Instruction* tuple = s.computation().add_tuple(results);
  return s.random().chance(10) ? s.computation().add_tuple({tuple, s.pick()}) : tuple;
}

void draw_layout(Draw& draw, Shape& shape) {
  Random& random = draw.random;
  if (shape.is_tuple()) {
    for (Shape& e : shape.elements()) draw_layout(draw, e);
    return;
  }
  if (draw.placed && random.chance(30)) draw_place(random, shape);
  if (shape.rank() < 2 || !random.chance(50)) return;
  Layout layout = shape.layout();
  random.shuffle(layout.minor_to_major);
  shape.set_layout(layout);
}

// Layouts of the border; inside a module without schedule the compiler chooses its own.
void draw_border(Draw& draw) {
  hlo::Computation& entry = *draw.module->entry();
  hlo::ModuleConfig& config = draw.module->config();
  const bool drawn = !draw.scheduled && (draw.placed || draw.random.chance(30));
  for (Instruction* p : entry.parameters()) {
    Shape shape = p->shape();
    if (drawn) draw_layout(draw, shape);
    p->set_shape(shape);
    config.entry_parameters.push_back(std::move(shape));
  }
  config.entry_result = entry.root()->shape();
  if (drawn) draw_layout(draw, config.entry_result);
  config.has_entry_layout = true;
}

// Results in the memory of parameters of the same shape.
void draw_donations(Draw& draw) {
  if (!draw.random.chance(50)) return;
  hlo::ModuleConfig& config = draw.module->config();
  std::vector<bool> taken(config.entry_parameters.size());
  for (const ShapeIndex& output : leaf_indices(config.entry_result)) {
    const Shape& result = *subshape(config.entry_result, output);
    for (std::size_t p = 0; p < taken.size(); ++p) {
      if (taken[p] || !(config.entry_parameters[p] == result) || !draw.random.chance(60)) continue;
      taken[p] = true;
      config.aliases.push_back({output, static_cast<std::int64_t>(p), {}, draw.random.chance(50)});
      break;
    }
  }
}

// Any order in which operands come first, and control predecessors.
void shuffle_order(Random& random, hlo::Computation& computation) {
  std::unordered_map<const Instruction*, std::int64_t> missing;
  std::vector<Instruction*> ready, order;
  for (Instruction& i : computation.instructions()) {
    missing[&i] = i.num_operands() + std::ssize(i.control_predecessors());
    if (missing[&i] == 0) ready.push_back(&i);
  }
  while (!ready.empty()) {
    const auto at = static_cast<std::size_t>(random.pick(0, static_cast<std::int64_t>(ready.size()) - 1));
    Instruction* next = ready[at];
    ready.erase(ready.begin() + static_cast<std::ptrdiff_t>(at));
    order.push_back(next);
    for (Instruction* user : next->users())
      if (--missing[user] == 0) ready.push_back(user);
    for (Instruction* after : next->control_successors())
      if (--missing[after] == 0) ready.push_back(after);
  }
  computation.set_order(order);
}

void schedule(Draw& draw) {
  draw.module->config().is_scheduled = true;
  for (hlo::Computation& c : draw.module->computations()) shuffle_order(draw.random, c);
}

// 2 to 4 of them.
void draw_devices(Draw& draw) {
  constexpr std::array<std::pair<std::int64_t, std::int64_t>, 8> kCounts = {{{1, 2}, {2, 1}, {1, 3}, {3, 1}, {1, 4}, {4, 1}, {2, 2}, {2, 2}}};
  const auto& [replicas, partitions] = kCounts[static_cast<std::size_t>(draw.random.pick(0, std::ssize(kCounts) - 1))];
  draw.module->config().replica_count = replicas;
  draw.module->config().num_partitions = partitions;
  draw.on_devices = true;
}

}  // namespace

bool is_wild(std::uint64_t seed) { return stream(seed).pick(0, 7) == 0; }

std::unique_ptr<hlo::Module> module(std::uint64_t seed, const Options& options) {
  auto made = std::make_unique<hlo::Module>("drawn_" + std::to_string(seed));
  Draw draw{stream(seed), made.get(), options.max_elements, false, false, false, 0, {}};
  draw.wild = draw.random.pick(0, 7) == 0;
  draw.scheduled = draw.random.chance(10);
  if (draw.random.chance(40)) draw.max_elements /= 10;
  if (draw.random.chance(5)) draw.max_elements *= 10;
  draw.steps_left = static_cast<int>(draw.random.pick(2, options.max_steps));

  made->set_entry(made->add_computation("main"));
  if (options.on_devices) draw_devices(draw);
  Scope scope(draw, *made->entry(), 0, true);
  scope.set_meets(true);
  while (scope.values().empty()) scope.make_new(scope.type(), scope.dims(draw.random.pick(0, 4)));
  const int steps = draw.steps_left;
  scope.steps(steps);
  made->entry()->set_root(draw_root(scope));
  made->remove_unreachable();
  draw.placed = draw.random.chance(12);
  if (draw.placed) draw_places(draw);
  draw_border(draw);
  draw_donations(draw);
  if (draw.scheduled) schedule(draw);
  made->sort();
  return made;
}

namespace {

std::vector<hlo::Literal> draw_arguments(const hlo::Module& module, Random random, bool wild) {
  std::vector<hlo::Literal> result;
  for (const Instruction* p : module.entry()->parameters())
    for (const Shape* leaf : leaves(p->shape()))
      result.push_back(leaf->is_array() ? numbers(*leaf, random, wild) : hlo::Literal(*leaf));
  return result;
}

}  // namespace

std::vector<hlo::Literal> arguments(const hlo::Module& module, std::uint64_t seed) {
  return draw_arguments(module, Random(seed ^ kArgumentsSeed), is_wild(seed));
}

std::vector<std::vector<hlo::Literal>> device_arguments(const hlo::Module& module, std::uint64_t seed) {
  std::vector<std::vector<hlo::Literal>> all{arguments(module, seed)};
  const std::int64_t devices = module.config().replica_count * module.config().num_partitions;
  Random random(~seed);
  while (std::ssize(all) < devices) all.push_back(draw_arguments(module, Random(random.next()), is_wild(seed)));
  return all;
}

}  // namespace hloom::generate
