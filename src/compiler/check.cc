#include "compiler/check.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <unordered_set>

#include "base/fail.h"
#include "base/thread.h"
#include "base/try.h"
#include "compiler/check_tolerance.h"
#include "compiler/collective_oracle.h"
#include "compiler/compile.h"
#include "compiler/step_walker.h"
#include "hlo/participants.h"
#include "interp/interpret.h"
#include "runtime/float_mode.h"

namespace hloom::compiler {
namespace {

using hlo::Instruction;
using hlo::Literal;
using hlo::Opcode;

constexpr std::size_t kMaxDifferences = 20;
constexpr double kMostHidden = 2e9;  // steps for a value that the compiled program does not show

std::string text_of(const std::vector<LoopPlace>& loops) {
  std::string text;
  for (const LoopPlace& l : loops)
    text += (text.empty() ? "iteration " : ", ") + std::to_string(l.iteration) + " of " + l.loop->name();
  return text;
}

Difference difference(const Instruction& step, const Instruction& i, std::string message,
                      const std::vector<LoopPlace>& loops) {
  return {i.name(),           step.name(),  std::string(hlo::name(i.opcode())) + " " + to_string(i.shape(), false),
          std::move(message), source_of(i), text_of(loops), -1};
}

// What runs as a step of its own and means the same whenever it runs.
bool can_be_interpreted(const Instruction& i) {
  if (hlo::has_side_effect(i) || hlo::kind(i.opcode()) == hlo::OpcodeKind::Collective) return false;
  switch (i.opcode()) {
    case Opcode::Constant:
    case Opcode::CustomCall:
    case Opcode::Parameter:
    case Opcode::PartitionId:  // the interpreter would have it on device 0
    case Opcode::ReplicaId: return false;
    default: break;
  }
  for (const Instruction* operand : i.operands())
    if (operand->shape().is_token()) return false;
  return true;
}

bool is_start(Opcode opcode) {
  return opcode == Opcode::AllGatherStart || opcode == Opcode::AllReduceStart || opcode == Opcode::CollectivePermuteStart;
}
bool is_done(Opcode opcode) {
  return opcode == Opcode::AllGatherDone || opcode == Opcode::AllReduceDone || opcode == Opcode::CollectivePermuteDone;
}

class Checker : public StepWalker {
 public:
  /// `oracle`: of collectives; null for a program on one device.
  Checker(const Compiled& compiled, const CheckOptions& options, const runtime::Device& device = {},
          CollectiveOracle* oracle = nullptr)
      : StepWalker(compiled, device), options_(options), device_(device.number), oracle_(oracle) {}

  CheckReport take_report() {
    report_.results = results();
    report_.instructions = static_cast<std::int64_t>(checked_.size());
    return std::move(report_);
  }
  const std::unordered_set<const Instruction*>& checked() const { return checked_; }

 private:
  Expected<> visit(const Instruction& i) override {
    if (!has_steps(i) || !wanted(i)) return run(i);
    if (oracle_ != nullptr && (hlo::has_participants(i.opcode()) || is_done(i.opcode()))) return check_collective(i);
    if (i.opcode() == Opcode::Fusion)
      return run_fusion(i,
                        [&](const Instruction& inner, std::span<const Literal> operands, std::optional<Literal> shown) {
                          return check_inner(i, inner, operands, std::move(shown));
                        });
    if (!can_be_interpreted(i)) return run(i);
    if (interpreter_work(i) <= options_.max_work) return check_step(i);
    ++report_.skipped;
    return run(i);
  }

  bool wanted(const Instruction& i) {
    const std::int64_t n = ++runs_[&i];
    if (report_.differences.size() >= kMaxDifferences) return false;
    return options_.every_run || std::has_single_bit(static_cast<std::uint64_t>(n));
  }

  // All devices count alike how often a collective runs, so they check it at the same times.
  Expected<> check_collective(const Instruction& i) {
    const std::int64_t n = runs_[&i];
    if (interpreter_work(i) > options_.max_work) {
      ++report_.skipped;
      return run(i);
    }
    std::vector<Literal> operands;
    for (const Instruction* operand : i.operands()) operands.push_back(whole_value(*operand));
    if (!is_done(i.opcode())) oracle_->give(device_, i, n, operands);
    TRY(run(i));
    if (is_start(i.opcode())) return {};
    const Literal want = TRY(oracle_->want(device_, i, n));
    return compare(i, i, operands, whole_value(i), want);
  }

  Expected<> check_step(const Instruction& i) {
    std::vector<Literal> operands;
    for (const Instruction* operand : i.operands()) operands.push_back(whole_value(*operand));
    TRY(run(i));
    const Literal want = TRY(interp::evaluate_instruction(i, operands));
    return compare(i, i, operands, whole_value(i), want);
  }

  // Interprets one instruction on the compiled run's operands; where the compiled value is visible it is compared and
  // goes on to the users.
  Expected<Literal> check_inner(const Instruction& step, const Instruction& i, std::span<const Literal> operands,
                                std::optional<Literal> shown) {
    if (const double work = interpreter_work(i); work > (shown ? options_.max_work : std::max(options_.max_work, kMostHidden))) {
      ++report_.skipped;
      if (!shown)
        return fail(Code::ResourceExhausted, i.name(), ": too large to interpret, and its value is not visible");
      return *std::move(shown);
    }
    Literal want = TRY(interp::evaluate_instruction(i, operands));
    if (!shown) return want;
    TRY(compare(step, i, operands, *shown, want));
    return *std::move(shown);
  }

  Expected<> compare(const Instruction& step, const Instruction& i, std::span<const Literal> operands,
                     const Literal& got, const Literal& want) {
    checked_.insert(&i);
    ++report_.checks;
    const auto got_leaves = hlo::leaves(got), want_leaves = hlo::leaves(want);
    for (std::size_t l = 0; l < got_leaves.size(); ++l) {
      if (!got_leaves[l]->shape().is_array()) continue;
      auto problem = TRY(differs(i, operands, *got_leaves[l], *want_leaves[l]));
      if (problem && report_.differences.size() < kMaxDifferences)
        add(difference(step, i, *std::move(problem), loops()));
    }
    return {};
  }

  void add(Difference d) {
    if (oracle_ != nullptr) d.device = device_;
    report_.differences.push_back(std::move(d));
  }

  const CheckOptions& options_;
  const std::int64_t device_;
  CollectiveOracle* const oracle_;
  CheckReport report_;
  std::unordered_map<const Instruction*, std::int64_t> runs_;
  std::unordered_set<const Instruction*> checked_;
};

// The first element that is a NaN or an infinity, or nothing.
std::optional<std::string> not_finite(const Literal& literal) {
  for (const Literal* leaf : hlo::leaves(literal)) {
    if (!leaf->shape().is_array() || !is_floating(real_type(leaf->dtype()))) continue;
    const bool complex = is_complex(leaf->dtype());
    Literal parts = *leaf;
    const std::int64_t count = leaf->num_elements() * (complex ? 2 : 1);
    if (complex)
      parts = Literal::from_bytes(Shape::array(real_type(leaf->dtype()), {count}),
                                  {leaf->bytes().begin(), leaf->bytes().end()});
    for (std::int64_t e = 0; e < count; ++e)
      if (const double x = element_as_double(parts, e); !std::isfinite(x))
        return "element " + std::to_string(complex ? e / 2 : e) + " is " +
               (std::isnan(x) ? "nan"
                : x > 0       ? "inf"
                              : "-inf");
  }
  return std::nullopt;
}

bool any_not_finite(std::span<const Literal> values) {
  for (const Literal& v : values)
    if (not_finite(v)) return true;
  return false;
}

/// Ends the walk, with Cancelled, at the first instruction that makes what is not finite.
class NanFinder : public StepWalker {
 public:
  using StepWalker::StepWalker;
  NotFinite result;

 private:
  Expected<> visit(const Instruction& i) override {
    if (!has_steps(i)) return {};
    if (i.opcode() == Opcode::Fusion)
      return run_fusion(i,
                        [&](const Instruction& inner, std::span<const Literal> operands, std::optional<Literal> shown) {
                          return look_inside(i, inner, operands, std::move(shown));
                        });
    std::vector<Literal> operands;
    for (const Instruction* operand : i.operands()) operands.push_back(whole_value(*operand));
    TRY(run(i));
    return look(i, i, operands, whole_value(i));
  }

  Expected<Literal> look_inside(const Instruction& step, const Instruction& i, std::span<const Literal> operands,
                                std::optional<Literal> shown) {
    Literal value = shown ? *std::move(shown) : TRY(interp::evaluate_instruction(i, operands));
    TRY(look(step, i, operands, value));
    return value;
  }

  Expected<> look(const Instruction& step, const Instruction& i, std::span<const Literal> operands,
                  const Literal& value) {
    if (i.opcode() == Opcode::Constant || any_not_finite(operands)) return {};
    auto problem = not_finite(value);
    if (!problem) return {};
    result.found = true;
    result.place = difference(step, i, *std::move(problem), loops());
    return fail(Code::Cancelled, "found");
  }
};

Expected<Compiled> compile_for_walk(std::unique_ptr<hlo::Module> module, const CheckOptions& options) {
  Options compile_options = options.compile;
  compile_options.regions = false;
  compile_options.taps = true;
  return compile(std::move(module), compile_options);
}

}  // namespace

std::string to_string(const Difference& d) {
  std::string text = d.instruction + ": " + d.what + ", in " + d.kernel;
  if (d.device >= 0) text += ", on device " + std::to_string(d.device);
  if (!d.loops.empty()) text += ", " + d.loops;
  if (!d.source.empty()) text += ", from " + d.source;
  return text + ": " + d.message;
}

Expected<CheckReport> check(std::unique_ptr<hlo::Module> module, std::span<const Literal> arguments,
                            const CheckOptions& options) {
  const Compiled compiled = TRY(compile_for_walk(std::move(module), options));
  Checker checker(compiled, options);
  TRY(checker.walk(arguments));
  return checker.take_report();
}

namespace {

// Steps go from one meeting to the next; between them the interpreter may take as long as it likes.
void walk_as(Checker& checker, std::span<const Literal> arguments, const runtime::Device& device) {
  const runtime::DefaultFloatMode mode;
  const Expected<> walked = checker.walk(arguments);
  if (!walked) device.others->fail(walked.error());
  device.others->end(device.number);
}

CheckReport joined(std::vector<std::unique_ptr<Checker>>& checkers) {
  CheckReport all;
  std::unordered_set<const Instruction*> checked;
  for (const auto& checker : checkers) {
    checked.insert(checker->checked().begin(), checker->checked().end());
    CheckReport report = checker->take_report();
    all.checks += report.checks;
    all.skipped += report.skipped;
    for (Difference& d : report.differences)
      if (all.differences.size() < kMaxDifferences) all.differences.push_back(std::move(d));
    if (all.results.empty()) all.results = std::move(report.results);
  }
  all.instructions = std::ssize(checked);
  return all;
}

}  // namespace

Expected<CheckReport> check_devices(std::unique_ptr<hlo::Module> module,
                                    std::span<const std::vector<Literal>> arguments, const CheckOptions& options) {
  if (arguments.size() == 1) return check(std::move(module), arguments[0], options);
  const Compiled compiled = TRY(compile_for_walk(std::move(module), options));
  CollectiveOracle oracle(*compiled.module);
  collectives::Rendezvous meeting(std::ssize(arguments), std::ssize(compiled.program.collectives));
  meeting.begin(std::chrono::milliseconds(0));
  std::vector<std::unique_ptr<Checker>> checkers;
  std::vector<base::Thread> threads;
  for (std::size_t k = 0; k < arguments.size(); ++k) {
    const runtime::Device device{static_cast<std::int64_t>(k), &meeting};
    checkers.push_back(std::make_unique<Checker>(compiled, options, device, &oracle));
    auto thread = base::Thread::start(
        "device", [&checker = *checkers.back(), own = std::span<const Literal>(arguments[k]), device] { walk_as(checker, own, device); });
    if (thread) {
      threads.push_back(std::move(*thread));
      continue;
    }
    meeting.fail(fail(Code::ResourceExhausted, "device ", k, ": the system has no thread for it"));
    meeting.end(device.number);
  }
  for (base::Thread& thread : threads) thread.join();
  if (meeting.failed()) return meeting.error();
  return joined(checkers);
}

Expected<NotFinite> first_not_finite(std::unique_ptr<hlo::Module> module, std::span<const Literal> arguments,
                                     const CheckOptions& options) {
  const Compiled compiled = TRY(compile_for_walk(std::move(module), options));
  NanFinder finder(compiled);
  for (const Literal& a : arguments) finder.result.arguments += not_finite(a).has_value();
  const Expected<> walked = finder.walk(arguments);
  if (!walked && !finder.result.found) return walked.error();
  return finder.result;
}

}  // namespace hloom::compiler
