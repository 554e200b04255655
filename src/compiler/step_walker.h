// Runs a compiled program instruction by instruction, where a visitor can look at every value.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/aligned_bytes.h"
#include "compiler/compile.h"
#include "hlo/literal.h"
#include "runtime/collective_step.h"

namespace hloom::compiler {

/// A loop that is being run, and which iteration of it, from 0.
struct LoopPlace {
  const hlo::Instruction* loop = nullptr;
  std::int64_t iteration = 0;
};

/// Where an instruction comes from, for people: "model.py:12 (jit(f)/dot)", "line 7 of the text", or nothing.
std::string source_of(const hlo::Instruction&);

/// Walks a program compiled without regions, as one of its devices, on one thread, in memory of its own. Derive, and look in visit().
class StepWalker {
 public:
  /// Needs: `compiled`, with `regions` off, outlives it. Devices that meet others walk at the same time.
  explicit StepWalker(const Compiled& compiled, const runtime::Device& device = {});
  virtual ~StepWalker() = default;

  /// Errors: ResourceExhausted if the program's memory is more than the machine's; those of visit() and of routines.
  Expected<> walk(std::span<const hlo::Literal> arguments);
  /// Leaves of the program's result. Needs: walk() went well.
  std::vector<hlo::Literal> results();

 protected:
  /// Called in place of running `i`, which is no control flow: calls run(i) where it likes. Errors end the walk.
  virtual Expected<> visit(const hlo::Instruction& i) = 0;

  /// Runs the instruction's steps, if it has any. Errors: those that routines report.
  Expected<> run(const hlo::Instruction& i);
  bool has_steps(const hlo::Instruction& i) const { return steps_.contains(&i); }
  /// A leaf of the value as it is in memory now; all of it.
  hlo::Literal value(const hlo::Instruction&, std::int64_t leaf);
  hlo::Literal whole_value(const hlo::Instruction&);
  /// Loops around what is visited, the outermost first.
  const std::vector<LoopPlace>& loops() const { return loops_; }

  /// One instruction inside a fusion that has run: its operands' values, and its own where the fusion shows it. Gives
  /// the value that its users are to have.
  using Inner = std::function<Expected<hlo::Literal>(
      const hlo::Instruction& inner, std::span<const hlo::Literal> operands, std::optional<hlo::Literal> shown)>;
  /// Runs the fusion and calls `inner` for its instructions in order; parameters and the root's tuple aside.
  Expected<> run_fusion(const hlo::Instruction& fusion, const Inner& inner);

 private:
  void index_steps(const runtime::Steps& steps, std::size_t& number);
  Expected<> check_memory() const;
  Expected<> computation(const hlo::Computation&);
  Expected<> instruction(const hlo::Instruction&);
  Expected<> run_while(const hlo::Instruction&);
  std::span<std::byte> bytes(const buffers::Slice& s);
  std::byte* at(const runtime::Slice& s);
  Expected<> call(const runtime::Call&);
  Expected<> meet(const runtime::Collective&);
  void write_number(const runtime::DeviceNumber&);
  std::optional<hlo::Literal> shown(const hlo::Instruction& fusion, const hlo::Instruction& inner,
                                    const std::unordered_map<const hlo::Instruction*, std::int64_t>& leaf_of);

  const Compiled& c_;
  const runtime::Device device_;
  std::vector<base::AlignedBytes> memory_;
  std::unordered_map<std::int32_t, std::vector<void*>> collective_buffers_;  ///< by number, from a start to its done
  std::vector<void*> room_;
  std::unordered_map<const hlo::Instruction*, std::vector<const runtime::Step*>> steps_;
  std::vector<LoopPlace> loops_;
};

}  // namespace hloom::compiler
