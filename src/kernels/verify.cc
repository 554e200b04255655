#include "kernels/verify.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "base/fail.h"
#include "base/try.h"
#include "kernels/varying.h"

namespace hloom::kernels {
namespace {

using hlo::Opcode;

constexpr int kMaxLanes = 128;

// Both bounds belong to it. Wide enough that no sum of a kernel's indices overflows.
struct Interval {
  __int128 low = 0, high = 0;
};

class Verifier {
 public:
  explicit Verifier(const Kernel& kernel)
      : kernel_(kernel), made_(kernel.values.size()), visible_(kernel.values.size()), facts_(kernel.values.size()) {}

  Expected<> run() {
    for (const Argument& a : kernel_.arguments) {
      if (a.num_elements < 0) return wrong("argument ", a.name, " has ", a.num_elements, " elements");
      if (a.alignment < 1 || !std::has_single_bit(static_cast<std::uint64_t>(a.alignment)))
        return wrong("argument ", a.name, " has alignment ", a.alignment);
    }
    if (kernel_.blocks < 0 || kernel_.scratch_bytes < 0) return wrong("has a negative size");
    for (std::size_t n = 0; n < kernel_.cuts.size(); ++n)
      if (kernel_.cuts[n] <= (n == 0 ? 0 : kernel_.cuts[n - 1]) || kernel_.cuts[n] >= kernel_.blocks)
        return wrong("is cut at ", kernel_.cuts[n], ", which is not inside, or not behind the cut before");
    for (const Statement& s : kernel_.body) TRY(check_top_level(s));
    return block(kernel_.body);
  }

 private:
  // What is known of an S64 value: a sum of values that no statement makes from others, or bounds.
  struct Fact {
    std::optional<Index> sum;
    std::optional<Interval> bounds;
  };

  template <typename... Parts>
  Error wrong(const Parts&... parts) const {
    return fail(Code::InvalidArgument, kernel_.name, ": ", parts...);
  }
  std::string name_of(Value v) const {
    const bool named = v >= 0 && static_cast<std::size_t>(v) < kernel_.values.size();
    const std::string& name = named ? kernel_.values[static_cast<std::size_t>(v)].name : std::string();
    return name.empty() ? "value " + std::to_string(v) : name;
  }
  bool exists(Value v) const { return v >= 0 && static_cast<std::size_t>(v) < kernel_.values.size(); }
  DType type(Value v) const { return kernel_.type(v); }

  Expected<> use(Value v) const {
    if (!exists(v)) return wrong("there is no value ", v);
    if (!visible_[static_cast<std::size_t>(v)]) return wrong(name_of(v), " is used where it is not made");
    return {};
  }
  Expected<> use_as(Value v, DType wanted) const {
    TRY(use(v));
    if (type(v) != wanted)
      return wrong(name_of(v), " is ", name(type(v)), " and has to be ", name(wanted));
    return {};
  }
  Expected<> define(Value v) {
    if (!exists(v)) return wrong("there is no value ", v);
    if (!is_array_type(type(v))) return wrong(name_of(v), " has no element type");
    const auto i = static_cast<std::size_t>(v);
    if (made_[i]) return wrong(name_of(v), " is made twice");
    made_[i] = visible_[i] = true;
    scope_.push_back(v);
    return {};
  }
  Expected<> define_as(Value v, DType wanted) {
    TRY(define(v));
    return use_as(v, wanted);
  }
  // Values made since then are no longer seen.
  void leave(std::size_t size) {
    for (; scope_.size() > size; scope_.pop_back()) visible_[static_cast<std::size_t>(scope_.back())] = false;
  }

  Expected<> block(const Block& body) {
    for (const Statement& s : body) TRY(std::visit([&](const auto& x) { return check(x); }, s.of));
    return {};
  }
  Expected<> check_top_level(const Statement& s) const {
    if (kernel_.blocks <= 1) return {};
    const auto* loop = std::get_if<Loop>(&s.of);
    if (loop ? loop->block > 0 : std::holds_alternative<Line>(s.of) || std::holds_alternative<Affine>(s.of)) return {};
    // Every call reads the same from what none of them writes.
    const auto* load = std::get_if<Load>(&s.of);
    if (load && load->argument >= 0 && static_cast<std::size_t>(load->argument) < kernel_.arguments.size() &&
        !kernel_.arguments[static_cast<std::size_t>(load->argument)].written)
      return {};
    return wrong("has ", kernel_.blocks, " blocks and a statement that each call would run");
  }

  Expected<> check(const Line& line) {
    for (const Value v : line.operands) TRY(use(v));
    TRY(define(line.result));
    TRY(verify_line(kernel_, line));
    if (type(line.result) == DType::S64) learn(line);
    return {};
  }
  void learn(const Line& line) {
    Fact& fact = facts_[static_cast<std::size_t>(line.result)];
    if (line.opcode == Opcode::Constant) fact.sum = Index{static_cast<std::int64_t>(line.constant[0]), {}};
    if (line.opcode != Opcode::Clamp) return;
    const auto low = bounds(index_of(line.operands[0])), high = bounds(index_of(line.operands[2]));
    if (low && high) fact.bounds = Interval{std::min(low->low, high->low), high->high};
  }
  Expected<> check(const MultiplyAdd& m) {
    TRY(define(m.result));
    const DType t = type(m.result);
    if (t != DType::F32 && t != DType::F64 && t != DType::S32) return wrong(name_of(m.result), ": multiply-add of ", name(t));
    for (const Value v : {m.a, m.b, m.c}) TRY(use_as(v, t));
    return {};
  }
  Expected<> check(const Transpose& t) {
    const std::size_t lanes = t.operands.size();
    if (lanes != t.results.size() || lanes == 0) return wrong("a transpose of ", lanes, " to ", t.results.size());
    if (static_cast<std::size_t>(whole_lanes_) != lanes)
      return wrong(name_of(t.results[0]), ": a transpose of ", lanes, " values where not all of as many lanes run");
    for (const Value v : t.operands) {
      TRY(use(v));
      if (type(v) != type(t.operands[0])) return wrong(name_of(v), ": a transpose of values of several types");
    }
    for (const Value v : t.results) TRY(define_as(v, type(t.operands[0])));
    return {};
  }
  Expected<> check(const Affine& a) {
    TRY(check(a.index));
    TRY(define_as(a.result, DType::S64));
    facts_[static_cast<std::size_t>(a.result)].sum = expand(a.index);
    return {};
  }
  Expected<> check(const Index& index) const {
    for (const Index::Term& t : index.terms) TRY(use_as(t.value, DType::S64));
    return {};
  }

  // In terms of values that no affine made.
  Index expand(const Index& index) const {
    Index sum;
    sum.offset = index.offset;
    for (const Index::Term& t : index.terms) {
      const Fact& fact = facts_[static_cast<std::size_t>(t.value)];
      sum = sum + (fact.sum ? *fact.sum * t.coefficient : index_of(t.value, t.coefficient));
    }
    return sum;
  }
  // Nothing where a value's bounds are not known, or depend on another's.
  std::optional<Interval> bounds(const Index& index) const {
    const Index sum = expand(index);
    Interval total{sum.offset, sum.offset};
    for (const Index::Term& t : sum.terms) {
      const auto& known = facts_[static_cast<std::size_t>(t.value)].bounds;
      if (!known) return {};
      const __int128 a = known->low * t.coefficient, b = known->high * t.coefficient;
      total.low += std::min(a, b);
      total.high += std::max(a, b);
    }
    return total;
  }
  Expected<> check_access(int argument, const Index& index, DType element, Value mask) const {
    TRY(check(index));
    if (mask != kNoValue) TRY(use_as(mask, DType::Pred));
    if (!is_array_type(element)) return wrong("an access of type ", name(element));
    const auto i = static_cast<std::size_t>(argument);
    const bool in_scratch = i == kernel_.arguments.size() && kernel_.scratch_bytes > 0;
    if (argument < 0 || (i >= kernel_.arguments.size() && !in_scratch)) return wrong("there is no argument ", argument);
    const std::int64_t size = in_scratch ? kernel_.scratch_bytes : argument_bytes(kernel_.arguments[i]);
    const std::string& where = in_scratch ? "scratch" : kernel_.arguments[i].name;
    if (!in_scratch && kernel_.arguments[i].type != DType::Invalid && kernel_.arguments[i].type != element)
      return wrong("argument ", where, " holds ", name(kernel_.arguments[i].type), ", not ", name(element));
    const auto range = bounds(index);
    if (!runs_ || mask != kNoValue || !range) return {};
    if (range->low < 0 || range->high >= size / byte_width(element))
      return wrong("elements ", static_cast<std::int64_t>(range->low), " to ", static_cast<std::int64_t>(range->high),
                   " of type ", name(element), " of ", where, ", which has ", size, " bytes");
    return {};
  }
  Expected<> check(const Load& load) {
    if (!exists(load.result)) return wrong("there is no value ", load.result);
    TRY(check_access(load.argument, load.index, type(load.result), load.mask));
    return define(load.result);
  }
  Expected<> check(const Store& store) {
    TRY(use(store.value));
    TRY(check_access(store.argument, store.index, type(store.value), store.mask));
    const auto i = static_cast<std::size_t>(store.argument);
    if (i < kernel_.arguments.size() && !kernel_.arguments[i].written)
      return wrong("stores to ", kernel_.arguments[i].name, ", which is not written");
    const auto varies = [&](const Index::Term& t) { return varying_[static_cast<std::size_t>(t.value)]; };
    if (!varying_.empty() && std::ranges::none_of(store.index.terms, varies))
      return wrong("all lanes store to one element of argument ", store.argument);
    return {};
  }

  Expected<> check(const Prefetch& p) const {
    if (!varying_.empty()) return wrong("a prefetch from argument ", p.argument, " in a loop by lanes");
    return check_access(p.argument, p.index, p.type, kNoValue);
  }

  Expected<> open(const Carry& c) {
    TRY(use(c.initial));
    return define_as(c.inside, type(c.initial));
  }
  // After the blocks: what is carried on was made inside.
  Expected<> check_next(const Carry& c) const { return use_as(c.next, type(c.initial)); }

  Expected<> check(const Loop& loop) {
    TRY(check_form(loop));
    const bool constant = loop.from_value == kNoValue && loop.to_value == kNoValue;
    for (const Value v : {loop.from_value, loop.to_value})
      if (v != kNoValue) {
        TRY(use_as(v, DType::S64));
        if (!varying_.empty() && varying_[static_cast<std::size_t>(v)])
          return wrong("loop ", name_of(loop.variable), ": bounds that differ between lanes");
      }
    const std::size_t outer = scope_.size();
    TRY(define_as(loop.variable, DType::S64));
    if (constant) facts_[static_cast<std::size_t>(loop.variable)].bounds = Interval{loop.from, loop.to - 1};
    if (loop.end != kNoValue) {
      TRY(define_as(loop.end, DType::S64));
      facts_[static_cast<std::size_t>(loop.end)].bounds = Interval{loop.from + 1, loop.to};
    }
    for (const Carry& c : loop.carries) TRY(open(c));
    for (const Fold& fold : loop.folds) TRY(open(fold.carry));
    const bool ran = runs_;
    runs_ = runs_ && (!constant || loop.from < loop.to);
    if (loop.lanes > 0) {
      varying_ = varying_values(kernel_, loop);
      const bool whole = constant && (loop.to - loop.from) % loop.lanes == 0 && loop.block % loop.lanes == 0;
      whole_lanes_ = whole ? loop.lanes : 0;
    }
    ++depth_;
    TRY(block(loop.body));
    --depth_;
    if (loop.lanes > 0) varying_.clear(), whole_lanes_ = 0;
    runs_ = ran;
    for (const Carry& c : loop.carries) TRY(check_next(c));
    for (const Fold& fold : loop.folds) TRY(check_next(fold.carry));
    for (const Best& best : loop.bests) TRY(use(best.value));
    leave(outer);
    for (const Carry& c : loop.carries) TRY(define_as(c.result, type(c.initial)));
    for (const Fold& fold : loop.folds) TRY(define_as(fold.carry.result, type(fold.carry.initial)));
    for (const Best& best : loop.bests) TRY(define_as(best.result, DType::S64));
    return {};
  }
  Expected<> check_form(const Loop& loop) const {
    const std::string which = "loop " + name_of(loop.variable);
    if (loop.lanes != 0 &&
        (loop.lanes < 2 || loop.lanes > kMaxLanes || !std::has_single_bit(static_cast<unsigned>(loop.lanes))))
      return wrong(which, ": by ", loop.lanes, " lanes");
    if (loop.lanes > 0 && !varying_.empty()) return wrong(which, ": by lanes inside a loop by lanes");
    if (loop.lanes > 0 && !loop.carries.empty()) return wrong(which, ": carries in a loop by lanes");
    if (loop.lanes > 0) TRY(check_lanes(loop.body, which));
    if (loop.lanes == 0 && !loop.folds.empty()) return wrong(which, ": folds in a loop without lanes");
    for (const Fold& fold : loop.folds) TRY(check_fold(fold));
    if (!loop.bests.empty()) TRY(check_bests(loop, which));
    if (loop.block < 0) return wrong(which, ": blocks of ", loop.block);
    if (loop.first_block < 0 || loop.first_block >= std::max<std::int64_t>(loop.block > 0 ? kernel_.blocks : 1, 1))
      return wrong(which, ": its first block is ", loop.first_block);
    if (loop.end != kNoValue && (loop.block == 0 || loop.lanes > 0))
      return wrong(which, ": an end of a loop by lanes or without blocks");
    if (loop.block == 0) return {};
    if (depth_ > 0) return wrong(which, ": blocks inside another statement");
    if (loop.from_value != kNoValue || loop.to_value != kNoValue || !loop.carries.empty() || !loop.folds.empty())
      return wrong(which, ": blocks of a loop with carries, folds or bounds of run time");
    if (static_cast<__int128>(loop.block) * (kernel_.blocks - loop.first_block) < static_cast<__int128>(loop.to) - loop.from)
      return wrong(which, ": ", kernel_.blocks - loop.first_block, " blocks do not cover it");
    return {};
  }
  Expected<> check_bests(const Loop& loop, const std::string& which) const {
    if (loop.lanes == 0) return wrong(which, ": the best of a loop without lanes");
    if (loop.from_value != kNoValue || loop.to_value != kNoValue || loop.from >= loop.to || loop.block != 0)
      return wrong(which, ": the best of iterations that are not the same in each call, or none");
    for (const Best& best : loop.bests) {
      if (!exists(best.value)) return wrong("there is no value ", best.value);
      const DType of = type(best.value);
      const bool is_wide = of == DType::F32 || of == DType::F64 || ((is_signed(of) || is_unsigned(of)) && bit_width(of) >= 8);
      if (!is_wide) return wrong(which, ": the best of values of ", name(of));
    }
    return {};
  }
  Expected<> check_lanes(const Block& body, const std::string& which) const {
    for (const Statement& s : body) {
      if (std::holds_alternative<While>(s.of) || std::holds_alternative<If>(s.of) || std::holds_alternative<Call>(s.of))
        return wrong(which, ": a while, if or call in a loop by lanes");
      if (const auto* inner = std::get_if<Loop>(&s.of)) TRY(check_lanes(inner->body, which));
    }
    return {};
  }
  Expected<> check_fold(const Fold& fold) const {
    switch (fold.combine) {
      case Opcode::Add: case Opcode::Multiply: case Opcode::Maximum: case Opcode::Minimum: case Opcode::And:
      case Opcode::Or: case Opcode::Xor: break;
      default: return wrong("fold ", name_of(fold.carry.result), " by ", hlo::name(fold.combine));
    }
    Line line;
    line.opcode = fold.combine;
    line.result = fold.carry.inside;
    if (!exists(line.result)) return wrong("there is no value ", line.result);
    line.operands = {line.result, line.result};
    return verify_line(kernel_, line);
  }

  Expected<> check(const While& loop) {
    const std::size_t outer = scope_.size();
    for (const Carry& c : loop.carries) TRY(open(c));
    const std::size_t carried = scope_.size();
    ++depth_;
    TRY(block(loop.condition));
    TRY(use_as(loop.predicate, DType::Pred));
    leave(carried);
    TRY(block(loop.body));
    --depth_;
    for (const Carry& c : loop.carries) TRY(check_next(c));
    leave(outer);
    for (const Carry& c : loop.carries) TRY(define_as(c.result, type(c.initial)));
    return {};
  }
  Expected<> check(const If& choice) {
    TRY(use(choice.selector));
    if (type(choice.selector) != DType::S64 && type(choice.selector) != DType::Pred)
      return wrong("an if by ", name_of(choice.selector), ", which is ", name(type(choice.selector)));
    if (choice.branches.empty()) return wrong("an if by ", name_of(choice.selector), " without branches");
    ++depth_;
    for (std::size_t b = 0; b < choice.branches.size(); ++b) {
      const std::size_t outer = scope_.size();
      TRY(block(choice.branches[b]));
      for (const If::Result& r : choice.results) {
        if (r.from.size() != choice.branches.size() || !exists(r.result))
          return wrong(name_of(r.result), " has not one value for each branch");
        TRY(use_as(r.from[b], type(r.result)));
      }
      leave(outer);
    }
    --depth_;
    for (const If::Result& r : choice.results) TRY(define(r.result));
    return {};
  }
  Expected<> check(const Call& call) const {
    if (call.callee < 0 || static_cast<std::size_t>(call.callee) >= kernel_.callees.size())
      return wrong("there is no callee ", call.callee);
    const int last = static_cast<int>(kernel_.arguments.size()) - (kernel_.scratch_bytes > 0 ? 0 : 1);
    for (const Call::Pointer& p : call.arguments)
      if (p.argument < 0 || p.argument > last) return wrong("there is no argument ", p.argument);
    if (call.blocks < 0 || call.scratch_bytes < 0) return wrong("a call of a negative size");
    return {};
  }

  const Kernel& kernel_;
  std::vector<bool> made_, visible_;
  std::vector<Fact> facts_;
  std::vector<Value> scope_;     // visible values, in the order in which they were made
  std::vector<bool> varying_;    // inside a loop by lanes: which values differ between lanes
  int whole_lanes_ = 0;          // lanes of the loop around this one if all of them always run, else 0
  int depth_ = 0;                // statements around this one
  bool runs_ = true;             // no loop around this one is known to be empty
};

}  // namespace

Expected<> verify(const Kernel& kernel) { return Verifier(kernel).run(); }

}  // namespace hloom::kernels
