// Computations on scalars (the functions that reduce, sort, scatter … apply) as functions over many elements at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "hlo/module.h"
#include "interp/kernel.h"

namespace hloom::interp {

class Machine;

/// A computation with scalar parameters and one scalar result or a tuple of scalars. A computation of elementwise
/// instructions becomes a list of kernels on registers; any other (with a loop in it, say) is run by the machine for
/// each element.
class ScalarFunction {
 public:
  /// Both must outlive it.
  ScalarFunction(Machine& machine, const hlo::Computation& computation);

  std::int64_t num_results() const { return static_cast<std::int64_t>(results_.size()); }
  DType parameter_type(std::int64_t i) const { return parameter_types_[static_cast<std::size_t>(i)]; }
  DType result_type(std::int64_t i) const { return result_types_[static_cast<std::size_t>(i)]; }

  /// Applies it to n elements: in[p] are those of parameter p, out[r] those of result r, all dense. An out may be an
  /// in.
  Expected<> operator()(std::byte* const* out, const std::byte* const* in, std::int64_t n);

  /// Whether it adds its two parameters and does nothing else.
  bool is_plain_add() const;

 private:
  static constexpr std::int64_t kLanes = 128;  // elements that run through all kernels together
  struct Step {
    Kernel kernel;
    std::vector<std::size_t> operands;
    std::size_t result;
  };
  bool flatten(const hlo::Computation&, std::vector<std::size_t> arguments, std::vector<std::size_t>& results);
  std::optional<std::size_t> flatten_instruction(const hlo::Instruction&, const std::vector<std::size_t>& operands);
  std::size_t new_register(DType type);
  void set_parameters_aside();
  void run_kernels(std::byte* const* out, const std::byte* const* in, std::int64_t begin, std::int64_t n);
  Expected<> run_machine(std::byte* const* out, const std::byte* const* in, std::int64_t n);

  Machine& machine_;
  const hlo::Computation& computation_;
  std::vector<DType> parameter_types_, result_types_;
  bool flat_ = false;
  std::vector<Step> steps_;
  std::vector<std::size_t> results_;                 // their registers
  std::vector<std::vector<std::byte>> registers_;    // kLanes elements each; those of parameters are empty
  std::vector<const std::byte*> pointers_;           // where each register's elements are in this round
};

}  // namespace hloom::interp
