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
    runtime::for_each_step(c_.program.steps, [&](runtime::Step& step) {
      const auto& instructions = c_.step_instructions[number++];
      auto* call = std::get_if<runtime::Call>(&step.of);
      if (call != nullptr && call->scratch_bytes > 0 && !instructions.empty()) lend(*call, instructions);
    });
    HLOOM_CHECK(number == c_.step_instructions.size());
  }

 private:
  void lend(runtime::Call& call, const std::vector<const hlo::Instruction*>& instructions) {
    const std::int64_t workers = std::clamp<std::int64_t>(std::min<std::int64_t>(call.blocks, call.max_workers), 1, threads_);
    const std::int64_t each = round_up(call.scratch_bytes), wanted = each * workers;
    const buffers::Timeline& timeline = flow_.timeline();
    const buffers::Intervals when({{timeline.of(*instructions.front()).begin, timeline.of(*instructions.back()).end}});
    // The tightest with room for all workers, as other values are placed, or that with room for most.
    Stretch best = {0, 0};
    const auto is_better = [&](const Stretch& a, const Stretch& b) {
      const std::int64_t x = a.second - a.first, y = b.second - b.first;
      return x >= wanted && y >= wanted ? x < y : x > y;
    };
    for (const Stretch& free : free_stretches(when, beside(instructions)))
      if (is_better(free, best)) best = free;
    const std::int64_t room = std::min(wanted, (best.second - best.first) / each * each);
    if (room == 0) return;
    call.scratch_room = {0, best.first, room};
    given_.push_back({when, {best.first, best.first + room}});
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

std::int64_t worker_scratch_bytes(const runtime::Program& program) {
  std::int64_t of_calls = 0, of_forks = 0;
  runtime::for_each_step(program.steps, [&](const runtime::Step& step) {
    const auto* call = std::get_if<runtime::Call>(&step.of);
    if (call == nullptr) return;
    const std::int64_t each = round_up(call->scratch_bytes);
    if (call->scratch_room.size_bytes < each) of_calls = std::max(of_calls, each);
    of_forks = std::max(of_forks, round_up(call->forked_scratch_bytes));
  });
  return of_calls + of_forks;
}

void lend_scratch(Compiled& c, int threads) { Lender(c, threads).run(); }

}  // namespace hloom::compiler
