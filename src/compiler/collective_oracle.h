// What collectives give, by the interpreter.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "hlo/literal.h"
#include "hlo/module.h"
#include "hloom/error.h"

namespace hloom::compiler {

/// Collects the operands that devices have for a collective and interprets it on them. Any number of devices may call it, each
/// for the same collective in the same order; all whom one joins run it equally often.
class CollectiveOracle {
 public:
  /// `module` outlives it.
  explicit CollectiveOracle(const hlo::Module& module);

  /// The operands that a device has for collective `i`, or for the start of one, as it runs for the n-th time, before it meets the others.
  void give(std::int64_t device, const hlo::Instruction& i, std::int64_t n, std::vector<hlo::Literal> operands);

  /// What `i`, or the done of a start, gives on that device, once it has left the others. Errors: the interpreter's.
  Expected<hlo::Literal> want(std::int64_t device, const hlo::Instruction& i, std::int64_t n);

 private:
  /// A collective, alone in a module. Of its operands the last two times are kept: nobody is further ahead.
  struct One {
    std::unique_ptr<hlo::Module> module;
    struct Operands {
      std::int64_t n = -1;
      std::vector<hlo::Literal> values;
    };
    std::vector<std::array<Operands, 2>> given;  // by device
  };
  One& of(const hlo::Instruction& start);
  std::unique_ptr<hlo::Module> alone(const hlo::Instruction& start) const;

  const hlo::Module& module_;
  std::mutex mutex_;
  std::map<const hlo::Instruction*, One> all_;
};

}  // namespace hloom::compiler
