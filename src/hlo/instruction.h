// One operation of a computation.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/check.h"
#include "hlo/attributes.h"
#include "hlo/opcode.h"
#include "hloom/shape.h"

namespace hloom::hlo {

class Computation;
class Module;

/// An instruction: opcode, shape, operands, attributes. Owned by its computation, at a fixed address until
/// removed. `users()` holds one entry for each operand slot that names this instruction.
class Instruction {
 public:
  Opcode opcode() const { return opcode_; }
  const std::string& name() const { return name_; }
  const Shape& shape() const { return shape_; }
  void set_shape(Shape shape) { shape_ = std::move(shape); }
  Computation* parent() const { return parent_; }
  /// A number unique in the module, for tables beside it. Not stable over print and parse.
  int id() const { return id_; }

  const std::vector<Instruction*>& operands() const { return operands_; }
  Instruction* operand(std::int64_t i) const { return operands_[static_cast<std::size_t>(i)]; }
  std::int64_t num_operands() const { return static_cast<std::int64_t>(operands_.size()); }
  /// Cost: the number of the old operand's users.
  void replace_operand(std::int64_t i, Instruction* with);
  void append_operand(Instruction* operand);
  const std::vector<Instruction*>& users() const { return users_; }

  /// Control predecessors: each finishes before this one starts.
  const std::vector<Instruction*>& control_predecessors() const;
  const std::vector<Instruction*>& control_successors() const;
  void add_control_predecessor(Instruction* before);
  void drop_control_edges();

  /// Computations it calls: to_apply or calls; while: condition, body; conditional: the branches in order;
  /// select-and-scatter: select, scatter; custom-call: all.
  const std::vector<Computation*>& called() const;
  Computation* called(std::int64_t i) const { return called()[static_cast<std::size_t>(i)]; }
  Computation* to_apply() const { return called(0); }
  Computation* condition() const { return called(0); }
  Computation* body() const { return called(1); }
  void set_called(std::vector<Computation*> called);

  /// dimensions={…} of broadcast, transpose, reverse, concatenate, reduce, sort, map, scan, all-gather, …
  const Dims& dimensions() const { return dimensions_; }
  void set_dimensions(Dims dimensions) { dimensions_ = std::move(dimensions); }
  std::int64_t dimension(std::int64_t i) const { return dimensions_[static_cast<std::size_t>(i)]; }

  /// The family struct. Needs: the opcode's family is T.
  template <typename T>
  const T& attr() const {
    HLOOM_CHECK(attributes_.get_if<T>() != nullptr);
    return *attributes_.get_if<T>();
  }
  template <typename T>
  T& mutable_attr() {
    HLOOM_CHECK(attributes_.get_if<T>() != nullptr);
    return *attributes_.get_if<T>();
  }
  const Attributes& attributes() const { return attributes_; }
  void set_attributes(Attributes attributes) { attributes_ = std::move(attributes); }

  /// Shorthands.
  std::int64_t parameter_number() const { return attr<ParameterAttr>().number; }
  const Literal& literal() const { return attr<ConstantAttr>().literal; }
  std::int64_t tuple_index() const { return attr<TupleElementAttr>().index; }
  std::int64_t iota_dimension() const { return attr<IotaAttr>().dimension; }

  /// What it carries besides; an empty one if it carries nothing.
  const Annotations& annotations() const;
  /// Makes one if there is none.
  Annotations& mutable_annotations();
  bool has_annotations() const { return annotations_ != nullptr; }

  /// Where it stood in the text it was parsed from; 0 = not from text.
  std::int32_t line() const { return line_; }
  std::int32_t column() const { return column_; }
  void set_place(std::int32_t line, std::int32_t column) {
    line_ = line;
    column_ = column;
  }

  bool is_root() const;
  Module& module() const;

 private:
  friend class Computation;
  friend class Module;
  Instruction() = default;

  Opcode opcode_{};
  int id_ = 0;
  std::int32_t line_ = 0, column_ = 0;
  std::string name_;
  Shape shape_;
  Computation* parent_ = nullptr;
  std::vector<Instruction*> operands_, users_;
  struct Links {  ///< what few instructions have
    std::vector<Instruction*> before, after;  ///< control edges
    std::vector<Computation*> called;
  };
  std::unique_ptr<Links> links_;
  Dims dimensions_;
  Attributes attributes_;
  std::unique_ptr<Annotations> annotations_;
};

/// The family struct of an opcode with default values: what a parser starts from.
Attributes attributes_for(Opcode);

/// May not be removed, duplicated, or moved against its token chain (hlo-ops 2): send, recv, infeed, outfeed, rng and
/// its state, collectives with a channel, custom calls that say so, callers of such, what ends such a start.
/// Cost: the size of what it calls.
bool has_side_effect(const Instruction&);

}  // namespace hloom::hlo
