// Runs a compiled program instruction by instruction, where a visitor can look at every value.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/aligned_bytes.h"
#include "compiler/box.h"
#include "compiler/compile.h"
#include "hlo/literal.h"
#include "runtime/collective_step.h"
#include "runtime/executor.h"

namespace hloom::compiler {

/// A loop that is being run, and which iteration of it, from 0.
struct LoopPlace {
  const hlo::Instruction* loop = nullptr;
  std::int64_t iteration = 0;
};

/// Where an instruction comes from, for people: "model.py:12 (jit(f)/dot)", "line 7 of the text", or nothing.
std::string source_of(const hlo::Instruction&);

/// Walks a program compiled without regions, as one of its devices, in memory of its own. Derive, and look in visit().
class StepWalker {
 public:
  /// Needs: `compiled`, with `regions` off, and `hosts`, by device, outlive it. Devices that meet others walk at the same time.
  explicit StepWalker(const Compiled& compiled, const runtime::Device& device = {}, std::span<HostTransfers> hosts = {});
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
  /// A box of each array of the value, or all of it if `box` is null; of operands that were kept, as they were then. Any
  /// number of threads may read at once.
  hlo::Literal read(const hlo::Instruction&, const Box* box) const;
  /// Keeps what operands of `i` hold in memory that it writes, until the next visit.
  void keep_operands(const hlo::Instruction& i);
  /// Which leaf of a fusion with taps an instruction inside is the first of.
  using Taps = std::unordered_map<const hlo::Instruction*, std::int64_t>;
  static Taps taps_of(const hlo::Instruction& fusion);
  /// As read(), of an instruction inside a fusion that has run. Needs: `taps` has it.
  hlo::Literal read_tap(const hlo::Instruction& fusion, const Taps& taps, const hlo::Instruction& inner, const Box* box) const;
  /// Loops around what is visited, the outermost first.
  const std::vector<LoopPlace>& loops() const { return loops_; }

  /// One instruction inside a fusion that has run: its operands' values, and its own where the fusion shows it. Gives
  /// the value that its users are to have.
  using Inner = std::function<Expected<hlo::Literal>(
      const hlo::Instruction& inner, std::span<const hlo::Literal> operands, std::optional<hlo::Literal> shown)>;
  /// Runs the fusion and calls `inner` for its instructions in order; parameters and the root's tuple aside.
  Expected<> run_fusion(const hlo::Instruction& fusion, const Inner& inner);

 private:
  Expected<> check_memory() const;
  Expected<> computation(const hlo::Computation&);
  Expected<> instruction(const hlo::Instruction&);
  Expected<> run_while(const hlo::Instruction&);
  std::span<std::byte> bytes(const buffers::Slice& s);
  hlo::Literal read_leaf(const hlo::Instruction&, std::int64_t leaf, const Box* box) const;
  hlo::Literal read_leaves(const hlo::Instruction&, std::int64_t first, const Shape& shape, const Box* box) const;
  std::byte* at(const runtime::Slice& s);
  Expected<> call(const runtime::Call&);
  Expected<> meet(const runtime::Collective&);
  void write_number(const runtime::DeviceNumber&);

  const Compiled& c_;
  const runtime::Device device_;
  const runtime::RunOptions options_;
  library::HostPort port_;
  std::vector<base::AlignedBytes> memory_;
  std::unordered_map<std::int32_t, std::vector<void*>> collective_buffers_;  ///< by number, from a start to its done
  std::vector<void*> room_;
  std::unordered_map<const hlo::Instruction*, std::vector<const runtime::Step*>> steps_;
  std::vector<LoopPlace> loops_;
  std::map<std::pair<const hlo::Instruction*, std::int64_t>, std::vector<std::byte>> kept_;  ///< by leaf
};

}  // namespace hloom::compiler
