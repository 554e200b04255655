#include "compiler/checked_run.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <sstream>
#include <unordered_map>
#include <unordered_set>

#include "base/fail.h"
#include "base/run_status.h"
#include "base/try.h"
#include "buffers/parts.h"
#include "compiler/checked_memory.h"
#include "compiler/checked_steps.h"
#include "compiler/layout_bytes.h"
#include "compiler/step_walker.h"
#include "compiler/update_window.h"
#include "indexing/plan_window_update.h"

namespace hloom::compiler {
namespace {

using hlo::Instruction;
using runtime::Slice;
using runtime::Values;

/// A program with what its checked runs need. Never changes.
struct Checked {
  Compiled compiled;  // the program moved out
  std::unordered_set<std::string_view> checked_kernels;
};

// One run of one device.
class Run {
 public:
  Run(const Checked& checked, const runtime::Program& program, const CheckedProgram& steps, CheckedMemory& memory,
      const runtime::Device& device, runtime::ThreadPool& pool, const runtime::RunOptions& options)
      : checked_(checked), program_(program), steps_(steps), memory_(memory), device_(device), pool_(pool),
        options_(options) {}

  Expected<> run(Values parameters, Values results) {
    const library::HostPort port = runtime::host_port(options_, device_);
    set(runtime::Allocation::Kind::Device, device_.number);
    if (!options_.hosts.empty()) set(runtime::Allocation::Kind::HostPort, &port);
    for (const ValuePlace& p : steps_.constants) memory_.hold(p.value, p.at);
    for (std::size_t n = 0; n < parameters.size(); ++n) take(parameters[n], steps_.parameters[n]);
    TRY(all(steps_.steps));
    for (std::size_t n = 0; n < results.size(); ++n) TRY(give(results[n], n));
    if (const auto place = memory_.changed(in_flight_))
      return fail(Code::Internal, program_.name, ": when it ends, ", text_of(*place), " has been written by nobody who may");
    return {};
  }

 private:
  // --- Words.

  std::string text_of(std::int32_t allocation, std::int64_t from, std::int64_t to) const {
    const runtime::Allocation& a = program_.allocations[static_cast<std::size_t>(allocation)];
    std::ostringstream text;
    switch (a.kind) {
      case runtime::Allocation::Kind::Arena: text << "the arena"; break;
      case runtime::Allocation::Kind::Parameter: text << "parameter " << a.number; break;
      case runtime::Allocation::Kind::Result: text << "result " << a.number; break;
      case runtime::Allocation::Kind::Constant: text << "constant " << a.number; break;
      case runtime::Allocation::Kind::Status:
      case runtime::Allocation::Kind::Device:
      case runtime::Allocation::Kind::HostPort: text << "the run's own memory"; break;
    }
    if (a.memory_space != 0) text << " of memory space " << a.memory_space;
    text << ", bytes " << from << " to " << to;
    return std::move(text).str();
  }
  std::string text_of(const Slice& s) const { return text_of(s.allocation, s.offset, s.offset + s.size_bytes); }
  std::string text_of(const std::vector<buffers::ValueId>& values) const {
    std::string text;
    for (const buffers::ValueId v : values) text += (text.empty() ? "" : ", ") + name(v);
    return text.empty() ? "nothing" : text;
  }
  std::string text_of(const CheckedMemory::Place& p) const {
    std::ostringstream text;
    text << "byte " << p.offset << " of " << text_of(p.allocation, 0, size_of(p.allocation)) << ", where "
         << text_of(p.values) << " lies,";
    return std::move(text).str();
  }
  std::int64_t size_of(std::int32_t allocation) const {
    return program_.allocations[static_cast<std::size_t>(allocation)].size_bytes;
  }
  const std::string& name(buffers::ValueId v) const { return steps_.names[static_cast<std::size_t>(v)]; }

  // "fusion.3 (model.py:12), iteration 2 of while.1"
  std::string at(const Instruction& i) const {
    std::string text = i.name();
    if (const std::string source = source_of(i); !source.empty()) text += " (" + source + ")";
    for (const LoopPlace& l : loops_) text += ", iteration " + std::to_string(l.iteration) + " of " + l.loop->name();
    return text;
  }
  template <typename... Parts>
  Error wrong(const CheckedStep& step, const Parts&... parts) const {
    return fail(Code::Internal, at(*step.instruction), ": ", parts...);
  }

  // --- What comes in and goes out.

  // What the run has one of.
  template <typename T>
  void set(runtime::Allocation::Kind kind, const T& value) {
    for (std::size_t n = 0; n < program_.allocations.size(); ++n)
      if (program_.allocations[n].kind == kind)
        for (int copy = 0; copy < 2; ++copy)
          std::memcpy(memory_.at(copy, {static_cast<std::int32_t>(n), 0, sizeof(T)}), &value, sizeof(T));
  }

  void take(std::span<std::byte> from, const ValuePlace& to) {
    if (from.empty()) return;
    for (int copy = 0; copy < 2; ++copy) std::memcpy(memory_.at(copy, to.at), from.data(), from.size());
    memory_.hold(to.value, to.at);
  }

  Expected<> give(std::span<std::byte> to, std::size_t n) const {
    const ValuePlace& from = steps_.results[n];
    if (to.empty()) return {};
    const runtime::Allocation& own = program_.allocations[static_cast<std::size_t>(from.at.allocation)];
    if (own.kind != runtime::Allocation::Kind::Result || own.number != static_cast<std::int32_t>(n) || from.at.offset != 0)
      return fail(Code::Internal, program_.name, ": result ", n, " lies in ", text_of(from.at));
    if (!memory_.holds(from.value, from.at))
      return fail(Code::Internal, program_.name, ": result ", n, " is to be ", name(from.value), ", and holds ",
                  text_of(memory_.contents(from.at)));
    std::memcpy(to.data(), memory_.at(0, from.at), to.size());
    return {};
  }

  // --- Control flow.

  Expected<> all(const CheckedSteps& steps) {
    for (const CheckedStep& step : steps) {
      if (options_.cancel != nullptr && options_.cancel->is_cancelled())
        return fail(Code::Cancelled, program_.name, ": the run was cancelled");
      if (step.instruction->opcode() == hlo::Opcode::While)
        TRY(loop(step));
      else if (step.instruction->opcode() == hlo::Opcode::Conditional)
        TRY(branch(step));
      else
        TRY(work(step));
      for (const buffers::ValueId v : step.ends) memory_.end(v);
    }
    return {};
  }

  void end(const std::vector<buffers::ValueId>& values) {
    for (const buffers::ValueId v : values) memory_.end(v);
  }

  Expected<> check_reads(const CheckedStep& step) const {
    for (const ValuePlace& r : step.reads)
      if (!memory_.holds(r.value, r.at))
        return wrong(step, "reads ", name(r.value), " in ", text_of(r.at), ", which holds ",
                     text_of(memory_.contents(r.at)));
    return {};
  }

  // A device whose loop would never end leaves it when the run has failed elsewhere.
  Expected<> check_others() const {
    if (device_.others != nullptr && device_.others->failed()) return device_.others->error();
    return {};
  }

  Expected<bool> goes_on(const CheckedStep& step, const runtime::While& loop, std::int64_t iteration) {
    if (loop.trip_count) return iteration < *loop.trip_count;
    TRY(all(step.condition));
    TRY(check_reads(step));
    return *memory_.at(0, loop.predicate) != std::byte{0};
  }

  Expected<> loop(const CheckedStep& step) {
    if (step.steps.size() != 1) return wrong(step, "the program has no step for it");
    const auto& loop = std::get<runtime::While>(step.steps[0]->of);
    const CheckedStep::Branch& body = step.branches[0];
    memory_.rename(step.enter);
    end(step.entered);
    for (loops_.push_back({step.instruction, 0}); TRY(goes_on(step, loop, loops_.back().iteration));
         ++loops_.back().iteration) {
      TRY(check_others());
      TRY(all(body.steps));
      memory_.rename(body.leave);
      end(body.made);
    }
    loops_.pop_back();
    end(body.made);
    return {};
  }

  Expected<> branch(const CheckedStep& step) {
    if (step.steps.size() != 1) return wrong(step, "the program has no step for it");
    const auto& choice = std::get<runtime::Conditional>(step.steps[0]->of);
    TRY(check_reads(step));
    const std::byte* selector = memory_.at(0, choice.selector);
    std::int64_t number = 0;
    if (choice.selector_is_pred) {
      number = *selector == std::byte{0} ? 1 : 0;
    } else {
      std::int32_t index;
      std::memcpy(&index, selector, sizeof(index));
      const auto count = static_cast<std::int64_t>(step.branches.size());
      number = index < 0 || index >= count ? count - 1 : index;
    }
    const CheckedStep::Branch& chosen = step.branches[static_cast<std::size_t>(number)];
    TRY(all(chosen.steps));
    memory_.rename(chosen.leave);
    end(chosen.made);
    return {};
  }

  // --- Steps that work.

  static bool overlap(const Slice& a, const Slice& b) {
    return a.allocation == b.allocation && a.offset < b.offset + b.size_bytes && b.offset < a.offset + a.size_bytes;
  }

  Expected<> work(const CheckedStep& step) {
    TRY(check_reads(step));
    if (const auto* collective = collective_of(step); collective != nullptr) return meet(step, *collective);
    std::vector<Slice> written;
    for (const ValuePlace& w : step.writes) {
      written.push_back(w.at);
      if (std::ranges::none_of(step.reads, [&](const ValuePlace& r) { return overlap(r.at, w.at); })) memory_.clear(w.at);
    }
    if (step.workspace.size_bytes > 0) {
      written.push_back(step.workspace);
      memory_.clear(step.workspace);
    }
    TRY(run_in(step, 0));
    TRY(check_changes(step, written));
    TRY(check_windows(step));
    if (runs_once(step)) {
      for (const Slice& s : written) memory_.make_same(s);
    } else {
      TRY(run_in(step, 1));
    }
    for (const ValuePlace& w : step.writes) TRY(check_result(step, w.at));
    for (const ValuePlace& w : step.writes) hold(step, w);
    memory_.clear(step.workspace);
    return {};
  }

  // A copy onto itself is the same value with one more name.
  void hold(const CheckedStep& step, const ValuePlace& w) {
    for (const ValuePlace& r : step.reads)
      if (step.instruction->opcode() == hlo::Opcode::Copy && r.at == w.at) {
        const CheckedMemory::Rename rename{r.value, w.value, w.at};
        return memory_.rename({&rename, 1});
      }
    if (is_free_slice(*step.instruction))
      memory_.hold_part(w.value, w.at);
    else
      memory_.hold(w.value, w.at);
  }

  static bool is_free_slice(const Instruction& i) {
    return buffers::is_free(i) && buffers::parts_of(i)->kind == buffers::Parts::Kind::Slice;
  }

  static const runtime::Collective* collective_of(const CheckedStep& step) {
    return step.steps.size() == 1 ? std::get_if<runtime::Collective>(&step.steps[0]->of) : nullptr;
  }

  // What has a state, meets the host, or does who knows what.
  bool runs_once(const CheckedStep& step) const {
    const auto is_host = [&](const Slice& s) {
      return program_.allocations[static_cast<std::size_t>(s.allocation)].kind == runtime::Allocation::Kind::HostPort;
    };
    return std::ranges::any_of(step.steps, [&](const runtime::Step* s) {
      const auto* call = std::get_if<runtime::Call>(&s->of);
      return call != nullptr && (call->ordered || std::ranges::any_of(call->arguments, is_host));
    });
  }

  Expected<> run_in(const CheckedStep& step, int copy) {
    for (const runtime::Step* s : step.steps) {
      if (const auto* call = std::get_if<runtime::Call>(&s->of)) {
        TRY(run_call(step, *call, copy));
      } else if (const auto* moved = std::get_if<runtime::Copy>(&s->of)) {
        std::memmove(memory_.at(copy, moved->to), memory_.at(copy, moved->from),
                     static_cast<std::size_t>(moved->to.size_bytes));
      } else if (const auto* number = std::get_if<runtime::DeviceNumber>(&s->of)) {
        const std::int64_t k = number->of == runtime::DeviceNumber::Of::Replica ? device_.number / program_.partitions
                                                                              : device_.number % program_.partitions;
        const auto value = static_cast<std::uint32_t>(k);
        std::memcpy(memory_.at(copy, number->to), &value, sizeof(value));
      }
    }
    return {};
  }

  Expected<> run_call(const CheckedStep& step, const runtime::Call& call, int copy) {
    std::vector<void*> pointers;
    base::RunStatus* status = nullptr;
    for (const Slice& s : call.arguments) {
      pointers.push_back(memory_.at(copy, s));
      if (program_.allocations[static_cast<std::size_t>(s.allocation)].kind == runtime::Allocation::Kind::Status)
        status = reinterpret_cast<base::RunStatus*>(memory_.at(copy, s));
    }
    const auto workers = static_cast<int>(std::clamp<std::int64_t>(call.blocks, 1, std::min(call.max_workers, pool_.num_threads())));
    constexpr std::int64_t kLine = 128;
    const std::int64_t stride = (call.scratch_bytes + kLine - 1) / kLine * kLine;
    base::AlignedBytes scratch(stride * workers);
    CheckedMemory::fill(copy, scratch.bytes());
    pool_.parallel_for_blocks(call.function, pointers.data(), call.blocks, workers, {scratch.data(), stride});
    if (status != nullptr && base::has_failed(*status)) return base::take_failure(*status, at(*step.instruction));
    return {};
  }

  // Code that looks at each of its accesses is trusted with what lies far away.
  bool is_trusted(const CheckedStep& step) const {
    return std::ranges::all_of(step.steps, [&](const runtime::Step* s) {
      const auto* call = std::get_if<runtime::Call>(&s->of);
      return call == nullptr || checked_.checked_kernels.contains(call->name);
    });
  }

  Expected<> check_changes(const CheckedStep& step, std::vector<Slice> written) const {
    const std::vector<Slice> near = written;
    written.insert(written.end(), in_flight_.begin(), in_flight_.end());
    const auto place = is_trusted(step) ? memory_.changed(written, near) : memory_.changed(written);
    if (place) return wrong(step, "writes ", text_of(*place), " which is none of its results");
    return {};
  }

  // The second copy is as the first was before.
  Expected<> check_windows(const CheckedStep& step) const {
    for (std::int64_t leaf = 0; leaf < num_leaves(step.instruction->shape()); ++leaf)
      if (is_update_in_place(*step.instruction, leaf)) TRY(check_window(step, leaf));
    return {};
  }

  bool is_update_in_place(const Instruction& i, std::int64_t leaf) const {
    if (!indexing::is_window_update(i, leaf)) return false;
    const indexing::WindowUpdatePlan plan = indexing::plan_window_update(i, leaf);
    if (!plan.in_place() || plan.base_operand < 0 || !i.operand(plan.base_operand)->shape().is_array()) return false;
    return memory_.are_same(place_of(i, leaf), place_of(*i.operand(plan.base_operand), 0));
  }

  Expected<> check_window(const CheckedStep& step, std::int64_t leaf) const {
    const auto value = [&](std::int64_t operand) { return value_before(*step.instruction->operand(operand)); };
    const auto window = TRY(UpdateWindow::create(*step.instruction, leaf, value));
    if (!window) return {};
    const Slice at = place_of(*step.instruction, leaf);
    for (std::int64_t byte = 0; byte < at.size_bytes; byte = window->end_of_element(byte)) {
      const auto next = memory_.difference({at.allocation, at.offset + byte, at.size_bytes - byte});
      if (!next) break;
      byte += *next;
      if (!window->contains_byte(byte))
        return wrong(step, "writes byte ", byte, " of its result in ", text_of(at),
                     ", which is outside of the window that it updates");
    }
    return {};
  }

  Slice place_of(const Instruction& i, std::int64_t leaf) const {
    const buffers::Slice& s = checked_.compiled.assignment.slice(i, leaf);
    return {s.allocation, s.offset, s.bytes};
  }

  hlo::Literal value_before(const Instruction& operand) const {
    const Slice at = place_of(operand, 0);
    return load_literal(operand.shape(), {memory_.at(1, at), static_cast<std::size_t>(at.size_bytes)});
  }

  Expected<> check_result(const CheckedStep& step, const Slice& at) const {
    const std::optional<std::int64_t> byte = memory_.difference(at);
    if (!byte) return {};
    return wrong(step, "byte ", *byte, " of its result in ", text_of(at),
                 memory_.is_untouched(at, *byte) ? " is not written"
                                                 : " depends on memory that holds nothing");
  }

  // --- Collectives. Their results may be written by others from the start until they are done.

  Expected<> meet(const CheckedStep& step, const runtime::Collective& collective) {
    using Part = runtime::Collective::Part;
    if (collective.part != Part::Done)
      for (const ValuePlace& w : step.writes) {
        if (std::ranges::none_of(step.reads, [&](const ValuePlace& r) { return overlap(r.at, w.at); })) memory_.clear(w.at);
        in_flight_.push_back(w.at);
      }
    std::vector<void*>& pointers = pointers_[collective.number];
    if (collective.part != Part::Done) {
      pointers.clear();
      for (const Slice& s : collective.arguments) pointers.push_back(memory_.at(0, s));
    }
    TRY(runtime::run_collective(device_, program_.collectives[static_cast<std::size_t>(collective.number)],
                                collective.part, pointers.data(), pool_, room_));
    if (collective.part == Part::Start) return {};
    for (const ValuePlace& w : step.writes) {
      memory_.make_same(w.at);
      memory_.hold(w.value, w.at);
      std::erase(in_flight_, w.at);
    }
    return {};
  }

  const Checked& checked_;
  const runtime::Program& program_;
  const CheckedProgram& steps_;
  CheckedMemory& memory_;
  const runtime::Device& device_;
  runtime::ThreadPool& pool_;
  const runtime::RunOptions& options_;
  std::vector<LoopPlace> loops_;
  std::vector<Slice> in_flight_;
  std::unordered_map<std::int32_t, std::vector<void*>> pointers_;
  std::vector<void*> room_;
};

// Everything that a program needs to be run in this way.
class CheckedRunner final : public runtime::StepRunner {
 public:
  explicit CheckedRunner(Compiled compiled) : checked_{std::move(compiled), {}} {
    for (const kernels::Kernel& kernel : checked_.compiled.kernels)
      if (kernel.checks_bounds) checked_.checked_kernels.insert(kernel.name);
  }

  Expected<> run(const runtime::Program& program, const runtime::Device& device, Values parameters, Values results,
                 runtime::ThreadPool& pool, const runtime::RunOptions& options) const override {
    const CheckedProgram steps = TRY(checked_program(checked_.compiled, program));
    CheckedMemory memory = TRY(CheckedMemory::create(program));
    return Run(checked_, program, steps, memory, device, pool, options).run(parameters, results);
  }

 private:
  Checked checked_;
};

}  // namespace

Expected<std::unique_ptr<runtime::Executor>> make_executor(Compiled compiled, runtime::ExecutorOptions options) {
  runtime::Program program = std::move(compiled.program);
  if (compiled.check_memory) {
    TRY(checked_program(compiled, program));
    options.runner = std::make_shared<CheckedRunner>(std::move(compiled));
  }
  return runtime::Executor::create(std::move(program), options);
}

}  // namespace hloom::compiler
