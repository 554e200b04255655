// One device that runs computations instruction by instruction.
#pragma once

#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "hlo/device_transfers.h"
#include "hlo/module.h"
#include "interp/index.h"
#include "interp/interpret.h"
#include "interp/kernel.h"
#include "interp/value.h"

namespace hloom::interp {

class Fabric;
class ScalarFunction;
class Machine;

/// An instruction with the values of its operands: what every operation is given.
struct Call {
  const hlo::Instruction& instruction;
  const Shape& shape;          ///< of the result; where operands have run-time sizes, with those
  std::span<Value> operands;   ///< an operation may take them
  Machine& machine;

  const hlo::Literal& array(std::int64_t i) const { return operands[static_cast<std::size_t>(i)].array(); }
  const Dims& dims(std::int64_t i) const { return array(i).shape().dims(); }
  std::int64_t num_operands() const { return static_cast<std::int64_t>(operands.size()); }
};

/// Where a device stands among the others.
struct Place {
  std::int64_t device = 0, replicas = 1, partitions = 1;
  std::int64_t replica() const { return device / partitions; }
  std::int64_t partition() const { return device % partitions; }
  std::int64_t num_devices() const { return replicas * partitions; }
};

class Machine {
 public:
  /// `fabric` joins it with other devices; null for a device that is alone. Both must outlive it.
  Machine(const Options& options, Place place, Fabric* fabric);
  ~Machine();

  /// Runs a computation. Needs: one argument a parameter.
  Expected<Value> run(const hlo::Computation&, std::vector<Value> arguments);
  /// Runs one instruction.
  Expected<Value> evaluate(const hlo::Instruction&, std::span<Value> operands);
  /// The same for operands without run-time sizes and a result of this shape.
  Expected<Value> evaluate_static(const hlo::Instruction&, const Shape& shape, std::span<Value> operands);
  /// The scalar computation as a function over many elements.
  ScalarFunction& scalar_function(const hlo::Computation&);

  const Options& options() const { return options_; }
  const Place& place() const { return place_; }
  Fabric* fabric() const { return fabric_; }
  /// Of the module that it runs.
  const hlo::DeviceTransfers& device_transfers(const hlo::Module&);
  /// The state of rng and rng-get-and-update-state.
  __extension__ unsigned __int128& rng_state() { return rng_state_; }

 private:
  // A computation made ready: which slot each operand is in, and where it is used last.
  struct Operand {
    std::size_t slot;
    bool last;
  };
  struct Step {
    const hlo::Instruction* instruction;
    std::size_t slot;
    std::vector<Operand> operands;
    Value constant;  // of a constant
  };
  struct Prepared {
    std::vector<Step> steps;
    std::size_t num_slots = 0, root = 0;
  };
  const Prepared& prepared(const hlo::Computation&);
  Expected<> check_size(const hlo::Instruction&, const Shape& shape) const;

  const Options& options_;
  Place place_;
  Fabric* fabric_;
  std::unique_ptr<hlo::DeviceTransfers> device_transfers_;
  std::int64_t steps_ = 0, depth_ = 0;
  __extension__ unsigned __int128 rng_state_;
  std::unordered_map<const hlo::Computation*, Prepared> prepared_;
  std::unordered_map<const hlo::Computation*, std::unique_ptr<ScalarFunction>> scalar_functions_;
};

}  // namespace hloom::interp
