#include "buffers/check_assignment.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <unordered_map>
#include <unordered_set>

#include "buffers/in_place.h"
#include "buffers/parts.h"
#include "buffers/steps.h"
#include "buffers/values.h"

namespace hloom::buffers {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

namespace {

// What lies somewhere: a leaf of an instruction's result.
using Content = std::pair<const Instruction*, std::int64_t>;
using Contents = std::vector<Content>;  // of an instruction, by leaf

/// Stretches of bytes and what they are known to hold: one value under one or more names.
class Memory {
 public:
  void write(const Slice& s, Content content) {
    if (s.bytes == 0) return;
    forget(s);
    stretches_[{s.allocation, s.offset}] = {s.offset + s.bytes, {content}, {}};
  }
  void forget(const Slice& s) {
    auto at = stretches_.lower_bound({s.allocation, s.offset});
    while (at != stretches_.begin() && overlaps(*std::prev(at), s)) --at;
    while (at != stretches_.end() && overlaps(*at, s)) at = stretches_.erase(at);
  }
  bool holds(const Slice& s, Content content) const {
    const auto at = around(s);
    if (at == stretches_.end()) return false;
    const auto part = at->second.parts.find(content);
    if (part != at->second.parts.end()) return part->second == s;
    return at == find(s) && at->second.names.contains(content);
  }
  // A part of what lies around it has a name of its own.
  void add_part(const Slice& s, Content content) {
    const auto at = around(s);
    if (at != stretches_.end()) const_cast<Stretch&>(at->second).parts[content] = s;
  }
  void add_name(const Slice& s, Content content) {
    const auto at = find(s);
    if (at != stretches_.end()) const_cast<std::set<Content>&>(at->second.names).insert(content);
  }
  // Drops names for which `stale` says so.
  template <typename F>
  void drop_names(const F& stale) {
    for (auto at = stretches_.begin(); at != stretches_.end();) {
      std::erase_if(at->second.names, stale);
      std::erase_if(at->second.parts, [&](const auto& part) { return stale(part.first); });
      at = at->second.is_nameless() ? stretches_.erase(at) : std::next(at);
    }
  }
  // What both know.
  void meet(const Memory& other) {
    for (auto at = stretches_.begin(); at != stretches_.end();) {
      const auto theirs = other.stretches_.find(at->first);
      const bool same = theirs != other.stretches_.end() && theirs->second.end == at->second.end;
      if (same) {
        std::erase_if(at->second.names, [&](const Content& c) { return !theirs->second.names.contains(c); });
        std::erase_if(at->second.parts, [&](const auto& part) {
          const auto found = theirs->second.parts.find(part.first);
          return found == theirs->second.parts.end() || found->second != part.second;
        });
      }
      at = !same || at->second.is_nameless() ? stretches_.erase(at) : std::next(at);
    }
  }
  bool operator==(const Memory&) const = default;

 private:
  struct Stretch {
    std::int64_t end = 0;
    std::set<Content> names;
    std::map<Content, Slice> parts;
    bool is_nameless() const { return names.empty() && parts.empty(); }
    bool operator==(const Stretch&) const = default;
  };
  using Key = std::pair<std::int32_t, std::int64_t>;  // allocation, offset
  using Map = std::map<Key, Stretch>;

  static bool overlaps(const Map::value_type& stretch, const Slice& s) {
    return stretch.first.first == s.allocation && stretch.first.second < s.offset + s.bytes &&
           s.offset < stretch.second.end;
  }
  // The stretch that all of the slice lies in.
  Map::const_iterator around(const Slice& s) const {
    auto at = stretches_.upper_bound({s.allocation, s.offset});
    if (at == stretches_.begin()) return stretches_.end();
    --at;
    return at->first.first == s.allocation && s.offset + s.bytes <= at->second.end ? at : stretches_.end();
  }
  Map::const_iterator find(const Slice& s) const {
    const auto at = stretches_.find({s.allocation, s.offset});
    return at != stretches_.end() && at->second.end == s.offset + s.bytes ? at : stretches_.end();
  }

  Map stretches_;
};

bool overlap(const Slice& a, const Slice& b) {
  return a.allocation == b.allocation && a.bytes > 0 && b.bytes > 0 && a.offset < b.offset + b.bytes &&
         b.offset < a.offset + a.bytes;
}

class Checker {
 public:
  Checker(const Assignment& a, const Instruction* without) : a_(a), module_(a.module()), without_(without) {}

  std::vector<std::string> run() {
    for (const Computation* c : step_computations(module_))
      for (const Instruction& i : c->instructions())
        if (i.opcode() == Opcode::Constant)
          for (std::int64_t leaf = 0; leaf < a_.num_leaves(i); ++leaf) memory_.write(a_.slice(i, leaf), {&i, leaf});
    std::int32_t parameter = 1;
    for (const Instruction* p : module_.entry()->parameters())
      for (std::int64_t leaf = 0; leaf < a_.num_leaves(*p); ++leaf) {
        const Slice whole{parameter, 0, a_.allocations()[static_cast<std::size_t>(parameter)].bytes};
        if (whole.bytes > 0) want_equal(*p, leaf, a_.slice(*p, leaf), whole, "its allocation");
        memory_.write(a_.slice(*p, leaf), {p, leaf});
        ++parameter;
      }
    std::vector<Contents> arguments;
    for (const Instruction* p : module_.entry()->parameters()) arguments.push_back(own(*p));
    follow(*module_.entry(), arguments);
    check_results();
    return std::move(found_);
  }

 private:
  template <typename... Parts>
  void report(const Parts&... parts) {
    if (muted_ > 0 || found_.size() >= kMostFindings) return;
    std::ostringstream text;
    (text << ... << parts);
    if (std::string said = std::move(text).str(); said_.insert(said).second) found_.push_back(std::move(said));
  }

  Contents own(const Instruction& i) const {
    Contents contents;
    for (std::int64_t leaf = 0; leaf < a_.num_leaves(i); ++leaf) contents.emplace_back(&i, leaf);
    return contents;
  }

  static std::string name(const Content& c) { return c.first->name() + "{" + std::to_string(c.second) + "}"; }

  void want_equal(const Instruction& i, std::int64_t leaf, const Slice& a, const Slice& b, std::string_view what) {
    if (a != b) report(i.name(), "{", leaf, "}: must share the memory of ", what);
  }

  // Content `c` must lie where leaf `leaf` of `named` says.
  void read(const Instruction& reader, const Instruction& named, std::int64_t leaf, Content c) {
    const Slice& s = a_.slice(named, leaf);
    if (s.bytes > 0 && !memory_.holds(s, c))
      report(reader.name(), ": reads ", name(c), " where ", named.name(), "{", leaf,
             "} lies, which holds something else");
  }

  // Where the value lies it has another name from now on as well.
  void name_again(const Slice& s, Content known, Content name) {
    if (memory_.holds(s, known)) memory_.add_name(s, name);
  }

  void follow(const Computation& c, const std::vector<Contents>& arguments) {
    for (const Instruction& i : c.instructions()) {
      if (i.opcode() == Opcode::Parameter)
        values_[&i] = arguments[static_cast<std::size_t>(i.parameter_number())];
      else
        follow(i);
    }
  }

  void follow(const Instruction& i) {
    switch (i.opcode()) {
      case Opcode::Constant: values_[&i] = own(i); return;
      case Opcode::While: return follow_while(i);
      case Opcode::Conditional: return follow_conditional(i);
      case Opcode::Call:
      case Opcode::AsyncStart: return follow_call(i);
      default: break;
    }
    if (is_alias(i) || &i == without_) return follow_alias(i);
    if (is_free(i)) return follow_free(i);
    follow_work(i);
  }

  void follow_alias(const Instruction& i) {
    Contents all;
    for (const Instruction* operand : i.operands()) {
      const Contents& part = values_[operand];
      all.insert(all.end(), part.begin(), part.end());
    }
    if (const Instruction* start = start_of(i)) read_until_done(i, *start);
    std::int64_t element = 0;
    switch (i.opcode()) {
      case Opcode::GetTupleElement: element = i.tuple_index(); break;
      case Opcode::AllGatherDone:
      case Opcode::AsyncDone:
      case Opcode::CollectivePermuteDone: element = 1; break;
      case Opcode::CopyDone: break;
      default:
        values_[&i] = std::move(all);
        values_[&i].resize(static_cast<std::size_t>(a_.num_leaves(i)));
        return;
    }
    const auto first = all.begin() + first_leaf(i.operand(0)->shape(), element);
    values_[&i] = Contents(first, first + a_.num_leaves(i));
  }

  // What the start of a collective or a copy reads and writes is there until it is done.
  void read_until_done(const Instruction& done, const Instruction& start) {
    const auto read_all = [&](const Instruction& named) {
      const Contents& contents = values_[&named];
      for (std::size_t leaf = 0; leaf < contents.size(); ++leaf)
        read(done, named, static_cast<std::int64_t>(leaf), contents[leaf]);
    };
    for (const Instruction* operand : start.operands()) read_all(*operand);
    read_all(start);
  }

  // Nothing is moved: each part has to lie in its place already.
  void follow_free(const Instruction& i) {
    const std::optional<Parts> parts = parts_of(i);
    values_[&i] = own(i);
    if (!parts) return report(i.name(), ": is free, and no concatenate or slice of stretches");
    const bool is_slice = parts->kind == Parts::Kind::Slice;
    for (std::int64_t k = 0; k < i.num_operands(); ++k) {
      const Slice &operand = a_.slice(*i.operand(k), 0), &result = a_.slice(i, 0);
      const Slice &whole = is_slice ? operand : result, &part = is_slice ? result : operand;
      read(i, *i.operand(k), 0, values_[i.operand(k)][0]);
      const Slice place{whole.allocation, whole.offset + parts->offsets[static_cast<std::size_t>(k)], part.bytes};
      want_equal(is_slice ? i : *i.operand(k), 0, part, place, "its place in " + (is_slice ? *i.operand(k) : i).name());
    }
    if (is_slice)
      memory_.add_part(a_.slice(i, 0), {&i, 0});
    else
      memory_.write(a_.slice(i, 0), {&i, 0});
  }

  void follow_work(const Instruction& i) {
    const std::vector<InPlacePair> pairs = in_place_pairs(i);
    for (std::int64_t k = 0; k < i.num_operands(); ++k) {
      const Contents& contents = values_[i.operand(k)];
      for (std::int64_t leaf = 0; leaf < static_cast<std::int64_t>(contents.size()); ++leaf) {
        read(i, *i.operand(k), leaf, contents[static_cast<std::size_t>(leaf)]);
        check_written_over(i, k, leaf, pairs);
      }
    }
    for (const InPlacePair& p : pairs)
      want_equal(i, p.result, a_.slice(i, p.result), a_.slice(*i.operand(p.operand), p.operand_leaf),
                 i.operand(p.operand)->name());
    const Slice workspace = a_.workspace(i);
    memory_.forget(workspace);
    values_[&i] = own(i);
    const OperandLeaves named = operand_leaves(i);  // those are not written
    for (std::int64_t leaf = 0; leaf < a_.num_leaves(i); ++leaf) {
      if (named.contain(leaf)) continue;
      const Slice& s = a_.slice(i, leaf);
      if (s.bytes > 0 && !a_.allocation(s).writable) report(i.name(), "{", leaf, "}: writes read-only memory");
      for (std::int64_t other = 0; other < leaf; ++other)
        if (overlap(s, a_.slice(i, other))) report(i.name(), ": results ", other, " and ", leaf, " overlap");
      const Shape& shape = *leaves(i.shape())[static_cast<std::size_t>(leaf)];
      if (s.bytes > 0 && arena_space(shape) != a_.allocation(s).space)
        report(i.name(), "{", leaf, "}: has memory space ", arena_space(shape), ", and lies in ",
               a_.allocation(s).space);
      if (overlap(s, workspace)) report(i.name(), "{", leaf, "}: overlaps the workspace");
      memory_.write(s, {&i, leaf});
    }
    Contents operands;
    for (const Instruction* operand : i.operands()) std::ranges::copy(values_[operand], std::back_inserter(operands));
    for (std::int64_t k = 0; k < named.count; ++k)
      values_[&i][static_cast<std::size_t>(named.first + k)] = operands[static_cast<std::size_t>(k)];
  }

  void check_written_over(const Instruction& i, std::int64_t k, std::int64_t leaf,
                          const std::vector<InPlacePair>& pairs) {
    const Slice& operand = a_.slice(*i.operand(k), leaf);
    for (std::int64_t r = 0; r < a_.num_leaves(i); ++r) {
      const Slice& result = a_.slice(i, r);
      if (!overlap(operand, result)) continue;
      if (operand_leaves(i).contain(r)) continue;
      const bool in_place = std::ranges::find(pairs, InPlacePair{r, k, leaf}) != pairs.end();
      const bool by_element = leaf == 0 && operand == result && may_overwrite(i, k, r);
      if (!in_place && !by_element)
        report(i.name(), "{", r, "}: is written over operand ", i.operand(k)->name(), ", which it reads");
    }
    if (overlap(operand, a_.workspace(i))) report(i.name(), ": its workspace overlaps operand ", i.operand(k)->name());
  }

  // Constants are the same in every iteration.
  static bool is_made_inside(const Instruction& i, const std::unordered_set<const Computation*>& computations) {
    return i.opcode() != Opcode::Constant && computations.contains(i.parent());
  }

  static void collect(const Instruction& i, std::unordered_set<const Computation*>& into) {
    for (const Computation* c : step_computations(i)) {
      into.insert(c);
      for (const Instruction& inner : c->instructions()) collect(inner, into);
    }
  }

  void follow_while(const Instruction& i) {
    const Contents init = values_[i.operand(0)], head = own(i);
    // What does not lie where the loop expects it is missed when something reads it, not before.
    for (std::size_t leaf = 0; leaf < head.size(); ++leaf)
      name_again(a_.slice(i, static_cast<std::int64_t>(leaf)), init[leaf], head[leaf]);
    std::unordered_set<const Computation*> inside;
    collect(i, inside);
    ++muted_;
    for (Memory start = memory_;; start = memory_) {
      memory_ = start;
      follow_iteration(i, head, inside);
      memory_.meet(start);
      if (memory_ == start) break;
    }
    --muted_;
    const Memory start = memory_;
    follow_iteration(i, head, inside);
    memory_ = start;
    ++muted_;
    follow(*i.condition(), {head});  // the last time
    --muted_;
    values_[&i] = head;
  }

  // Condition and body; then what came back is the head's, and what else was made inside is of the last iteration.
  void follow_iteration(const Instruction& i, const Contents& head,
                        const std::unordered_set<const Computation*>& inside) {
    follow(*i.condition(), {head});
    read(i, *i.condition()->root(), 0, values_[i.condition()->root()][0]);
    follow(*i.body(), {head});
    const Contents& next = values_[i.body()->root()];
    // The head's names are given under a placeholder while those of this iteration go.
    const auto placeholder = [](std::size_t leaf) { return Content{nullptr, static_cast<std::int64_t>(leaf)}; };
    for (std::size_t leaf = 0; leaf < head.size(); ++leaf)
      name_again(a_.slice(i, static_cast<std::int64_t>(leaf)), next[leaf], placeholder(leaf));
    memory_.drop_names(
        [&](const Content& c) { return c.first != nullptr && (c.first == &i || is_made_inside(*c.first, inside)); });
    for (std::size_t leaf = 0; leaf < head.size(); ++leaf)
      name_again(a_.slice(i, static_cast<std::int64_t>(leaf)), placeholder(leaf), head[leaf]);
    memory_.drop_names([](const Content& c) { return c.first == nullptr; });
  }

  void follow_conditional(const Instruction& i) {
    read(i, *i.operand(0), 0, values_[i.operand(0)][0]);
    const Memory before = memory_;
    Memory after;
    for (std::size_t b = 0; b < i.called().size(); ++b) {
      memory_ = before;
      const Computation& branch = *i.called()[b];
      follow(branch, {values_[i.operand(static_cast<std::int64_t>(b) + 1)]});
      for (std::int64_t leaf = 0; leaf < a_.num_leaves(i); ++leaf) {
        name_again(a_.slice(i, leaf), values_[branch.root()][static_cast<std::size_t>(leaf)], {&i, leaf});
      }
      if (b == 0)
        after = memory_;
      else
        after.meet(memory_);
    }
    memory_ = std::move(after);
    values_[&i] = own(i);
  }

  void follow_call(const Instruction& i) {
    std::vector<Contents> arguments;
    for (const Instruction* operand : i.operands()) arguments.push_back(values_[operand]);
    follow(*i.to_apply(), arguments);
    const Contents& result = values_[i.to_apply()->root()];
    if (i.opcode() == Opcode::Call) {
      values_[&i] = result;
      return;
    }
    Contents all;
    for (const Contents& a : arguments) all.insert(all.end(), a.begin(), a.end());
    all.insert(all.end(), result.begin(), result.end());
    for (auto leaf = static_cast<std::int64_t>(all.size()); leaf < a_.num_leaves(i); ++leaf) {  // the context
      memory_.write(a_.slice(i, leaf), {&i, leaf});
      all.emplace_back(&i, leaf);
    }
    values_[&i] = std::move(all);
  }

  void check_results() {
    const Instruction& root = *module_.entry()->root();
    for (std::size_t n = 0; n < a_.allocations().size(); ++n) {
      const Allocation& allocation = a_.allocations()[n];
      const bool is_result = allocation.kind == Allocation::Kind::Result;
      std::int64_t leaf = is_result ? allocation.number : allocation.aliased_result;
      if (leaf < 0 || allocation.bytes == 0) continue;
      if (is_result && is_aliased(leaf)) continue;
      read(root, root, leaf, values_[&root][static_cast<std::size_t>(leaf)]);
      want_equal(root, leaf, a_.slice(root, leaf), {static_cast<std::int32_t>(n), 0, allocation.bytes}, "its result");
    }
  }

  bool is_aliased(std::int64_t result) const {
    return std::ranges::any_of(a_.allocations(), [&](const Allocation& a) { return a.aliased_result == result; });
  }

  static constexpr std::size_t kMostFindings = 20;

  const Assignment& a_;
  const hlo::Module& module_;
  const Instruction* without_;
  Memory memory_;
  std::unordered_map<const Instruction*, Contents> values_;
  std::vector<std::string> found_;
  std::set<std::string> said_;
  int muted_ = 0;
};

}  // namespace

std::vector<std::string> check_assignment(const Assignment& a, const Instruction* without) {
  return Checker(a, without).run();
}

}  // namespace hloom::buffers
