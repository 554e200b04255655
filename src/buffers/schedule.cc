// A model of one computation: its instructions, the values that they make, and how many readers each value has left.
// In-place results and carried leaves are their operands' values living on. Computations that an instruction runs
// count with their own peak while it runs.
#include "buffers/schedule.h"

#include <algorithm>
#include <queue>
#include <unordered_map>

#include "buffers/in_place.h"
#include "buffers/steps.h"
#include "buffers/values.h"

namespace hloom::buffers {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

namespace {

class Model {
 public:
  explicit Model(const Computation& c) : c_(c) {
    for (const Instruction& i : c.instructions()) add(i);
    for (const Local v : locals_.at(c.root())) ++values_[v].readers;  // the caller's
  }

  std::size_t size() const { return nodes_.size(); }
  std::vector<Instruction*> instructions(const std::vector<int>& order) const {
    std::vector<Instruction*> result;
    for (const int n : order) result.push_back(const_cast<Instruction*>(nodes_[static_cast<std::size_t>(n)].i));
    return result;
  }
  std::vector<int> present_order() const {
    std::vector<int> order(nodes_.size());
    for (std::size_t n = 0; n < order.size(); ++n) order[n] = static_cast<int>(n);
    return order;
  }

  std::int64_t peak(const std::vector<int>& order) const {
    Run run(*this);
    for (const int n : order) run.step(n);
    return run.peak;
  }

  // Of what is ready, the instruction that lets go of most bytes net of those it makes; the present order among equals.
  std::vector<int> greedy_order() const {
    Run run(*this);
    std::vector<int> waiting(nodes_.size()), order;
    using Entry = std::pair<std::int64_t, int>;  // gain, minus the number
    std::priority_queue<Entry> ready;
    std::vector<bool> done(nodes_.size());
    const auto push = [&](int n) { ready.emplace(run.gain(n), -n); };
    for (std::size_t n = 0; n < nodes_.size(); ++n) {
      waiting[n] = nodes_[n].before;
      if (waiting[n] == 0) push(static_cast<int>(n));
    }
    while (!ready.empty()) {
      const auto [gain, minus] = ready.top();
      ready.pop();
      const int n = -minus;
      if (done[static_cast<std::size_t>(n)]) continue;
      if (run.gain(n) != gain) {
        push(n);
        continue;
      }
      done[static_cast<std::size_t>(n)] = true;
      order.push_back(n);
      run.step(n);
      for (const int next : nodes_[static_cast<std::size_t>(n)].after)
        if (--waiting[static_cast<std::size_t>(next)] == 0) push(next);
      // A value with one reader left makes that reader more attractive.
      for (const Local v : nodes_[static_cast<std::size_t>(n)].reads)
        if (run.left[v] == 1)
          for (const int reader : values_[v].by)
            if (!done[static_cast<std::size_t>(reader)] && waiting[static_cast<std::size_t>(reader)] == 0) push(reader);
    }
    return order;
  }

  // Operands right before their first user, those that make most first.
  std::vector<int> depth_first_order() const {
    std::vector<int> order, stack;
    std::vector<char> state(nodes_.size());
    const auto visit = [&](int start) {
      stack.push_back(start);
      while (!stack.empty()) {
        const int n = stack.back();
        char& s = state[static_cast<std::size_t>(n)];
        if (s != 0) {
          stack.pop_back();
          if (s == 1) order.push_back(n);
          s = 2;
          continue;
        }
        s = 1;
        std::vector<int> first = nodes_[static_cast<std::size_t>(n)].needs;
        std::ranges::stable_sort(first, {}, [&](int k) { return nodes_[static_cast<std::size_t>(k)].made_bytes; });
        for (const int k : first)
          if (state[static_cast<std::size_t>(k)] == 0) stack.push_back(k);
      }
    };
    visit(numbers_.at(c_.root()));
    for (std::size_t n = 0; n < nodes_.size(); ++n) visit(static_cast<int>(n));
    return order;
  }

 private:
  using Local = std::size_t;
  struct Node {
    const Instruction* i = nullptr;
    std::vector<Local> reads, makes;  // each once
    std::int64_t made_bytes = 0;
    std::int64_t inner_bytes = 0;  // of the computations that it runs
    int before = 0;
    std::vector<int> needs, after;
  };
  struct LocalValue {
    std::int64_t bytes = 0;
    int readers = 0;
    std::vector<int> by;
  };

  // A pass over an order with what is alive.
  struct Run {
    explicit Run(const Model& m) : model(m) {
      for (const LocalValue& v : m.values_) left.push_back(v.readers);
    }
    std::int64_t freed(int n) const {
      std::int64_t bytes = 0;
      for (const Local v : model.nodes_[static_cast<std::size_t>(n)].reads)
        if (left[v] == 1) bytes += model.values_[v].bytes;
      return bytes;
    }
    std::int64_t gain(int n) const { return freed(n) - model.nodes_[static_cast<std::size_t>(n)].made_bytes; }
    void step(int n) {
      const Node& node = model.nodes_[static_cast<std::size_t>(n)];
      now += node.made_bytes;
      peak = std::max(peak, now + node.inner_bytes);
      for (const Local v : node.reads)
        if (--left[v] == 0) now -= model.values_[v].bytes;
      for (const Local v : node.makes)
        if (left[v] == 0) now -= model.values_[v].bytes;
    }
    const Model& model;
    std::vector<int> left;
    std::int64_t now = 0, peak = 0;
  };

  Local make(std::int64_t bytes) {
    values_.push_back({bytes, 0, {}});
    return values_.size() - 1;
  }

  // The values of the leaves of `i`, made new or named again.
  std::vector<Local> leaves_of(const Instruction& i, Node& node) {
    std::vector<Local> result;
    if (i.opcode() == Opcode::While) return locals_.at(i.operand(0));
    if (i.opcode() == Opcode::GetTupleElement) {
      const auto& tuple = locals_.at(i.operand(0));
      const std::int64_t first = first_leaf(i.operand(0)->shape(), i.tuple_index());
      for (std::int64_t k = 0; k < num_leaves(i.shape()); ++k)
        result.push_back(tuple[static_cast<std::size_t>(first + k)]);
      return result;
    }
    if (i.opcode() == Opcode::Tuple) {
      for (const Instruction* operand : i.operands()) {
        const auto& part = locals_.at(operand);
        result.insert(result.end(), part.begin(), part.end());
      }
      return result;
    }
    const auto shapes = leaves(i.shape());
    if (is_alias(i) && locals_.at(i.operand(0)).size() == shapes.size()) return locals_.at(i.operand(0));
    const bool is_given = i.opcode() == Opcode::Parameter || i.opcode() == Opcode::Constant;
    const auto pairs = in_place_pairs(i);
    for (std::size_t k = 0; k < shapes.size(); ++k) {
      const auto pair = std::ranges::find(pairs, static_cast<std::int64_t>(k), &InPlacePair::result);
      if (pair != pairs.end()) {
        result.push_back(locals_.at(i.operand(pair->operand))[static_cast<std::size_t>(pair->operand_leaf)]);
        continue;
      }
      result.push_back(make(is_given ? 0 : leaf_bytes(*shapes[k])));
      node.makes.push_back(result.back());
      node.made_bytes += values_[result.back()].bytes;
    }
    return result;
  }

  void add(const Instruction& i) {
    const int number = static_cast<int>(nodes_.size());
    Node node;
    node.i = &i;
    for (const auto* before : {&i.operands(), &i.control_predecessors()})
      for (const Instruction* b : *before) {
        const int needed = numbers_.at(b);
        if (std::ranges::find(node.needs, needed) != node.needs.end()) continue;
        node.needs.push_back(needed);
        ++node.before;
        nodes_[static_cast<std::size_t>(needed)].after.push_back(number);
      }
    if (!is_alias(i))
      for (const Instruction* operand : i.operands())
        for (const Local v : locals_.at(operand))
          if (values_[v].by.empty() || values_[v].by.back() != number) {
            node.reads.push_back(v);
            values_[v].by.push_back(number);
            ++values_[v].readers;
          }
    for (const Computation* callee : step_computations(i))
      node.inner_bytes = std::max(node.inner_bytes, peak_bytes(*callee));
    std::vector<Local> made = leaves_of(i, node);
    locals_.emplace(&i, std::move(made));
    numbers_.emplace(&i, number);
    nodes_.push_back(std::move(node));
  }

  const Computation& c_;
  std::vector<Node> nodes_;
  std::vector<LocalValue> values_;
  std::unordered_map<const Instruction*, std::vector<Local>> locals_;
  std::unordered_map<const Instruction*, int> numbers_;
};

}  // namespace

std::int64_t peak_bytes(const Computation& c) {
  const Model model(c);
  return model.peak(model.present_order());
}

void schedule(hlo::Module& module) {
  std::vector<Computation*> order = step_computations(module);
  if (!module.config().is_scheduled) {
    for (Computation* c : order) c->sort();
    // Callees first, since callers count with their peaks.
    for (auto c = order.rbegin(); c != order.rend(); ++c) {
      const Model model(**c);
      std::vector<int> best = model.present_order();
      std::int64_t least = model.peak(best);
      for (const std::vector<int>& candidate : {model.greedy_order(), model.depth_first_order()}) {
        if (candidate.size() != model.size() || model.peak(candidate) >= least) continue;
        best = candidate;
        least = model.peak(candidate);
      }
      (*c)->set_order(model.instructions(best));
    }
  }
  module.config().is_scheduled = true;
}

}  // namespace hloom::buffers
