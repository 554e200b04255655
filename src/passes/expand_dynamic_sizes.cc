#include "passes/expand_dynamic_sizes.h"

#include <algorithm>
#include <unordered_map>

#include "base/fail.h"
#include "base/try.h"
#include "passes/dynamic_reshape.h"
#include "passes/liveness.h"

namespace hloom::passes {
namespace {

std::int64_t num_dynamic(const Shape& leaf) {
  std::int64_t n = 0;
  for (std::int64_t d = 0; d < leaf.rank(); ++d) n += leaf.is_dynamic_dim(d);
  return n;
}

bool is_about_sizes(const Instruction& i) {
  return is(&i, Opcode::GetDimensionSize) || is(&i, Opcode::SetDimensionSize) || is(&i, Opcode::DynamicReshape);
}

/// What a computation took and gave before it was changed.
struct Border {
  std::vector<Shape> parameters;
  Shape result;
};

/// Inside the program a value with dynamic leaves goes in and out of computations as one tuple: its elements, or itself
/// if it is an array, and then its sizes, leaf by leaf.
Shape packed(const Shape& shape) {
  std::vector<Shape> elements;
  if (shape.is_tuple())
    for (const Shape& e : shape.elements()) elements.push_back(with_bounds(e));
  else
    elements.push_back(with_bounds(shape));
  for (const Shape* leaf : leaves(shape))
    for (std::int64_t k = 0; k < num_dynamic(*leaf); ++k) elements.push_back(Shape::scalar(DType::S32));
  return Shape::tuple(std::move(elements));
}

class DynamicSizes {
 public:
  explicit DynamicSizes(hlo::Module& module) : module_(module) {
    for (const hlo::Computation& c : module.computations()) {
      Border border;
      for (const Instruction* p : c.parameters()) border.parameters.push_back(p->shape());
      border.result = c.root()->shape();
      borders_.emplace(&c, std::move(border));
    }
  }

  Expected<> run() {
    std::vector<hlo::Computation*> computations;
    for (hlo::Computation& c : module_.computations()) computations.push_back(&c);
    for (hlo::Computation* c : computations) TRY(run(*c));
    return {};
  }

 private:
  using Leaves = std::vector<DimSizes>;

  Expected<> run(hlo::Computation& c) {
    const bool is_entry = &c == module_.entry();
    const std::vector<Instruction*> order = c.post_order();
    const Border& border = borders_.at(&c);
    if (is_entry)
      take_entry_parameters(c);
    else
      for (Instruction* p : c.parameters()) take_parameter(*p, border.parameters[static_cast<std::size_t>(p->parameter_number())]);
    for (Instruction* i : order)
      if (!is(i, Opcode::Parameter)) TRY(visit(*i));
    if (!is_dynamic(border.result)) return {};
    if (is_entry)
      give_entry_results(c);
    else
      c.set_root(pack(c.root(), border.result));
    return {};
  }

  // --- Borders -------------------------------------------------------------------------------------------------------

  void take_parameter(Instruction& p, const Shape& shape) {
    if (!is_dynamic(shape)) return;
    const std::vector<Instruction*> users = p.users();
    p.set_shape(packed(shape));
    const bool was_root = p.is_root();
    Instruction* value = unpack(&p, shape);
    redirect(users, &p, value);
    if (was_root) p.parent()->set_root(value);
  }

  static void redirect(const std::vector<Instruction*>& users, const Instruction* from, Instruction* to) {
    for (Instruction* user : users)
      for (std::int64_t k = 0; k < user->num_operands(); ++k)
        if (user->operand(k) == from) user->replace_operand(k, to);
  }

  Instruction* unpack(Instruction* whole, const Shape& shape) {
    // New elements: those that are there read what was there.
    const auto element = [&](std::int64_t k) { return whole->parent()->add_get_tuple_element(whole, k, whole->name()); };
    const std::int64_t own = shape.is_tuple() ? std::ssize(shape.elements()) : 1;
    std::int64_t next = own;
    Leaves sizes;
    for (const Shape* leaf : leaves(shape)) {
      DimSizes dims(static_cast<std::size_t>(leaf->rank()), nullptr);
      for (std::int64_t d = 0; d < leaf->rank(); ++d)
        if (leaf->is_dynamic_dim(d)) dims[static_cast<std::size_t>(d)] = element(next++);
      sizes.push_back(std::move(dims));
    }
    std::vector<Instruction*> elements;
    for (std::int64_t k = 0; k < own; ++k) elements.push_back(element(k));
    Instruction* value = shape.is_tuple() ? Make(*whole).tuple(elements) : elements[0];
    sizes_[value] = std::move(sizes);
    return value;
  }

  // The value and the sizes that `shape` leaves open; where it is not dynamic itself those are the bounds.
  Instruction* pack(Instruction* value, const Shape& shape) {
    Make make(*value);
    std::vector<Instruction*> elements;
    if (shape.is_tuple())
      for (std::int64_t k = 0; k < std::ssize(shape.elements()); ++k) elements.push_back(make.element(value, k));
    else
      elements.push_back(value);
    const Leaves sizes = of(value);
    const auto all = leaves(shape);
    for (std::size_t l = 0; l < all.size(); ++l)
      for (std::int64_t d = 0; d < all[l]->rank(); ++d)
        if (all[l]->is_dynamic_dim(d)) elements.push_back(size_of(make, sizes[l], *all[l], d));
    return make.tuple(elements);
  }

  static Instruction* size_of(Make& make, const DimSizes& sizes, const Shape& leaf, std::int64_t d) {
    Instruction* size = sizes[static_cast<std::size_t>(d)];
    return size != nullptr ? size : make.integer(DType::S32, leaf.dim(d));
  }

  void take_entry_parameters(hlo::Computation& c) {
    const std::vector<Instruction*> parameters = c.parameters();
    for (Instruction* p : parameters) {
      const Shape shape = p->shape();
      if (!is_dynamic(shape)) continue;
      p->set_shape(with_bounds(shape));
      module_.config().entry_parameters[static_cast<std::size_t>(p->parameter_number())] =
          with_bounds(module_.config().entry_parameters[static_cast<std::size_t>(p->parameter_number())]);
      Leaves sizes;
      for (const Shape* leaf : leaves(shape)) sizes.push_back(take_sizes(c, *p, *leaf));
      sizes_[p] = std::move(sizes);
    }
  }

  DimSizes take_sizes(hlo::Computation& c, const Instruction& p, const Shape& leaf) {
    DimSizes sizes(static_cast<std::size_t>(leaf.rank()), nullptr);
    if (!leaf.has_dynamic_dims()) return sizes;
    const Shape shape = Shape::array(DType::S32, {num_dynamic(leaf)});
    Instruction* given = c.add_parameter(std::ssize(c.parameters()), shape, p.name() + "_sizes");
    module_.config().entry_parameters.push_back(shape);
    Make make(p);
    std::int64_t next = 0;
    for (std::int64_t d = 0; d < leaf.rank(); ++d) {
      if (!leaf.is_dynamic_dim(d)) continue;
      Instruction* size = make.reshape(make.slice(given, {{next}, {next + 1}, {1}}), {});
      sizes[static_cast<std::size_t>(d)] = checked_size(make, size, 0, leaf.dim(d));
      ++next;
    }
    return sizes;
  }

  void give_entry_results(hlo::Computation& c) {
    Instruction* root = c.root();
    Make make(*root);
    const Leaves sizes = of(root);
    const Shape shape = borders_.at(&c).result;
    std::vector<Instruction*> size_vectors;
    std::size_t next = 0;
    std::vector<Instruction*> elements;
    if (shape.is_tuple())
      for (std::int64_t k = 0; k < std::ssize(shape.elements()); ++k)
        elements.push_back(result(make, make.element(root, k), shape.element(k), sizes, next, size_vectors));
    else
      elements.push_back(result(make, root, shape, sizes, next, size_vectors));
    elements.insert(elements.end(), size_vectors.begin(), size_vectors.end());
    Instruction* tuple = make.tuple(elements);
    c.set_root(tuple);
    hlo::ModuleConfig& config = module_.config();
    std::vector<Shape> entry = shape.is_tuple() ? config.entry_result.elements() : std::vector<Shape>{config.entry_result};
    for (Shape& e : entry) e = with_bounds(e);
    for (const Instruction* vector : size_vectors) entry.push_back(vector->shape());
    config.entry_result = Shape::tuple(std::move(entry));
    if (!shape.is_tuple())
      for (hlo::InputOutputAlias& alias : config.aliases) alias.output = {0};
  }

  // The value with zeros past its sizes, which are appended.
  Instruction* result(Make& make, Instruction* value, const Shape& shape, const Leaves& sizes, std::size_t& next,
                      std::vector<Instruction*>& size_vectors) {
    if (shape.is_tuple()) {
      std::vector<Instruction*> elements;
      for (std::int64_t k = 0; k < std::ssize(shape.elements()); ++k)
        elements.push_back(result(make, make.element(value, k), shape.element(k), sizes, next, size_vectors));
      return make.tuple(elements);
    }
    const DimSizes& own = sizes[next++];
    if (!shape.is_array() || !shape.has_dynamic_dims()) return value;
    std::vector<Instruction*> scalars;
    for (std::int64_t d = 0; d < shape.rank(); ++d)
      if (shape.is_dynamic_dim(d)) scalars.push_back(make.reshape(size_of(make, own, shape, d), {1}));
    Instruction* vector = scalars[0];
    if (scalars.size() > 1) {
      vector = make.op(Opcode::Concatenate, Shape::array(DType::S32, {std::ssize(scalars)}), scalars);
      vector->set_dimensions({0});
    }
    size_vectors.push_back(vector);
    return masked(make, value, own, make.zeros(Shape::scalar(shape.dtype())));
  }

  // --- Instructions --------------------------------------------------------------------------------------------------

  Leaves of(const Instruction* i) const {
    if (const auto found = sizes_.find(i); found != sizes_.end()) return found->second;
    Leaves none;
    for (const Shape* leaf : leaves(i->shape())) none.emplace_back(static_cast<std::size_t>(leaf->is_array() ? leaf->rank() : 0), nullptr);
    return none;
  }
  bool has_sizes(const Instruction* i) const { return sizes_.contains(i); }

  Expected<> visit(Instruction& i) {
    const bool takes = std::ranges::any_of(i.operands(), [&](const Instruction* o) { return has_sizes(o); });
    const Shape shape = i.shape();
    switch (i.opcode()) {
      case Opcode::Tuple: return tuple(i);
      case Opcode::GetTupleElement: return element(i);
      case Opcode::While: return control(i, {i.body()->parameter(0)});
      case Opcode::Conditional: {
        std::vector<Instruction*> parameters = {nullptr};
        for (const hlo::Computation* branch : i.called()) parameters.push_back(branch->parameter(0));
        return control(i, parameters);
      }
      case Opcode::Call:
      case Opcode::Fusion: return control(i, i.called(0)->parameters());
      default: break;
    }
    if (!takes && !is_dynamic(shape) && !is_about_sizes(i)) return {};
    if (is(&i, Opcode::OptBarrier) && shape.is_tuple()) return barrier(i);
    const Sized done = TRY(apply_sizes(i, [&](const Instruction* o) { return of(o)[0]; }));
    return replace(i, shape, done.value, done.sizes);
  }

  // Sizes of what is not dynamic by its shape are its dimensions.
  Expected<> replace(Instruction& i, const Shape& shape, Instruction* with, Leaves sizes) {
    if (!compatible(with->shape(), with_bounds(shape)))
      return fail(Code::Unimplemented, i.name(), ": no code yet for ", i.opcode(), " with sizes as in ", shape);
    const auto all = leaves(shape);
    bool any = false;
    for (std::size_t l = 0; l < all.size(); ++l)
      for (std::int64_t d = 0; d < all[l]->rank(); ++d) {
        Instruction*& size = sizes[l][static_cast<std::size_t>(d)];
        if (!all[l]->is_dynamic_dim(d) && size != nullptr)
          return fail(Code::Unimplemented, i.name(), ": dimension ", d, " has a size at run time, but its shape, ", *all[l],
                      ", says otherwise");
        any = any || size != nullptr;
      }
    // Sizes belong to an instruction, so the same array with others is another one.
    if (std::ranges::find(i.operands(), with) != i.operands().end())
      with = Make(i).op(Opcode::Bitcast, with->shape(), {with});
    if (with != &i) i.parent()->replace_uses(&i, with);
    if (any) sizes_[with] = std::move(sizes);
    return {};
  }

  Expected<> tuple(Instruction& i) {
    Leaves all;
    bool any = false;
    for (const Instruction* operand : i.operands()) {
      any = any || has_sizes(operand);
      const Leaves own = of(operand);
      all.insert(all.end(), own.begin(), own.end());
    }
    i.set_shape(with_bounds(i.shape()));
    if (any) sizes_[&i] = std::move(all);
    return {};
  }

  Expected<> element(Instruction& i) {
    i.set_shape(with_bounds(i.shape()));
    if (!has_sizes(i.operand(0))) return {};
    std::size_t first = 0;
    for (std::int64_t k = 0; k < i.tuple_index(); ++k)
      first += static_cast<std::size_t>(num_leaves(i.operand(0)->shape().element(k)));
    const Leaves all = of(i.operand(0));
    const auto from = all.begin() + static_cast<std::ptrdiff_t>(first);
    Leaves own(from, from + num_leaves(i.shape()));
    const bool any = std::ranges::any_of(own, [](const DimSizes& sizes) {
      return std::ranges::any_of(sizes, [](const Instruction* s) { return s != nullptr; });
    });
    if (any) sizes_[&i] = std::move(own);
    return {};
  }

  // The sizes go through the barrier too.
  Expected<> barrier(Instruction& i) {
    Instruction* whole = i.operand(0);
    const Shape shape = i.shape();
    Make make(i);
    Instruction* joined = pack(whole, shape);
    Instruction* behind = make.op(Opcode::OptBarrier, joined->shape(), {joined});
    Instruction* value = unpack(behind, shape);
    i.parent()->replace_uses(&i, value);
    return {};
  }

  // What calls computations: operand k as `parameters[k]` was (null: as it is), the result as theirs is.
  Expected<> control(Instruction& i, const std::vector<Instruction*>& parameters) {
    for (std::int64_t k = 0; k < i.num_operands(); ++k) {
      const Instruction* p = parameters[static_cast<std::size_t>(k)];
      if (p == nullptr) continue;
      const Shape& wanted = borders_.at(p->parent()).parameters[static_cast<std::size_t>(p->parameter_number())];
      if (is_dynamic(wanted))
        i.replace_operand(k, pack(i.operand(k), wanted));
      else if (has_sizes(i.operand(k)))
        return fail(Code::Unimplemented, i.name(), ": operand ", k, " has run-time sizes, which ", p->name(), " has not");
    }
    // The result as the computation gives it: flags of bounds may differ.
    const hlo::Computation& gives = is(&i, Opcode::While) ? *i.body() : *i.called(0);
    const Shape& given = borders_.at(&gives).result;
    if (!is_dynamic(given)) return {};
    const bool was_root = i.is_root();
    const std::vector<Instruction*> users = i.users();
    i.set_shape(packed(given));
    Instruction* value = unpack(&i, given);
    redirect(users, &i, value);
    if (was_root) i.parent()->set_root(value);
    return {};
  }

  hlo::Module& module_;
  std::unordered_map<const hlo::Computation*, Border> borders_;
  std::unordered_map<const Instruction*, Leaves> sizes_;
};

bool has_dynamic_sizes(const hlo::Module& module) {
  for (const hlo::Computation& c : module.computations())
    for (const Instruction& i : c.instructions())
      if (is_dynamic(i.shape()) || is_about_sizes(i)) return true;
  return false;
}

}  // namespace

Expected<Changed> expand_dynamic_sizes(hlo::Module& module) {
  if (!has_dynamic_sizes(module)) return Changed::No;
  TRY(DynamicSizes(module).run());
  // Rules leave instructions behind whose shapes no longer fit.
  Liveness liveness(module);
  for (hlo::Computation& c : module.computations()) remove_dead_instructions(c, liveness);
  return Changed::Yes;
}

}  // namespace hloom::passes
