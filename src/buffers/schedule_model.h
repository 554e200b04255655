// How many bytes an order of a computation's instructions needs: for choosing one.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "hlo/module.h"

namespace hloom::buffers {

/// What a computation is to its caller.
enum class Role : std::uint8_t {
  Entry,
  Body,   ///< of a loop: its parameter's leaves are alive when it begins, and its results take their memory
  Other,  ///< a branch, a callee, a condition
};

/// One computation: its instructions by number, in their present order, the values that they make, and who reads them.
/// In-place results and carried leaves are their operands' values living on; an elementwise result may take the place
/// of an operand that ends there. Computations that an instruction runs count with their own peak while it runs. Memory
/// that is there anyway (of what the caller gives and takes) does not count, but what lies there does: it serves other
/// values while it is free.
class ScheduleModel {
 public:
  using Peaks = std::unordered_map<const hlo::Computation*, std::int64_t>;
  using Order = std::vector<int>;

  /// `peaks` has those of the computations that `c`'s instructions run. They must stand in an order of execution.
  ScheduleModel(const hlo::Computation& c, Role role, const Peaks& peaks);

  int size() const { return static_cast<int>(nodes_.size()); }
  /// 0, 1, 2 …
  Order present_order() const;
  std::vector<hlo::Instruction*> instructions(const Order&) const;
  /// Numbers of those that must come before and after.
  const std::vector<int>& before(int n) const { return node(n).before; }
  const std::vector<int>& after(int n) const { return node(n).after; }
  std::int64_t made_bytes(int n) const { return node(n).made_bytes; }
  int root() const { return root_; }

  using Local = std::size_t;  ///< number of a value
  const std::vector<Local>& reads(int n) const { return node(n).reads; }
  const std::vector<Local>& makes(int n) const { return node(n).makes; }
  std::size_t num_values() const { return values_.size(); }
  std::int64_t bytes(Local v) const { return values_[v].bytes; }
  /// Who makes it, -1 if the caller does.
  int maker(Local v) const { return values_[v].maker; }
  const std::vector<int>& readers(Local v) const { return values_[v].readers; }
  bool is_read_by_caller(Local v) const { return values_[v].uses > static_cast<int>(values_[v].readers.size()); }

  struct Cost {
    std::int64_t peak_bytes = 0;
    int steps_at_peak = 0;
    int at = 0;  ///< place in the order of the first of them
    bool operator<(const Cost& o) const {
      return peak_bytes != o.peak_bytes ? peak_bytes < o.peak_bytes : steps_at_peak < o.steps_at_peak;
    }
  };
  Cost cost(const Order&) const;

  /// A pass over an order with what is alive.
  class Run {
   public:
    explicit Run(const ScheduleModel&);
    void step(int n);
    /// Bytes that are let go of less those that are made, if `n` came now.
    std::int64_t gain(int n) const;
    int uses_left(Local v) const { return left_[v]; }
    /// Bytes while the last step worked, beside memory that is there anyway.
    std::int64_t during() const { return during_ - model_.lent_bytes_; }

   private:
    std::int64_t overwritten(int n) const;

    const ScheduleModel& model_;
    std::vector<int> left_;
    std::int64_t now_ = 0, during_ = 0;
  };

 private:
  struct Overwrite {
    Local operand = 0, result = 0;
  };
  struct Node {
    const hlo::Instruction* i = nullptr;
    std::vector<Local> reads, makes;  // each once
    std::vector<Overwrite> overwrites;
    std::int64_t made_bytes = 0;
    std::int64_t inner_bytes = 0;  // of the computations that it runs, and its workspace
    std::vector<int> before, after;
  };
  struct LocalValue {
    std::int64_t bytes = 0;
    int maker = -1;
    int uses = 0;  // readers, and one if the caller reads it
    std::vector<int> readers;
  };

  const Node& node(int n) const { return nodes_[static_cast<std::size_t>(n)]; }
  Local make(std::int64_t bytes, Node*);
  void add(const hlo::Instruction&, const Peaks&);
  void add_edges(const hlo::Instruction&, Node&, int number);
  void add_reads(const std::vector<Local>&, Node&, int number);
  void add_overwrites(const hlo::Instruction&, Node&) const;
  std::vector<Local> leaves_of(const hlo::Instruction&, Node&);
  std::vector<Local> given_leaves(const hlo::Instruction&);
  std::vector<Local> alias_leaves(const hlo::Instruction&) const;
  std::vector<Local> loop_leaves(const hlo::Instruction&, Node&);
  std::vector<Local> made_leaves(const hlo::Instruction&, Node&);
  void take_results(const hlo::Computation&);

  Role role_;
  std::vector<bool> donated_;  ///< by leaf of the entry's parameters
  std::vector<Node> nodes_;
  std::vector<LocalValue> values_;
  std::unordered_map<const hlo::Instruction*, std::vector<Local>> locals_;
  std::unordered_map<const hlo::Instruction*, int> numbers_;
  std::int64_t lent_bytes_ = 0;
  int root_ = 0;
};

}  // namespace hloom::buffers
