// A row that an index picks is anywhere: no processor foresees it, and what an out-of-order core has room for is a few rows ahead at most.
// So the loop
//
//   for r in 0..1000 {                                for r in 0..1000 {
//     i = load s32 picked[r]                            later = index r + 16
//     ...                                               s = minimum s64 later, last
//     row = maximum s64 ..., zero             =>        j = load s32 picked[s]
//     for c in 0..16 by 16 {                            ...
//       x = load f32 table[16*row + c]                  behind = maximum s64 ..., zero
//                                                       prefetch f32 table[16*behind]
//                                                       i = load s32 picked[r] ...
//
// gets a copy of the statements that make `row` of r, for a later r. Longer rows are left to the processor's own prefetching, which has what is
// left of a row on its way when its first lines come.
#include "kernels/prefetch_rows.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace hloom::kernels {
namespace {

using hlo::Opcode;

constexpr std::int64_t kLine = 64;
constexpr std::int64_t kLeastTable = 4 << 20;  // bytes: what smaller tables have is in the caches, or soon is
constexpr std::int64_t kLeastRow = 32, kMostRow = 512;
constexpr std::int64_t kAhead = 16;  // iterations
constexpr std::int64_t kFewest = 4 * kAhead;
constexpr std::size_t kMostCopied = 24;  // statements: an index that takes more is work of its own

/// Elements [low, high) behind an index: what a row's loads touch.
struct Span {
  std::int64_t low = 0, high = 0;
};

/// Where rows come from: an argument, and what an iteration of the loop adds to the index.
struct Source {
  int argument;
  std::vector<Index::Term> terms;
  DType type;
  bool operator==(const Source&) const = default;
};

/// A loop that may pick rows.
class RowLoop {
 public:
  RowLoop(Kernel& kernel, Loop& loop) : kernel_(kernel), loop_(loop) {}

  void run() {
    const bool is_counted = loop_.from_value == kNoValue && loop_.to_value == kNoValue && loop_.end == kNoValue;
    if (!is_counted || loop_.to - loop_.from < kFewest || !find_inside(loop_)) return;
    find_picked();
    if (picked_.empty()) return;
    find_rows(loop_.body, {});
    std::erase_if(rows_, [&](const auto& row) {
      const std::int64_t bytes = (row.second.high - row.second.low) * byte_width(row.first.type);
      return bytes < kLeastRow || bytes > kMostRow;
    });
    const std::set<Value> needed = needed_values();
    if (!rows_.empty() && needed.size() <= kMostCopied) add(needed);
  }

 private:
  // Notes what is made inside of the loop; false if it holds more than loops and straight code.
  bool find_inside(const Loop& loop) {
    inside_.insert({loop.variable, loop.end});
    for (const Carry& c : loop.carries) inside_.insert({c.inside, c.result});
    for (const Fold& f : loop.folds) inside_.insert({f.carry.inside, f.carry.result});
    for (const Best& best : loop.bests) inside_.insert(best.result);
    return std::ranges::all_of(loop.body, [&](const Statement& s) {
      if (std::holds_alternative<While>(s.of) || std::holds_alternative<If>(s.of) || std::holds_alternative<Call>(s.of)) return false;
      if (const auto* t = std::get_if<Transpose>(&s.of)) inside_.insert(t->results.begin(), t->results.end());
      if (const auto* m = std::get_if<MultiplyAdd>(&s.of)) inside_.insert(m->result);
      if (const Value made = made_by(s); made != kNoValue) inside_.insert(made);
      const auto* inner = std::get_if<Loop>(&s.of);
      return inner == nullptr || find_inside(*inner);
    });
  }

  // What a statement makes that may be copied to make it for another iteration.
  static Value made_by(const Statement& s) {
    if (const auto* line = std::get_if<Line>(&s.of)) return line->result;
    if (const auto* affine = std::get_if<Affine>(&s.of)) return affine->result;
    if (const auto* load = std::get_if<Load>(&s.of)) return load->result;
    return kNoValue;
  }
  static std::vector<Value> operands_of(const Statement& s) {
    if (const auto* line = std::get_if<Line>(&s.of)) return line->operands;
    const auto* affine = std::get_if<Affine>(&s.of);
    std::vector<Value> values;
    for (const Index::Term& t : affine ? affine->index.terms : std::get<Load>(s.of).index.terms) values.push_back(t.value);
    return values;
  }

  // Values of the body that follow from the loop's variable, what is known outside, and what no one writes.
  void find_picked() {
    for (const Statement& s : loop_.body) {
      const Value made = made_by(s);
      const auto* load = std::get_if<Load>(&s.of);
      if (made == kNoValue || (load && (load->mask != kNoValue || !is_read_only(load->argument)))) continue;
      const std::vector<Value> operands = operands_of(s);
      if (!std::ranges::all_of(operands, [&](Value v) { return is_known(v); })) continue;
      known_.insert(made);
      const auto is_picked = [&](Value v) { return picked_.contains(v); };
      if ((load && !operands.empty()) || std::ranges::any_of(operands, is_picked)) picked_.insert(made);
    }
  }
  bool is_known(Value v) const { return v == loop_.variable || known_.contains(v) || !inside_.contains(v); }
  bool is_read_only(int argument) const {
    const auto i = static_cast<std::size_t>(argument);
    return i < kernel_.arguments.size() && !kernel_.arguments[i].written;
  }

  /// First and last of the variables of loops inside.
  using Inner = std::map<Value, std::pair<std::int64_t, std::int64_t>>;

  void find_rows(const Block& block, const Inner& inner) {
    for (const Statement& s : block) {
      if (const auto* load = std::get_if<Load>(&s.of)) find_row(*load, inner);
      const auto* loop = std::get_if<Loop>(&s.of);
      if (loop == nullptr || loop->from_value != kNoValue || loop->to_value != kNoValue || loop->from >= loop->to) continue;
      Inner more = inner;
      more[loop->variable] = {loop->from, loop->to - 1};
      find_rows(loop->body, more);
    }
  }

  void find_row(const Load& load, const Inner& inner) {
    const auto is_picked = [&](const Index::Term& t) { return picked_.contains(t.value); };
    if (load.mask != kNoValue || !is_read_only(load.argument) || std::ranges::none_of(load.index.terms, is_picked) ||
        argument_bytes(kernel_.arguments[static_cast<std::size_t>(load.argument)]) < kLeastTable)
      return;
    Source source{load.argument, {}, kernel_.type(load.result)};
    Span span{load.index.offset, load.index.offset + 1};
    for (const Index::Term& t : load.index.terms) {
      if (is_known(t.value)) {
        source.terms.push_back(t);
      } else if (const auto range = inner.find(t.value); range != inner.end()) {
        const std::int64_t first = range->second.first * t.coefficient, last = range->second.second * t.coefficient;
        span.low += std::min(first, last);
        span.high += std::max(first, last);
      } else {
        return;
      }
    }
    const auto same = std::ranges::find(rows_, source, &std::pair<Source, Span>::first);
    if (same == rows_.end())
      rows_.emplace_back(std::move(source), span);
    else
      same->second = {std::min(same->second.low, span.low), std::max(same->second.high, span.high)};
  }

  // What of the body the rows' places are made of.
  std::set<Value> needed_values() const {
    std::set<Value> needed;
    for (const auto& [source, span] : rows_)
      for (const Index::Term& t : source.terms) needed.insert(t.value);
    for (auto s = loop_.body.rbegin(); s != loop_.body.rend(); ++s)
      if (const Value made = made_by(*s); made != kNoValue && needed.contains(made))
        for (const Value v : operands_of(*s)) needed.insert(v);
    std::erase_if(needed, [&](Value v) { return !known_.contains(v); });
    return needed;
  }

  void add(const std::set<Value>& needed) {
    begin_later();
    for (const Statement& s : loop_.body)
      if (needed.contains(made_by(s))) copy(s);
    for (const auto& [source, span] : rows_) prefetch(source, span);
    loop_.body.insert(loop_.body.begin(), std::make_move_iterator(added_.begin()), std::make_move_iterator(added_.end()));
  }

  // The iteration whose row is called for: never behind the last.
  void begin_later() {
    const Value ahead = kernel_.add_value(DType::S64), last = kernel_.add_value(DType::S64), later = kernel_.add_value(DType::S64);
    Line constant, least;
    constant.opcode = Opcode::Constant;
    constant.result = last;
    constant.constant[0] = static_cast<std::uint64_t>(loop_.to - 1);
    least.opcode = Opcode::Minimum;
    least.result = later;
    least.operands = {ahead, last};
    added_.push_back({Affine{ahead, index_of(loop_.variable) + kAhead}});
    added_.push_back({std::move(constant)});
    added_.push_back({std::move(least)});
    later_[loop_.variable] = later;
  }
  Value at_later(Value v) const {
    const auto found = later_.find(v);
    return found == later_.end() ? v : found->second;
  }
  Index at_later(const Index& index) const {
    Index moved;
    for (const Index::Term& t : index.terms) moved = moved + index_of(at_later(t.value), t.coefficient);
    return moved + index.offset;
  }
  void copy(const Statement& s) {
    const Value made = made_by(s), result = kernel_.add_value(kernel_.type(made));
    if (const auto* line = std::get_if<Line>(&s.of)) {
      Line copied = *line;
      copied.result = result;
      for (Value& v : copied.operands) v = at_later(v);
      added_.push_back({std::move(copied)});
    } else if (const auto* affine = std::get_if<Affine>(&s.of)) {
      added_.push_back({Affine{result, at_later(affine->index)}});
    } else {
      const auto& load = std::get<Load>(s.of);
      added_.push_back({Load{result, load.argument, at_later(load.index), kNoValue}});
    }
    later_[made] = result;
  }

  // Arrays begin with a line where callers care for speed: rows whole lines apart do too, and of others the last line may be one more.
  void prefetch(const Source& source, const Span& span) {
    const std::int64_t line = kLine / byte_width(source.type);
    const Index start = at_later(Index{0, source.terms});
    const bool begins_line = std::ranges::all_of(source.terms, [&](const Index::Term& t) { return t.coefficient % line == 0; });
    std::int64_t at = span.low;
    while (at < span.high) {
      added_.push_back({Prefetch{source.argument, start + at, source.type}});
      at += begins_line ? line - (at % line + line) % line : line;
    }
    if (!begins_line) added_.push_back({Prefetch{source.argument, start + (span.high - 1), source.type}});
  }

  Kernel& kernel_;
  Loop& loop_;
  std::set<Value> inside_;                      // values made in the loop
  std::set<Value> known_;                       // of those, what may be made for another iteration
  std::set<Value> picked_;                      // of those, what a load had a part in
  std::vector<std::pair<Source, Span>> rows_;
  std::map<Value, Value> later_;                // values of this iteration, and their like of the later one
  Block added_;
};

void add_to(Kernel& kernel, Block& block) {
  for (Statement& s : block) {
    auto* loop = std::get_if<Loop>(&s.of);
    if (loop == nullptr || loop->lanes != 0) continue;
    add_to(kernel, loop->body);
    RowLoop(kernel, *loop).run();
  }
}

}  // namespace

void prefetch_rows(Kernel& kernel) {
  const auto is_large = [](const Argument& a) { return !a.written && argument_bytes(a) >= kLeastTable; };
  if (std::ranges::any_of(kernel.arguments, is_large)) add_to(kernel, kernel.body);
}

}  // namespace hloom::kernels
