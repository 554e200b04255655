#include "buffers/save_readers.h"

#include <algorithm>
#include <map>
#include <optional>

#include "buffers/leaf.h"
#include "buffers/order_edits.h"
#include "buffers/steps.h"
#include "buffers/webs.h"

namespace hloom::buffers {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

namespace {

struct Save {
  Instruction* writer = nullptr;
  InPlacePair pair;
  ValueId base = 0;
};

// What order_readers() found: a reader of the base that cannot come before its writer.
std::string in_a_cycle(const Instruction& writer) {
  const auto& decisions = writer.annotations().decisions;
  const auto found = decisions.find("read_after");
  return found == decisions.end() ? "" : ", and cannot before: " + found->second;
}

class Saver {
 public:
  explicit Saver(hlo::Module& module) : module_(module), flow_(module) {}

  // The first write in the order of execution over a base with later readers, if there is one that saving helps.
  std::optional<Save> find() const {
    for (Computation* c : step_computations(module_))
      for (Instruction& i : c->instructions())
        for (const InPlacePair& p : in_place_pairs(i)) {
          const ValueId base = flow_.values().of(*i.operand(p.operand), p.operand_leaf);
          if (is_of(base, *c) && has_late_readers(i, p, base)) return Save{&i, p, base};
        }
    return std::nullopt;
  }

  InPlaceDecision apply(const Save& save) {
    Computation& c = *save.writer->parent();
    const std::vector<Instruction*> readers = late_readers(*save.writer, save.base);
    const bool is_in_root = has_in_root(c, save.base);
    const auto root_leaves = leaves_with(*c.root(), save.base);
    Added added;
    Instruction* source = leaf_of(save.writer->operand(save.pair.operand), save.pair.operand_leaf, added);
    Instruction* copy = c.add(Opcode::Copy, source->shape(), {source}, "saved." + source->name());
    added.push_back(copy);
    OrderEdits edits;
    edits.insert_before(*save.writer, added);
    std::string reader;
    for (Instruction* i : readers) {
      if (reader.empty()) reader = i->name();
      redirect(*i, save, copy, edits);
    }
    if (is_in_root) {
      if (reader.empty()) reader = c.root()->name();
      Added at_end;
      c.set_root(with_leaves(c.root(), with_copy(root_leaves, copy), at_end));
      edits.append(c, at_end);
    }
    edits.apply();
    const Value& value = flow_.values()[save.base];
    return {InPlaceDecision::Kind::LateReader,
            save.writer->name(),
            save.pair.result,
            value.bytes,
            flow_.timeline().of(c).depth,
            false,
            reader + " reads " + to_string(value) + " after " + save.writer->name() + " writes over it" +
                in_a_cycle(*save.writer),
            copy->name()};
  }

 private:
  // The value lives and dies in one run of the computation.
  bool is_of(ValueId v, const Computation& c) const {
    const Value& value = flow_.values()[v];
    if (value.kind == Value::Kind::Loop) return value.definer->body() == &c;
    if (value.kind == Value::Kind::Parameter)  // what is written over it should become the result there
      return value.definer->parent() == &c && flow_.aliased_result(flow_.pin(v).number) >= 0;
    return (value.kind == Value::Kind::Made || value.kind == Value::Kind::Join) && value.definer->parent() == &c;
  }

  bool reads(const Instruction& i, ValueId base) const {
    return std::ranges::any_of(i.operands(), [&](const Instruction* operand) {
      const auto values = flow_.values().of(*operand);
      return std::ranges::find(values, base) != values.end();
    });
  }

  // Instructions behind the writer that read the base, or the writer itself by another operand.
  std::vector<Instruction*> late_readers(const Instruction& writer, ValueId base) const {
    std::vector<Instruction*> readers;
    for (Instruction& i : writer.parent()->instructions()) {
      if (is_alias(i) || flow_.timeline().of(i).begin < flow_.timeline().of(writer).begin) continue;
      if (i.opcode() == Opcode::Parameter || i.opcode() == Opcode::Constant) continue;
      if (&i != &writer && reads(i, base)) readers.push_back(&i);
    }
    return readers;
  }

  bool has_in_root(const Computation& c, ValueId base) const {
    const auto root = flow_.values().of(*c.root());
    return std::ranges::find(root, base) != root.end();
  }

  // What a caller reads of the value must be what the root says, not the value itself.
  bool has_late_readers(const Instruction& writer, const InPlacePair& p, ValueId base) const {
    const Computation& c = *writer.parent();
    const bool late = !late_readers(writer, base).empty() || has_in_root(c, base);
    if (!late || flow_.timeline().of(c).frame != &c) return false;
    return all_can_read_copy(writer, p, base);
  }

  // Leaves that read the base under another shape than the copy's would need a bitcast of it.
  bool all_can_read_copy(const Instruction& writer, const InPlacePair& p, ValueId base) const {
    const Shape& shape = *leaves(writer.operand(p.operand)->shape())[static_cast<std::size_t>(p.operand_leaf)];
    const auto agrees = [&](const Instruction& whole) {
      const auto values = flow_.values().of(whole);
      const auto shapes = leaves(whole.shape());
      for (std::size_t k = 0; k < values.size(); ++k)
        if (values[k] == base && *shapes[k] != shape) return false;
      return true;
    };
    for (const Instruction* reader : late_readers(writer, base))
      if (!std::ranges::all_of(reader->operands(), [&](const Instruction* o) { return agrees(*o); })) return false;
    return agrees(*writer.parent()->root());
  }

  std::vector<std::int64_t> leaves_with(const Instruction& whole, ValueId base) const {
    std::vector<std::int64_t> result;
    const auto values = flow_.values().of(whole);
    for (std::size_t k = 0; k < values.size(); ++k)
      if (values[k] == base) result.push_back(static_cast<std::int64_t>(k));
    return result;
  }

  static std::map<std::int64_t, Instruction*> with_copy(const std::vector<std::int64_t>& at, Instruction* copy) {
    std::map<std::int64_t, Instruction*> result;
    for (const std::int64_t leaf : at) result.emplace(leaf, copy);
    return result;
  }

  void redirect(Instruction& reader, const Save& save, Instruction* copy, OrderEdits& edits) {
    Added added;
    for (std::int64_t k = 0; k < reader.num_operands(); ++k) {
      const auto at = leaves_with(*reader.operand(k), save.base);
      if (!at.empty()) reader.replace_operand(k, with_leaves(reader.operand(k), with_copy(at, copy), added));
    }
    edits.insert_before(reader, added);
  }

  hlo::Module& module_;
  Flow flow_;
};

}  // namespace

std::vector<InPlaceDecision> save_late_readers(hlo::Module& module) {
  // Each round makes one copy; programs with many such bases get the rest of their copies from insert_copies().
  constexpr int kMostRounds = 64;
  std::vector<InPlaceDecision> decisions;
  for (int round = 0; round < kMostRounds; ++round) {
    Saver saver(module);
    const auto save = saver.find();
    if (!save) break;
    decisions.push_back(saver.apply(*save));
  }
  return decisions;
}

}  // namespace hloom::buffers
