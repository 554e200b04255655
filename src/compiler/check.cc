#include "compiler/check.h"

#include <bit>
#include <cmath>
#include <unordered_set>

#include "base/fail.h"
#include "base/try.h"
#include "compiler/check_tolerance.h"
#include "compiler/compile.h"
#include "compiler/step_walker.h"
#include "interp/interpret.h"

namespace hloom::compiler {
namespace {

using hlo::Instruction;
using hlo::Literal;
using hlo::Opcode;

constexpr std::size_t kMaxDifferences = 20;

std::string text_of(const std::vector<LoopPlace>& loops) {
  std::string text;
  for (const LoopPlace& l : loops)
    text += (text.empty() ? "iteration " : ", ") + std::to_string(l.iteration) + " of " + l.loop->name();
  return text;
}

Difference difference(const Instruction& step, const Instruction& i, std::string message,
                      const std::vector<LoopPlace>& loops) {
  return {i.name(),           step.name(),  std::string(hlo::name(i.opcode())) + " " + to_string(i.shape(), false),
          std::move(message), source_of(i), text_of(loops)};
}

// What runs as a step of its own and means the same whenever it runs.
bool can_be_interpreted(const Instruction& i) {
  if (hlo::has_side_effect(i) || hlo::kind(i.opcode()) == hlo::OpcodeKind::Collective) return false;
  if (i.opcode() == Opcode::CustomCall || i.opcode() == Opcode::Parameter || i.opcode() == Opcode::Constant)
    return false;
  for (const Instruction* operand : i.operands())
    if (operand->shape().is_token()) return false;
  return true;
}

class Checker : public StepWalker {
 public:
  Checker(const Compiled& compiled, const CheckOptions& options) : StepWalker(compiled), options_(options) {}

  CheckReport take_report() {
    report_.results = results();
    report_.instructions = static_cast<std::int64_t>(checked_.size());
    return std::move(report_);
  }

 private:
  Expected<> visit(const Instruction& i) override {
    if (!has_steps(i) || !wanted(i)) return run(i);
    if (i.opcode() == Opcode::Fusion)
      return run_fusion(i,
                        [&](const Instruction& inner, std::span<const Literal> operands, std::optional<Literal> shown) {
                          return check_inner(i, inner, operands, std::move(shown));
                        });
    return can_be_interpreted(i) && interpreter_work(i) <= options_.max_work ? check_step(i) : run(i);
  }

  bool wanted(const Instruction& i) {
    const std::int64_t n = ++runs_[&i];
    if (report_.differences.size() >= kMaxDifferences) return false;
    return options_.every_run || std::has_single_bit(static_cast<std::uint64_t>(n));
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
    if (interpreter_work(i) > options_.max_work) {
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
        report_.differences.push_back(difference(step, i, *std::move(problem), loops()));
    }
    return {};
  }

  const CheckOptions& options_;
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
