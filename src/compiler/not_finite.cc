#include <algorithm>
#include <cmath>

#include "base/fail.h"
#include "base/try.h"
#include "compiler/walk_devices.h"
#include "interp/interpret.h"

namespace hloom::compiler {
namespace {

using hlo::Instruction;
using hlo::Literal;
using hlo::Opcode;

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
  /// `number`: of the device, where there are several; -1: there is one.
  NanFinder(const Compiled& compiled, const runtime::Device& device, std::int64_t number, std::span<HostTransfers> hosts)
      : StepWalker(compiled, device, hosts), number_(number) {}
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
    result.place = difference_at(step, i, *std::move(problem), loops());
    result.place.device = number_;
    return fail(Code::Cancelled, "found");
  }

  const std::int64_t number_;
};

std::int64_t count_not_finite(std::span<const Literal> values) {
  return std::ranges::count_if(values, [](const Literal& v) { return not_finite(v).has_value(); });
}

}  // namespace

Expected<NotFinite> first_not_finite(std::unique_ptr<hlo::Module> module, std::span<const Literal> arguments,
                                     const CheckOptions& options) {
  const Compiled compiled = TRY(compile_for_walk(std::move(module), options));
  NanFinder finder(compiled, {}, -1, options.hosts);
  finder.result.arguments = count_not_finite(arguments);
  const Expected<> walked = finder.walk(arguments);
  if (!walked && !finder.result.found) return walked.error();
  return finder.result;
}

// What one device finds ends the others before it can reach them.
Expected<NotFinite> first_not_finite_devices(std::unique_ptr<hlo::Module> module,
                                             std::span<const std::vector<Literal>> arguments, const CheckOptions& options) {
  if (arguments.size() == 1) return first_not_finite(std::move(module), arguments[0], options);
  const Compiled compiled = TRY(compile_for_walk(std::move(module), options));
  collectives::Rendezvous meeting(std::ssize(arguments), std::ssize(compiled.program.collectives));
  std::vector<std::unique_ptr<NanFinder>> finders;
  std::vector<StepWalker*> walkers;
  NotFinite result;
  for (std::size_t k = 0; k < arguments.size(); ++k) {
    const auto number = static_cast<std::int64_t>(k);
    finders.push_back(std::make_unique<NanFinder>(compiled, runtime::Device{number, &meeting}, number, options.hosts));
    walkers.push_back(finders.back().get());
    result.arguments += count_not_finite(arguments[k]);
  }
  const Expected<> walked = walk_devices(walkers, arguments, meeting);
  for (const auto& finder : finders) {
    if (!finder->result.found || result.found) continue;
    result.found = true;
    result.place = finder->result.place;
  }
  if (!walked && !result.found) return walked.error();
  return result;
}

}  // namespace hloom::compiler
