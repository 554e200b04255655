#include "compiler/check.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <sstream>
#include <unordered_set>

#include "arrays/compare.h"
#include "base/fail.h"
#include "base/try.h"
#include "compiler/build_collective.h"
#include "compiler/check_tolerance.h"
#include "compiler/collective_oracle.h"
#include "compiler/compile.h"
#include "compiler/sampled_check.h"
#include "compiler/transfer_oracle.h"
#include "compiler/walk_devices.h"
#include "hlo/device_transfers.h"
#include "hlo/participants.h"

namespace hloom::compiler {
namespace {

using hlo::Instruction;
using hlo::Literal;
using hlo::Opcode;

constexpr std::size_t kMaxDifferences = 20;
constexpr double kMostWhole = 2e9;  // steps of what has no parts

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

// What holds between the devices of a program.
struct Oracles {
  CollectiveOracle collectives;
  TransferOracle transfers;
};

class Checker : public StepWalker {
 public:
  /// `oracles`: null for a program on one device.
  Checker(const Compiled& compiled, const CheckOptions& options, const runtime::Device& device = {},
          Oracles* oracles = nullptr)
      : StepWalker(compiled, device, options.hosts), options_(options), device_(device.number), oracles_(oracles) {}

  CheckReport take_report() {
    report_.results = results();
    report_.instructions = static_cast<std::int64_t>(checked_.size());
    return std::move(report_);
  }
  const std::unordered_set<const Instruction*>& checked() const { return checked_; }

 private:
  Expected<> visit(const Instruction& i) override {
    if (!has_steps(i)) return run(i);
    ++report_.runs;
    if (oracles_ != nullptr && is_device_transfer(i)) return check_transfer(i);
    if (!wanted(i)) return run(i);
    if (oracles_ != nullptr && (hlo::has_participants(i.opcode()) || is_done(i.opcode()))) return check_collective(i);
    if (i.opcode() == Opcode::Fusion) return check_fusion(i);
    return can_be_interpreted(i) ? check_step(i) : run(i);
  }

  bool wanted(const Instruction& i) {
    const std::int64_t n = ++runs_[&i];
    if (report_.differences.size() >= kMaxDifferences) return false;
    return options_.every_run || std::has_single_bit(static_cast<std::uint64_t>(n));
  }

  // All devices count alike how often a collective runs, so they check it at the same times.
  Expected<> check_collective(const Instruction& i) {
    const std::int64_t n = runs_[&i];
    if (interpreter_work(i) > std::max(options_.work, kMostWhole)) {
      ++report_.skipped;
      return run(i);
    }
    std::vector<Literal> operands;
    for (const Instruction* operand : i.operands()) operands.push_back(whole_value(*operand));
    if (!is_done(i.opcode())) oracles_->collectives.give(device_, i, n, operands);
    TRY(run(i));
    if (is_start(i.opcode())) return {};
    const Literal want = TRY(oracles_->collectives.want(device_, i, n));
    return compare(i, operands, whole_value(i), want);
  }

  // Each is followed, so that the next is compared with the one that was sent as the next.
  Expected<> check_transfer(const Instruction& i) {
    const bool compares = wanted(i);
    const hlo::DeviceTransfer transfer = TRY(hlo::read_device_transfer(i));
    const bool takes = i.attr<hlo::CustomCallAttr>().target == hlo::kTakeFromDevice;
    const std::int64_t other = takes ? transfer.source_of(device_) : transfer.target_of(device_);
    if (!takes) {
      if (other >= 0) oracles_->transfers.give({transfer.mailbox, device_, other}, whole_value(*i.operand(0)));
      return run(i);
    }
    TRY(run(i));
    auto want = other >= 0 ? oracles_->transfers.take({transfer.mailbox, other, device_})
                           : std::optional(Literal(i.shape().element(0)));
    if (!compares) return {};
    if (want) return compare_received(i, whole_value(i).elements()[0], *want);
    add(difference_at(i, i, "receives from device " + std::to_string(other) + ", which has sent nothing", loops()));
    return {};
  }

  // Bytes are moved, whatever they mean.
  Expected<> compare_received(const Instruction& i, const Literal& got, const Literal& want) {
    const auto to_the_bit = [](const Literal& a, const Literal& b) -> Expected<std::optional<std::string>> {
      const auto difference = arrays::compare(a, b, arrays::Tolerance::bits());
      if (!difference) return std::optional<std::string>();
      std::ostringstream text;
      text << *difference;
      return std::optional(text.str());
    };
    return compare_leaves(i, got, want, to_the_bit);
  }

  Expected<> check_step(const Instruction& i) {
    keep_operands(i);
    TRY(run(i));
    SampledCheck check([this](const Instruction& operand, const Box* box) { return std::optional(read(operand, box)); },
                       [](const Instruction&) { return true; }, options_.work);
    return check_one(check, i, i, [&](const Box* box) { return read(i, box); });
  }

  // Instructions whose value the fusion does not show are interpreted as far as others need them.
  Expected<> check_fusion(const Instruction& fusion) {
    keep_operands(fusion);
    TRY(run(fusion));
    const Taps taps = taps_of(fusion);
    const auto is_known = [&](const Instruction& i) { return i.opcode() == Opcode::Parameter || taps.contains(&i); };
    const auto known = [&](const Instruction& i, const Box* box) -> std::optional<Literal> {
      if (i.opcode() == Opcode::Parameter) return read(*fusion.operand(i.parameter_number()), box);
      return taps.contains(&i) ? std::optional(read_tap(fusion, taps, i, box)) : std::nullopt;
    };
    SampledCheck check(known, is_known, options_.work);
    for (const Instruction& i : fusion.called(0)->instructions())
      if (taps.contains(&i) && can_be_interpreted(i))
        TRY(check_one(check, fusion, i, [&](const Box* box) { return read_tap(fusion, taps, i, box); }));
    return {};
  }

  Expected<> check_one(SampledCheck& check, const Instruction& step, const Instruction& i, const SampledCheck::Shown& shown) {
    const std::uint64_t seed = std::hash<std::string>()(i.name()) + static_cast<std::uint64_t>(runs_[&step]);
    SampledCheck::Result result = TRY(check.check(i, shown, seed));
    if (result.skipped) {
      ++report_.skipped;
      return {};
    }
    checked_.insert(&i);
    ++report_.checks;
    report_.elements += result.elements;
    report_.elements_of_checked += result.of;
    if (result.problem && report_.differences.size() < kMaxDifferences)
      add(difference_at(step, i, *std::move(result.problem), loops()));
    return {};
  }

  Expected<> compare(const Instruction& i, std::span<const Literal> operands, const Literal& got, const Literal& want) {
    return compare_leaves(i, got, want, [&](const Literal& a, const Literal& b) { return differs(i, operands, a, b); });
  }

  // `problem_of`: what differs between arrays, or nothing.
  Expected<> compare_leaves(const Instruction& i, const Literal& got, const Literal& want, const auto& problem_of) {
    checked_.insert(&i);
    ++report_.checks;
    const auto got_leaves = hlo::leaves(got), want_leaves = hlo::leaves(want);
    for (std::size_t l = 0; l < got_leaves.size(); ++l) {
      if (!got_leaves[l]->shape().is_array()) continue;
      report_.elements += got_leaves[l]->num_elements();
      report_.elements_of_checked += got_leaves[l]->num_elements();
      auto problem = TRY(problem_of(*got_leaves[l], *want_leaves[l]));
      if (problem && report_.differences.size() < kMaxDifferences)
        add(difference_at(i, i, *std::move(problem), loops()));
    }
    return {};
  }

  void add(Difference d) {
    if (oracles_ != nullptr) d.device = device_;
    report_.differences.push_back(std::move(d));
  }

  const CheckOptions& options_;
  const std::int64_t device_;
  Oracles* const oracles_;
  CheckReport report_;
  std::unordered_map<const Instruction*, std::int64_t> runs_;
  std::unordered_set<const Instruction*> checked_;
};

}  // namespace

Expected<CheckReport> check(std::unique_ptr<hlo::Module> module, std::span<const Literal> arguments,
                            const CheckOptions& options) {
  const Compiled compiled = TRY(compile_for_walk(std::move(module), options));
  Checker checker(compiled, options);
  TRY(checker.walk(arguments));
  return checker.take_report();
}

namespace {

CheckReport joined(std::vector<std::unique_ptr<Checker>>& checkers) {
  CheckReport all;
  std::unordered_set<const Instruction*> checked;
  for (const auto& checker : checkers) {
    checked.insert(checker->checked().begin(), checker->checked().end());
    CheckReport report = checker->take_report();
    all.checks += report.checks;
    all.skipped += report.skipped;
    all.runs += report.runs;
    all.elements += report.elements;
    all.elements_of_checked += report.elements_of_checked;
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
  Oracles oracles{CollectiveOracle(*compiled.module), {}};
  collectives::Rendezvous meeting(std::ssize(arguments), std::ssize(compiled.program.collectives));
  std::vector<std::unique_ptr<Checker>> checkers;
  std::vector<StepWalker*> walkers;
  for (std::size_t k = 0; k < arguments.size(); ++k) {
    const runtime::Device device{static_cast<std::int64_t>(k), &meeting};
    checkers.push_back(std::make_unique<Checker>(compiled, options, device, &oracles));
    walkers.push_back(checkers.back().get());
  }
  TRY(walk_devices(walkers, arguments, meeting));
  return joined(checkers);
}

}  // namespace hloom::compiler
