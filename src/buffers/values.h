// The values of a program that runs in steps: who makes each leaf, and what only names it again.
//
// A value is made once: by a parameter, a constant, an instruction, at the head of a loop (from what enters and what
// comes back) or behind a conditional (from the branches' results). Tuples, elements, bitcasts, parameters of branches
// and of called computations name values. So does a leaf of a loop that comes back as it entered, and a conditional's
// result that is the same in all branches.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "hlo/module.h"

namespace hloom::buffers {

using ValueId = std::int32_t;

struct Value {
  enum class Kind : std::uint8_t {
    Parameter,  ///< of the entry
    Constant,
    Made,  ///< by an instruction
    Loop,  ///< at the head of a while: inputs are init and what comes back
    Join,  ///< behind a conditional: inputs are the branches' results
  };
  Kind kind = Kind::Made;
  const hlo::Instruction* definer = nullptr;
  std::int64_t leaf = 0;  ///< of the definer's shape
  Shape shape;
  std::int64_t bytes = 0;
  std::vector<ValueId> inputs;
  /// The inputs' shapes where they enter, each a leaf of an instruction's shape. A layout that differs from the value's
  /// asks for a copy that changes it.
  std::vector<const Shape*> input_shapes;
};

/// Whether the bytes of one serve as the other: same layout and memory space.
bool same_storage(const Shape& a, const Shape& b);

/// `name` or `name{leaf}`: for dumps and messages.
std::string to_string(const Value&);

class Values {
 public:
  /// Needs: computations that run as steps have one caller each (unshare_steps), and operands stand before users.
  explicit Values(const hlo::Module&);

  const Value& operator[](ValueId v) const { return values_[static_cast<std::size_t>(v)]; }
  std::int64_t size() const { return static_cast<std::int64_t>(values_.size()); }
  /// The values of the leaves of an instruction, depth first. Empty for one that is no step.
  std::span<const ValueId> of(const hlo::Instruction& i) const {
    const Range& r = ranges_[static_cast<std::size_t>(i.id())];
    return {table_.data() + r.begin, r.count};
  }
  ValueId of(const hlo::Instruction& i, std::int64_t leaf) const { return of(i)[static_cast<std::size_t>(leaf)]; }
  /// Whether `v` stands for itself, and does not name another one.
  bool is_real(ValueId v) const { return names_[static_cast<std::size_t>(v)] == v; }

 private:
  struct Range {
    std::size_t begin = 0, count = 0;
  };

  ValueId make(Value::Kind, const hlo::Instruction&, std::int64_t leaf, const Shape&);
  void make_all(Value::Kind, const hlo::Instruction&);
  void set(const hlo::Instruction&, std::vector<ValueId>);
  std::vector<ValueId> copy_of(const hlo::Instruction&) const;
  void walk(const hlo::Computation&, const std::vector<std::vector<ValueId>>& arguments);
  void visit(const hlo::Instruction&);
  void visit_while(const hlo::Instruction&);
  void visit_conditional(const hlo::Instruction&);
  void visit_call(const hlo::Instruction&);
  void visit_alias(const hlo::Instruction&);
  ValueId find(ValueId);
  bool is_trivial(ValueId, ValueId& only);
  void drop_trivial_phis();

  std::vector<Value> values_;
  std::vector<ValueId> names_;  ///< what each value names; itself if it is real
  std::vector<ValueId> table_;
  std::vector<Range> ranges_;  ///< by instruction id
};

/// Leaves in front of element `index` of a tuple's shape.
std::int64_t first_leaf(const Shape& tuple, std::int64_t index);

}  // namespace hloom::buffers
