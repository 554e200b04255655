#include "passes/assign_layouts.h"

#include <algorithm>
#include <map>

#include "passes/layout_choice.h"
#include "passes/make.h"

namespace hloom::passes {
namespace {

class Writer {
 public:
  explicit Writer(LayoutGraph& graph) : g_(graph) {}

  void run() {
    for (hlo::Computation* c : g_.computations)
      for (Instruction& i : c->instructions()) set_shape(i);
    for (const LayoutUse& use : g_.uses) match(use);
    for (hlo::Computation* c : g_.computations) {
      std::vector<Instruction*> present;
      for (Instruction& i : c->instructions()) present.push_back(&i);
      for (Instruction* i : present) drop(*i);
    }
  }

 private:
  const LayoutNode& node(int n) const { return g_.nodes[static_cast<std::size_t>(n)]; }

  Shape chosen(const Shape& shape, const std::vector<int>& leaves, std::size_t& next) const {
    if (shape.is_tuple()) {
      Shape whole = shape;
      for (Shape& e : whole.elements()) e = chosen(e, leaves, next);
      return whole;
    }
    const int leaf = next < leaves.size() ? leaves[next] : -1;
    ++next;
    return leaf < 0 ? shape : in_order(shape, node(leaf).order);
  }
  Shape chosen(const Shape& shape, const std::vector<int>& leaves) const {
    std::size_t next = 0;
    return chosen(shape, leaves, next);
  }

  void set_shape(Instruction& i) {
    const std::vector<int>& leaves = g_.leaves.at(&i);
    Shape shape = chosen(i.shape(), leaves);
    if (!(shape == i.shape())) {
      if (is(&i, Opcode::Constant) && shape.is_array())
        i.mutable_attr<hlo::ConstantAttr>().literal.set_shape_layout(shape.layout());
      i.set_shape(std::move(shape));
    }
    if (leaves.size() == 1 && leaves[0] >= 0 && node(leaves[0]).instruction == &i && !node(leaves[0]).reason.empty())
      i.mutable_annotations().decisions["layout"] = node(leaves[0]).reason;
  }

  // `i` with its leaves in the layouts of `wanted`, by copies where they are in others. Each is made once.
  Instruction* in_layouts(Instruction* i, const Shape& wanted) {
    if (i->shape() == wanted) return i;
    if (!wanted.is_tuple()) {
      if (is(i, Opcode::Copy) && i->operand(0)->shape() == wanted) return i->operand(0);
      std::vector<Instruction*>& made = copies_[i];
      const auto known = std::ranges::find(made, wanted, [](const Instruction* m) { return m->shape(); });
      if (known != made.end()) return *known;
      made.push_back(changed(i, wanted));
      return made.back();
    }
    std::vector<Instruction*> elements;
    for (std::size_t k = 0; k < wanted.elements().size(); ++k) {
      Instruction* element =
          is(i, Opcode::Tuple) ? i->operand(static_cast<std::int64_t>(k)) : Make(*i).element(i, static_cast<std::int64_t>(k));
      elements.push_back(in_layouts(element, wanted.elements()[k]));
    }
    return Make(*i).tuple(elements);
  }

  // A copy, or where an array is made from nothing another such.
  static Instruction* changed(Instruction* i, const Shape& wanted) {
    const bool from_nothing = is(i, Opcode::Iota) || (is(i, Opcode::Broadcast) && i->operand(0)->shape().rank() == 0);
    if (!from_nothing) return Make(*i).op(Opcode::Copy, wanted, {i});
    Instruction* again = i->parent()->add_clone(*i, i->operands());
    again->set_shape(wanted);
    return again;
  }

  void match(const LayoutUse& use) {
    Instruction* operand = use.user == nullptr ? use.computation->root() : use.user->operand(use.operand);
    std::vector<int> wanted = use.wanted;
    const std::vector<int>& has = g_.leaves.at(operand);
    // Only what has the same dimensions can lie the same.
    for (std::size_t k = 0; k < wanted.size(); ++k)
      if (wanted[k] >= 0 && (has[k] < 0 || node(has[k]).shape.dims() != node(wanted[k]).shape.dims())) wanted[k] = has[k];
    Instruction* matched = in_layouts(operand, chosen(operand->shape(), wanted));
    if (matched == operand) return;
    g_.leaves.emplace(matched, wanted);
    if (use.user == nullptr)
      use.computation->set_root(matched);
    else
      use.user->replace_operand(use.operand, matched);
  }

  // What moves nothing any more.
  static void drop(Instruction& i) {
    const bool copies = is(&i, Opcode::Copy) && i.shape() == i.operand(0)->shape();
    if (copies && i.shape().is_array()) i.parent()->replace_uses(&i, i.operand(0));
    if (is(&i, Opcode::Transpose) && lies_alike(i)) {
      Instruction* view = Make(i).op(Opcode::Bitcast, i.shape(), {i.operand(0)});
      view->mutable_annotations().decisions = i.annotations().decisions;
      i.parent()->replace_uses(&i, view);
    }
  }
  static bool lies_alike(const Instruction& transpose) {
    const Shape &from = transpose.operand(0)->shape(), &to = transpose.shape();
    if (!from.is_array() || !from.layout().is_plain() || !to.layout().is_plain()) return false;
    Order order;
    for (const std::int64_t d : order_of(to)) order.push_back(transpose.dimension(d));
    return order == order_of(from);
  }

  LayoutGraph& g_;
  std::map<const Instruction*, std::vector<Instruction*>> copies_;
};

}  // namespace

Expected<Changed> assign_layouts(hlo::Module& module) {
  if (module.config().is_scheduled) return Changed::No;
  LayoutGraph graph = layout_graph(module);
  if (graph.nodes.empty()) return Changed::No;
  choose_layouts(graph);
  const std::uint64_t before = hlo::fingerprint(module);
  Writer(graph).run();
  return hlo::fingerprint(module) == before ? Changed::No : Changed::Yes;
}

}  // namespace hloom::passes
