#include "compiler/lend_scratch.h"

#include <algorithm>

#include "base/check.h"
#include "buffers/concurrency.h"

namespace hloom::compiler {
namespace {

using Stretch = std::pair<std::int64_t, std::int64_t>;  // bytes [first, second) of the arena

constexpr std::int64_t kLine = 64;

std::int64_t round_up(std::int64_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }

class Lender {
 public:
  Lender(Compiled& c, int threads)
      : c_(c), threads_(threads), flow_(*c.module), concurrency_(flow_, buffers::Concurrency::kMostReach) {}

  void run() {
    std::size_t number = 0;
    lend(c_.program.steps, number);
    HLOOM_CHECK(number == c_.step_instructions.size());
  }

 private:
  // Steps are numbered as observers count them: a loop before what it holds.
  void lend(runtime::Steps& steps, std::size_t& number) {
    for (runtime::Step& step : steps) {
      const auto& instructions = c_.step_instructions[number++];
      if (auto* call = std::get_if<runtime::Call>(&step.of)) {
        if (call->scratch_bytes > 0 && !instructions.empty()) lend(*call, instructions);
      } else if (auto* loop = std::get_if<runtime::While>(&step.of)) {
        lend(loop->condition, number);
        lend(loop->body, number);
      } else if (auto* conditional = std::get_if<runtime::Conditional>(&step.of)) {
        for (runtime::Steps& branch : conditional->branches) lend(branch, number);
      }
    }
  }

  void lend(runtime::Call& call, const std::vector<const hlo::Instruction*>& instructions) {
    const std::int64_t workers = std::clamp<std::int64_t>(std::min<std::int64_t>(call.blocks, call.max_workers), 1, threads_);
    const std::int64_t wanted = round_up(call.scratch_bytes) * workers;
    const buffers::Timeline& timeline = flow_.timeline();
    const buffers::Intervals when({{timeline.of(*instructions.front()).begin, timeline.of(*instructions.back()).end}});
    std::int64_t best = 0;
    for (const auto& [begin, end] : free_stretches(when, beside(instructions))) {
      if (end - begin < wanted || (best > 0 && end - begin >= best)) continue;
      best = end - begin;  // the tightest, as other values are placed
      call.scratch_room = {0, begin, wanted};
    }
    if (best > 0) given_.push_back({when, {call.scratch_room.offset, call.scratch_room.offset + wanted}});
  }

  // When steps work that may go on beside these: they are not to wait for each other's scratch.
  buffers::Intervals beside(const std::vector<const hlo::Instruction*>& instructions) const {
    buffers::Intervals all;
    for (const hlo::Instruction* i : instructions) all = united(all, concurrency_.neighbours(*i).beside);
    return all;
  }

  std::vector<Stretch> free_stretches(const buffers::Intervals& when, const buffers::Intervals& beside) const {
    std::vector<Stretch> taken, free;
    for (const buffers::ArenaBlock& b : c_.assignment.blocks())
      if (b.allocation == 0 && (overlap(b.live, when) || overlap(b.live, beside)))
        taken.emplace_back(b.offset, b.offset + b.bytes);
    for (const Given& g : given_)
      if (overlap(g.when, beside)) taken.push_back(g.stretch);
    std::ranges::sort(taken);
    std::int64_t end = 0;
    const std::int64_t all = c_.assignment.allocations().front().bytes;
    taken.emplace_back(all, all);
    for (const auto& [from, to] : taken) {
      if (from > end) free.emplace_back(end, from);
      end = std::max(end, round_up(to));
    }
    return free;
  }

  struct Given {
    buffers::Intervals when;
    Stretch stretch;
  };

  Compiled& c_;
  std::int64_t threads_;
  buffers::Flow flow_;
  buffers::Concurrency concurrency_;
  std::vector<Given> given_;
};

}  // namespace

void lend_scratch(Compiled& c, int threads) { Lender(c, threads).run(); }

}  // namespace hloom::compiler
