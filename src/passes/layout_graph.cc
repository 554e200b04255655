#include "passes/layout_graph.h"

#include <algorithm>
#include <numeric>

#include "passes/match.h"
#include "passes/placement.h"

namespace hloom::passes {

Order order_of(const Shape& array) {
  Order order;
  const std::vector<std::int64_t>& dims = array.layout().minor_to_major;
  for (auto d = dims.rbegin(); d != dims.rend(); ++d)
    if (array.dim(*d) != 1) order.push_back(*d);
  return order;
}

Shape in_order(Shape array, const Order& order) {
  if (order_of(array) == order) return array;
  Layout layout = Layout::descending(array.rank());
  if (!std::ranges::is_sorted(order)) {
    layout.minor_to_major.assign(order.rbegin(), order.rend());
    for (std::int64_t d = array.rank(); d-- > 0;)
      if (array.dim(d) == 1) layout.minor_to_major.push_back(d);
  }
  const Placement placement = placement_of(array);
  array.set_layout(std::move(layout));
  place(array, placement);
  return array;
}

Order LayoutEdge::sub_order(const Order& super_order) const {
  Order order;
  for (const std::int64_t d : super_order)
    if (to_sub[static_cast<std::size_t>(d)] >= 0) order.push_back(to_sub[static_cast<std::size_t>(d)]);
  return order;
}

Order LayoutEdge::super_order(const Order& sub_order) const {
  Order order;
  for (const std::int64_t d : sub_order) order.push_back(to_super[static_cast<std::size_t>(d)]);
  return order;
}

bool LayoutEdge::is_whole() const {
  return std::ranges::count_if(to_sub, [](std::int64_t d) { return d >= 0; }) ==
         static_cast<std::ptrdiff_t>(to_sub.size());
}

namespace {

// Iterations of a loop, and how much more its body counts.
constexpr double kLoopWeight = 16;
constexpr double kFreeBytes = 0.01;  // of arrays that are made anew wherever they are used

bool is_made_anew(const Instruction& i) {
  if (is(&i, Opcode::Iota)) return true;
  if (is(&i, Opcode::Broadcast)) return i.operand(0)->shape().num_elements() == 1;
  return is(&i, Opcode::Constant) && i.shape().is_array() && i.shape().num_elements() > 0 && hlo::is_splat(i.literal());
}

class GraphMaker {
 public:
  explicit GraphMaker(hlo::Module& module) : module_(module) {}

  LayoutGraph make() {
    hlo::Computation& entry = *module_.entry();
    std::vector<std::vector<int>> parameters;
    for (const Instruction* p : entry.parameters()) parameters.push_back(make_leaves(*p, p->shape(), true));
    const std::vector<int> root = visit(entry, parameters, 1);
    std::vector<int> wanted;
    for (const int leaf : root) wanted.push_back(leaf < 0 ? -1 : demand(node(leaf)));
    use(nullptr, entry, 0, root, wanted, 1);
    return shared_ ? LayoutGraph() : std::move(g_);
  }

 private:
  LayoutNode& node(int n) { return g_.nodes[static_cast<std::size_t>(n)]; }

  int add_node(const Instruction* i, const Shape& shape, bool fixed) {
    g_.nodes.push_back({i, shape, order_of(shape), fixed, {}, {}, {}});
    return static_cast<int>(g_.nodes.size()) - 1;
  }
  // That an array lies as it was found.
  int demand(const LayoutNode& found) {
    const Shape shape = found.shape;
    return add_node(nullptr, shape, true);
  }
  int demand_row_major(const LayoutNode& found) {
    Shape shape = found.shape;
    Order order = order_of(shape);
    std::ranges::sort(order);
    return add_node(nullptr, in_order(std::move(shape), order), true);
  }

  void leaves_of(const Instruction& i, const Shape& shape, bool fixed, std::vector<int>& leaves) {
    for (const Shape& e : shape.elements()) leaves_of(i, e, fixed, leaves);
    if (shape.is_tuple()) return;
    const bool plain = shape.is_array() && shape.has_layout();
    leaves.push_back(plain ? add_node(&i, shape, fixed || !shape.layout().is_plain()) : -1);
  }
  std::vector<int> make_leaves(const Instruction& i, const Shape& shape, bool fixed) {
    std::vector<int> leaves;
    leaves_of(i, shape, fixed, leaves);
    return leaves;
  }

  // `dims`: of each dimension of sub, that of super, or -1 if there it is one element.
  void connect(int super, int sub, const std::vector<std::int64_t>& dims, double bytes) {
    if (super < 0 || sub < 0 || super == sub) return;
    LayoutEdge e{super, sub, dims, {}, bytes};
    const Shape &from = node(super).shape, &to = node(sub).shape;
    e.to_sub.assign(static_cast<std::size_t>(from.rank()), -1);
    for (std::size_t d = 0; d < dims.size(); ++d) {
      const std::int64_t there = dims[d];
      if (there < 0 || to.dim(static_cast<std::int64_t>(d)) == 1 || from.dim(there) == 1)
        e.to_super[d] = -1;
      else
        e.to_sub[static_cast<std::size_t>(there)] = static_cast<std::int64_t>(d);
    }
    // A dimension that only one of the two has more than one element of can lie anywhere: it says nothing.
    const auto number = static_cast<int>(g_.edges.size());
    node(super).edges.push_back(number);
    node(sub).edges.push_back(number);
    g_.edges.push_back(std::move(e));
  }
  static std::vector<std::int64_t> same_dims(std::int64_t rank) {
    std::vector<std::int64_t> dims(static_cast<std::size_t>(rank));
    std::iota(dims.begin(), dims.end(), 0);
    return dims;
  }
  double moved(int a, int b) {
    for (const int n : {a, b})
      if (node(n).instruction != nullptr && is_made_anew(*node(n).instruction)) return kFreeBytes;
    return static_cast<double>(std::min(node(a).shape.size_bytes(), node(b).shape.size_bytes()));
  }
  void same(int a, int b, double weight) {
    if (a < 0 || b < 0 || node(a).shape.rank() != node(b).shape.rank()) return;
    // What has fewer dimensions of several elements is the part.
    if (order_of(node(a).shape).size() < order_of(node(b).shape).size()) std::swap(a, b);
    connect(a, b, same_dims(node(a).shape.rank()), moved(a, b) * weight);
  }
  // The leaves of an operand, or of a root, and how they have to lie.
  void use(Instruction* user, hlo::Computation& c, std::int64_t operand, const std::vector<int>& leaves,
           const std::vector<int>& wanted, double weight) {
    for (std::size_t k = 0; k < leaves.size() && k < wanted.size(); ++k) same(leaves[k], wanted[k], weight);
    g_.uses.push_back({user, &c, operand, wanted});
  }

  std::vector<int> visit(hlo::Computation& c, const std::vector<std::vector<int>>& parameters, double weight) {
    if (!visited_.emplace(&c, true).second) shared_ = true;
    if (shared_) return {};
    for (Instruction& i : c.instructions()) {
      g_.leaves[&i] = visit(i, parameters, weight);
      if (shared_) return {};
    }
    g_.computations.push_back(&c);
    return g_.leaves[c.root()];
  }

  const std::vector<int>& of(const Instruction* i) { return g_.leaves[i]; }
  int one(const Instruction* i) { return of(i).empty() ? -1 : of(i)[0]; }

  std::vector<int> visit(Instruction& i, const std::vector<std::vector<int>>& parameters, double weight) {
    switch (i.opcode()) {
      case Opcode::Parameter: return parameters[static_cast<std::size_t>(i.parameter_number())];
      case Opcode::Tuple: {
        std::vector<int> leaves;
        for (const Instruction* o : i.operands()) leaves.insert(leaves.end(), of(o).begin(), of(o).end());
        return leaves;
      }
      case Opcode::GetTupleElement: return element(i);
      case Opcode::While: return visit_while(i, weight);
      case Opcode::Conditional: return visit_conditional(i, weight);
      default: break;
    }
    if (!i.shape().is_array() && !is(&i, Opcode::Reduce)) return pin(i, weight);
    return visit_array(i, weight);
  }

  std::vector<int> element(const Instruction& i) {
    const Shape& tuple = i.operand(0)->shape();
    std::size_t first = 0;
    const auto count = [](const auto& self, const Shape& s) -> std::size_t {
      if (!s.is_tuple()) return 1;
      std::size_t n = 0;
      for (const Shape& e : s.elements()) n += self(self, e);
      return n;
    };
    for (std::int64_t k = 0; k < i.tuple_index(); ++k) first += count(count, tuple.element(k));
    const auto from = of(i.operand(0)).begin() + static_cast<std::ptrdiff_t>(first);
    return {from, from + static_cast<std::ptrdiff_t>(count(count, i.shape()))};
  }

  // What is carried lies the same before, in and after the loop.
  std::vector<int> visit_while(Instruction& i, double weight) {
    const std::vector<int> carried = make_leaves(i, i.shape(), false);
    use(&i, *i.parent(), 0, of(i.operand(0)), carried, weight);
    visit(*i.condition(), {carried}, weight * kLoopWeight);
    const std::vector<int> next = visit(*i.body(), {carried}, weight * kLoopWeight);
    use(nullptr, *i.body(), 0, next, carried, weight * kLoopWeight);
    return carried;
  }
  std::vector<int> visit_conditional(Instruction& i, double weight) {
    const std::vector<int> joined = make_leaves(i, i.shape(), false);
    for (std::size_t k = 0; k < i.called().size(); ++k) {
      hlo::Computation& branch = *i.called()[k];
      const std::vector<int> argument = make_leaves(*branch.parameter(0), branch.parameter(0)->shape(), false);
      use(&i, *i.parent(), static_cast<std::int64_t>(k) + 1, of(i.operand(static_cast<std::int64_t>(k) + 1)), argument, weight);
      const std::vector<int> result = visit(branch, {argument}, weight);
      use(nullptr, branch, 0, result, joined, weight);
    }
    return joined;
  }

  // Operands and results lie as they were found: what takes whole arrays, and what is left to others.
  std::vector<int> pin(Instruction& i, double weight) {
    for (std::int64_t k = 0; k < i.num_operands(); ++k) {
      std::vector<int> wanted;
      for (const int leaf : of(i.operand(k))) wanted.push_back(leaf < 0 ? -1 : demand(node(leaf)));
      use(&i, *i.parent(), k, of(i.operand(k)), wanted, weight);
    }
    return make_leaves(i, i.shape(), true);
  }

  void operand_like_result(Instruction& i, std::int64_t k, int result, double weight) {
    const int operand = one(i.operand(k));
    if (operand < 0 || node(operand).shape.rank() == 0) return;
    use(&i, *i.parent(), k, {operand}, {result}, weight);
  }

  std::vector<int> visit_array(Instruction& i, double weight) {
    switch (i.opcode()) {
      case Opcode::Broadcast: return visit_broadcast(i, weight);
      case Opcode::Reduce: return visit_reduce(i, weight);
      case Opcode::Transpose: return visit_transpose(i, weight);
      case Opcode::Reshape: return visit_reshape(i, weight);
      case Opcode::Copy: return visit_copy(i, weight);
      case Opcode::Dot: return visit_dot(i, weight);
      case Opcode::Iota:
      case Opcode::Constant: return make_leaves(i, i.shape(), false);
      case Opcode::Slice:
      case Opcode::DynamicSlice:
      case Opcode::Pad:
      case Opcode::Reverse: return visit_like(i, 1, weight);
      case Opcode::DynamicUpdateSlice: return visit_like(i, 2, weight);
      case Opcode::Concatenate: return visit_like(i, i.num_operands(), weight);
      default: break;
    }
    if (hlo::kind(i.opcode()) == hlo::OpcodeKind::Elementwise && !is(&i, Opcode::Map)) return visit_like(i, i.num_operands(), weight);
    return pin(i, weight);
  }

  // The first operands lie as the result does.
  std::vector<int> visit_like(Instruction& i, std::int64_t operands, double weight) {
    const std::vector<int> result = make_leaves(i, i.shape(), false);
    for (std::int64_t k = 0; k < operands; ++k) operand_like_result(i, k, result[0], weight);
    return result;
  }
  std::vector<int> visit_broadcast(Instruction& i, double weight) {
    const std::vector<int> result = make_leaves(i, i.shape(), false);
    const int operand = one(i.operand(0));
    if (operand >= 0 && result[0] >= 0)
      connect(result[0], operand, {i.dimensions().begin(), i.dimensions().end()}, moved(result[0], operand) * weight);
    return result;
  }
  std::vector<int> visit_transpose(Instruction& i, double weight) {
    const std::vector<int> result = make_leaves(i, i.shape(), false);
    const int operand = one(i.operand(0));
    if (operand >= 0 && result[0] >= 0)
      connect(operand, result[0], {i.dimensions().begin(), i.dimensions().end()}, moved(result[0], operand) * weight);
    return result;
  }
  // A sum over the last dimension goes by lanes along it, any other along what is kept: these should lie innermost.
  std::vector<int> visit_reduce(Instruction& i, double weight) {
    const std::vector<int> results = make_leaves(i, i.shape(), false);
    for (std::int64_t k = 0; k < i.num_operands() / 2; ++k) {
      const int operand = one(i.operand(k));
      if (operand < 0) continue;
      LayoutNode& n = node(operand);
      std::vector<std::int64_t> kept;
      const auto reduced = [&](std::int64_t d) { return std::ranges::find(i.dimensions(), d) != i.dimensions().end(); };
      std::int64_t last = n.shape.rank() - 1;
      while (last > 0 && n.shape.dim(last) == 1) --last;
      for (std::int64_t d = 0; d < n.shape.rank(); ++d) {
        if (!reduced(d)) kept.push_back(d);
        if (d != last && (reduced(d) || reduced(last)))
          add_minor_cost(n, d, 2 * static_cast<double>(n.shape.size_bytes()) * weight);
      }
      const int result = results[static_cast<std::size_t>(k)];
      if (result >= 0) connect(operand, result, kept, moved(operand, result) * weight);
      // Operands of one reduce are walked together.
      if (k > 0) same(one(i.operand(0)), operand, weight);
    }
    return results;
  }
  static void add_minor_cost(LayoutNode& n, std::int64_t d, double bytes) {
    n.minor_cost.resize(static_cast<std::size_t>(n.shape.rank()));
    n.minor_cost[static_cast<std::size_t>(d)] += bytes;
  }
  // Where only dimensions of one element come or go, the others keep their order; else both sides are row-major.
  std::vector<int> visit_reshape(Instruction& i, double weight) {
    const int operand = one(i.operand(0));
    if (operand < 0 || !node(operand).shape.layout().is_plain()) return pin(i, weight);
    const Shape& from = node(operand).shape;
    if (without_units(from.dims()) != without_units(i.shape().dims())) {
      use(&i, *i.parent(), 0, {operand}, {demand_row_major(node(operand))}, weight);
      return make_leaves(i, i.shape(), true);
    }
    const std::vector<int> result = make_leaves(i, i.shape(), false);
    std::vector<std::int64_t> dims(static_cast<std::size_t>(i.shape().rank()), -1);
    std::int64_t there = 0;
    for (std::int64_t d = 0; d < i.shape().rank(); ++d) {
      if (i.shape().dim(d) == 1) continue;
      while (node(operand).shape.dim(there) == 1) ++there;
      dims[static_cast<std::size_t>(d)] = there++;
    }
    connect(operand, result[0], dims, moved(operand, result[0]) * weight);
    return result;
  }
  // One that was asked for stays.
  std::vector<int> visit_copy(Instruction& i, double weight) {
    if (!i.operand(0)->shape().is_array()) return pin(i, weight);
    const bool asked = !i.shape().layout().is_plain() || !std::ranges::is_sorted(order_of(i.shape()));
    const std::vector<int> result = make_leaves(i, i.shape(), asked);
    same(one(i.operand(0)), result[0], weight);
    return result;
  }
  // Operands are read and the result is written along any dimension but a batch one.
  std::vector<int> visit_dot(Instruction& i, double weight) {
    const auto& dot = i.attr<hlo::DotAttr>();
    const std::vector<int> result = make_leaves(i, i.shape(), false);
    const auto batches = [&](int n, const Dims& dims) {
      if (n < 0) return;
      for (const std::int64_t d : dims)
        add_minor_cost(node(n), d, 2 * static_cast<double>(node(n).shape.size_bytes()) * weight);
    };
    batches(one(i.operand(0)), dot.lhs_batch);
    batches(one(i.operand(1)), dot.rhs_batch);
    Dims leading;
    for (std::size_t d = 0; d < dot.lhs_batch.size(); ++d) leading.push_back(static_cast<std::int64_t>(d));
    batches(result[0], leading);
    return result;
  }

  hlo::Module& module_;
  LayoutGraph g_;
  std::unordered_map<const hlo::Computation*, bool> visited_;
  bool shared_ = false;
};

}  // namespace

LayoutGraph layout_graph(hlo::Module& module) { return GraphMaker(module).make(); }

}  // namespace hloom::passes
