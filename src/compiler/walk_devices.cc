#include "compiler/walk_devices.h"

#include "base/fail.h"
#include "base/thread.h"
#include "base/try.h"
#include "runtime/float_mode.h"

namespace hloom::compiler {

using hlo::Instruction;
using hlo::Literal;

namespace {

std::string text_of(const std::vector<LoopPlace>& loops) {
  std::string text;
  for (const LoopPlace& l : loops)
    text += (text.empty() ? "iteration " : ", ") + std::to_string(l.iteration) + " of " + l.loop->name();
  return text;
}

}  // namespace

Difference difference_at(const Instruction& step, const Instruction& i, std::string message,
                         const std::vector<LoopPlace>& loops) {
  return {i.name(),           step.name(),  std::string(hlo::name(i.opcode())) + " " + to_string(i.shape(), false),
          std::move(message), source_of(i), text_of(loops), -1};
}

std::string to_string(const Difference& d) {
  std::string text = d.instruction + ": " + d.what + ", in " + d.kernel;
  if (d.device >= 0) text += ", on device " + std::to_string(d.device);
  if (!d.loops.empty()) text += ", " + d.loops;
  if (!d.source.empty()) text += ", from " + d.source;
  return text + ": " + d.message;
}

Expected<Compiled> compile_for_walk(std::unique_ptr<hlo::Module> module, const CheckOptions& options) {
  Options compile_options = options.compile;
  compile_options.regions = false;
  compile_options.taps = true;
  return compile(std::move(module), compile_options);
}

namespace {

// Steps go from one meeting to the next; between them the interpreter may take as long as it likes.
void walk_as(StepWalker& walker, std::span<const Literal> arguments, std::int64_t device, collectives::Rendezvous& meeting) {
  const runtime::DefaultFloatMode mode;
  const Expected<> walked = walker.walk(arguments);
  if (!walked) meeting.fail(walked.error());
  meeting.end(device);
}

}  // namespace

Expected<> walk_devices(std::span<StepWalker* const> walkers, std::span<const std::vector<Literal>> arguments,
                        collectives::Rendezvous& meeting) {
  meeting.begin(std::chrono::milliseconds(0));
  std::vector<base::Thread> threads;
  for (std::size_t k = 0; k < walkers.size(); ++k) {
    const auto device = static_cast<std::int64_t>(k);
    auto thread = base::Thread::start("device", [&walker = *walkers[k], own = std::span<const Literal>(arguments[k]), device,
                                                 &meeting] { walk_as(walker, own, device, meeting); });
    if (thread) {
      threads.push_back(std::move(*thread));
      continue;
    }
    meeting.fail(fail(Code::ResourceExhausted, "device ", k, ": the system has no thread for it"));
    meeting.end(device);
  }
  for (base::Thread& thread : threads) thread.join();
  if (meeting.failed()) return meeting.error();
  return {};
}

}  // namespace hloom::compiler
