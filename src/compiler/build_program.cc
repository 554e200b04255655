#include "compiler/build_program.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

#include "base/check.h"
#include "base/fail.h"
#include "base/run_status.h"
#include "base/try.h"
#include "buffers/parts.h"
#include "compiler/build_collective.h"
#include "compiler/layout_bytes.h"
#include "compiler/memory_limits.h"
#include "compiler/routines.h"
#include "jit/compile.h"
#include "jit/disk_cache.h"
#include "kernels/plan_dot.h"
#include "kernels/plan_fusion.h"
#include "kernels/plan_packing.h"
#include "kernels/plan_region.h"
#include "kernels/plan_sort.h"
#include "kernels/stream_stores.h"
#include "library/rng_state.h"
#include "passes/check_memory_spaces.h"
#include "runtime/read_only_memory.h"

// GCC 12 takes the other alternatives of a moved variant for uninitialized members.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

namespace hloom::compiler {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;
using runtime::Steps;

runtime::Slice to_runtime(const buffers::Slice& s) {
  return {s.allocation, s.offset, s.bytes};
}

bool overlap(const runtime::Slice& a, const runtime::Slice& b) {
  return a.allocation == b.allocation && a.offset < b.offset + b.size_bytes && b.offset < a.offset + a.size_bytes;
}

/// What does no work itself.
bool is_silent(const Instruction& i) {
  switch (i.opcode()) {
    case Opcode::Parameter:
    case Opcode::Constant:
    case Opcode::Tuple:
    case Opcode::GetTupleElement:
    case Opcode::Bitcast:
    case Opcode::AfterAll:
    case Opcode::AddDependency:
    case Opcode::OptBarrier: return true;
    default: return buffers::is_free(i);
  }
}

class ProgramBuilder {
 public:
  using Planned = std::function<void(const kernels::Kernel&)>;

  ProgramBuilder(Compiled& compiled, const Options& options, const base::Target& target, jit::DiskCache* cache,
                 const Planned& planned)
      : c_(compiled), options_(options), target_(target), unit_(kernels::vector_unit(target)), cache_(cache), planned_(planned) {}

  Expected<> build() {
    TRY(passes::check_memory_spaces(*c_.module));
    c_.program.replicas = c_.module->config().replica_count;
    c_.program.partitions = c_.module->config().num_partitions;
    ports();
    TRY(allocations());
    c_.program.steps = TRY(steps(*c_.module->entry()));
    c_.program.constant_memory = constant_memory_;
    return constant_memory_->protect();
  }

 private:
  void ports() {
    const Computation& entry = *c_.module->entry();
    c_.program.name = c_.module->name();
    c_.program.arena_owners = arena_owners(c_.assignment);
    const auto add = [](const Shape& shape, std::vector<runtime::Port>& to) {
      for (const Shape* leaf : leaves(shape))
        to.push_back({leaf->size_bytes(), std::max<std::int64_t>(1, byte_width(real_type(leaf->dtype())))});
    };
    for (const Instruction* p : entry.parameters()) add(p->shape(), c_.program.parameters);
    add(entry.root()->shape(), c_.program.results);
    for (const buffers::Allocation& a : c_.assignment.allocations())
      if (a.kind == buffers::Allocation::Kind::Parameter) {
        if (a.aliased_result >= 0)
          c_.program.aliases.push_back(
              {static_cast<std::int32_t>(a.aliased_result), static_cast<std::int32_t>(a.number)});
        else
          c_.program.parameters[static_cast<std::size_t>(a.number)].overwritten = a.writable;
      }
  }

  // From each literal the module lets go when the program has its copy, so that there are never two of all constants.
  Expected<> allocations() {
    using Kind = buffers::Allocation::Kind;
    const std::vector<buffers::Allocation>& all = c_.assignment.allocations();
    const auto owned = constants_of_steps();
    for (const buffers::Allocation& a : all) {
      runtime::Allocation to;
      to.number = static_cast<std::int32_t>(a.number);
      to.size_bytes = a.bytes;
      to.memory_space = a.space;
      switch (a.kind) {
        case Kind::Arena: to.kind = runtime::Allocation::Kind::Arena; break;
        case Kind::Parameter: to.kind = runtime::Allocation::Kind::Parameter; break;
        case Kind::Result: to.kind = runtime::Allocation::Kind::Result; break;
        case Kind::Constant:
          to.kind = runtime::Allocation::Kind::Constant;
          to.number = TRY(copy_constant(*hlo::leaves(a.constant->literal())[static_cast<std::size_t>(a.leaf)], a.bytes));
          if (&a == &all.back() || (&a)[1].constant != a.constant) let_go(*owned.at(a.constant));
          break;
      }
      c_.program.allocations.push_back(to);
    }
    return {};
  }

  std::unordered_map<const Instruction*, Instruction*> constants_of_steps() const {
    std::unordered_map<const Instruction*, Instruction*> all;
    for (Computation& computation : c_.module->computations())
      for (Instruction& i : computation.instructions())
        if (i.opcode() == Opcode::Constant && c_.assignment.has(i)) all.emplace(&i, &i);
    return all;
  }

  // Small ones are read again: where a window starts, how long a transform is.
  static void let_go(Instruction& constant) {
    constexpr std::int64_t kSmall = 4096;
    if (constant.shape().size_bytes() >= kSmall) constant.mutable_attr<hlo::ConstantAttr>().literal.release();
  }

  // Room for the next of Program::constants, to be filled before build() ends.
  Expected<std::span<std::byte>> add_constant(std::int64_t size_bytes) {
    const std::span<std::byte> room = TRY(constant_memory_->add(size_bytes));
    c_.program.constants.push_back(room);
    return room;
  }

  // Below that, constants share pages.
  static constexpr std::int64_t kMappedBytes = 64 << 10;

  // One copy: of this process, or of all that have the same cache.
  Expected<std::int32_t> copy_constant(const hlo::Literal& literal, std::int64_t size_bytes) {
    if (cache_ != nullptr && size_bytes >= kMappedBytes) {
      const runtime::Pages pages = TRY(runtime::Pages::map(size_bytes));
      const std::span<std::byte> bytes(pages.data(), static_cast<std::size_t>(size_bytes));
      store_literal(literal, literal.shape(), bytes);
      if (auto file = cache_->map(bytes)) {
        c_.program.constants.push_back(file->bytes());
        c_.program.kept.push_back(std::move(file));
        return static_cast<std::int32_t>(c_.program.constants.size() - 1);
      }
    }
    const std::span<std::byte> room = TRY(add_constant(size_bytes));
    store_literal(literal, literal.shape(), room);
    return static_cast<std::int32_t>(c_.program.constants.size() - 1);
  }

  Expected<Steps> steps(const Computation& computation) {
    Steps result;
    std::vector<const Instruction*> region;
    std::string region_number;
    const auto flush = [&]() -> Expected<> {
      if (region.empty()) return {};
      if (region.size() == 1 && !is_control(*region[0]))
        TRY(step(*region[0], result));
      else
        TRY(region_step(region, result));
      region.clear();
      return {};
    };
    for (const Instruction& i : computation.instructions()) {
      if (is_silent(i)) continue;
      const auto& decisions = i.annotations().decisions;
      const auto found = decisions.find("region");
      const std::string number = options_.regions && found != decisions.end() ? found->second : "";
      if (number != region_number || number.empty()) TRY(flush());
      region_number = number;
      if (number.empty())
        TRY(step(i, result));
      else
        region.push_back(&i);
    }
    TRY(flush());
    return result;
  }

  static bool is_control(const Instruction& i) {
    return i.opcode() == Opcode::While || i.opcode() == Opcode::Conditional || i.opcode() == Opcode::Call;
  }

  void note(std::vector<const Instruction*> instructions) { c_.step_instructions.push_back(std::move(instructions)); }

  Expected<> step(const Instruction& i, Steps& to) {
    if (is_device_transfer(i)) return transfer(i, to);
    if (is_routine(i)) return routine(i, to);
    switch (i.opcode()) {
      case Opcode::Fusion: return call(i, to);
      case Opcode::Copy: return copy(i, to);
      case Opcode::AsyncStart: return start_window(i, to);
      case Opcode::CopyStart: return start_copy(i, to);
      case Opcode::AsyncDone:
      case Opcode::CopyDone: return finish_copy(i, to);
      case Opcode::RngGetAndUpdateState: return random_state(i, to);
      case Opcode::While: {
        note({&i});
        runtime::While w;
        const auto& decisions = i.annotations().decisions;
        if (const auto found = decisions.find("trip_count"); found != decisions.end() && !options_.taps) {
          w.trip_count = std::stoll(found->second);
        } else {
          w.condition = TRY(steps(*i.condition()));
          w.predicate = to_runtime(c_.assignment.slice(*i.condition()->root()));
        }
        w.body = TRY(steps(*i.body()));
        to.push_back({std::move(w)});
        return {};
      }
      case Opcode::Conditional: {
        note({&i});
        runtime::Conditional conditional;
        conditional.selector = to_runtime(c_.assignment.slice(*i.operand(0)));
        conditional.selector_is_pred = i.operand(0)->shape().dtype() == DType::Pred;
        for (const Computation* branch : i.called()) {
          Steps inner = TRY(steps(*branch));
          conditional.branches.push_back(std::move(inner));
        }
        to.push_back({std::move(conditional)});
        return {};
      }
      case Opcode::Call: {
        Steps inner = TRY(steps(*i.to_apply()));
        for (runtime::Step& s : inner) to.push_back(std::move(s));
        return {};
      }
      case Opcode::PartitionId:
      case Opcode::ReplicaId: return device_number(i, to);
      case Opcode::AllGatherDone:
      case Opcode::AllReduceDone:
      case Opcode::CollectivePermuteDone: return done(i, to);
      default:
        if (is_collective(i)) return collective(i, to);
        return fail(Code::Unimplemented, i.name(), ": no kernel yet for ", i.opcode(), " in ", i.shape());
    }
  }

  std::int32_t number_start(const Instruction& i) {
    const auto number = static_cast<std::int32_t>(started_copies_.size());
    started_copies_.emplace(&i, number);
    return number;
  }

  // The one fusion that it wraps, of its operands, as a call beside what follows.
  Expected<> start_window(const Instruction& i, Steps& to) {
    const std::int32_t number = number_start(i);
    Steps wrapped;
    TRY(call(*i.to_apply()->root(), wrapped));
    auto* fetch = std::get_if<runtime::Call>(&wrapped.back().of);
    HLOOM_CHECK(wrapped.size() == 1 && fetch != nullptr);
    to.push_back({runtime::Start{number, std::move(*fetch)}});
    return {};
  }

  Expected<> start_copy(const Instruction& i, Steps& to) {
    const std::int32_t number = number_start(i);
    note({&i});
    const runtime::Copy copy{to_runtime(c_.assignment.slice(*i.operand(0))), to_runtime(c_.assignment.slice(i))};
    to.push_back({runtime::Start{number, copy}});
    return {};
  }

  Expected<> finish_copy(const Instruction& i, Steps& to) {
    note({&i});
    to.push_back({runtime::Finish{started_copies_.at(i.operand(0))}});
    return {};
  }

  Expected<> device_number(const Instruction& i, Steps& to) {
    using Of = runtime::DeviceNumber::Of;
    note({&i});
    to.push_back({runtime::DeviceNumber{i.opcode() == Opcode::ReplicaId ? Of::Replica : Of::Partition,
                                        to_runtime(c_.assignment.slice(i))}});
    return {};
  }

  Expected<> collective(const Instruction& i, Steps& to) {
    BuiltCollective built = TRY(build_collective(i, static_cast<std::int64_t>(c_.program.collectives.size())));
    c_.program.collectives.push_back(std::move(built.operation));
    for (kernels::Kernel& kernel : built.kernels) keep(std::move(kernel));
    runtime::Collective step;
    step.number = static_cast<std::int32_t>(c_.program.collectives.size() - 1);
    for (const Instruction* operand : i.operands()) step.arguments.push_back(to_runtime(c_.assignment.slice(*operand)));
    for (const std::int64_t leaf : written_leaves(i)) step.arguments.push_back(to_runtime(c_.assignment.slice(i, leaf)));
    if (i.opcode() == Opcode::AllGatherStart || i.opcode() == Opcode::AllReduceStart ||
        i.opcode() == Opcode::CollectivePermuteStart) {
      step.part = runtime::Collective::Part::Start;
      started_.emplace(&i, step);
    }
    note({&i});
    to.push_back({std::move(step)});
    return {};
  }

  Expected<> transfer(const Instruction& i, Steps& to) {
    collectives::Operation operation = TRY(build_transfer(i, std::ssize(c_.program.collectives)));
    runtime::Collective step;
    step.number = static_cast<std::int32_t>(operation.number);
    const Instruction& value = operation.kind == collectives::Kind::Take ? i : *i.operand(0);
    for (std::int64_t leaf = 0; leaf < std::ssize(operation.arrays); ++leaf)
      step.arguments.push_back(to_runtime(c_.assignment.slice(value, leaf)));
    c_.program.collectives.push_back(std::move(operation));
    note({&i});
    to.push_back({std::move(step)});
    return {};
  }

  Expected<> done(const Instruction& i, Steps& to) {
    runtime::Collective step = started_.at(i.operand(0));
    step.part = runtime::Collective::Part::Done;
    note({&i});
    to.push_back({std::move(step)});
    return {};
  }

  Expected<> call(const Instruction& fusion, Steps& to) {
    kernels::Kernel kernel = TRY(plan(fusion));
    kernel.name = fusion.name();
    std::vector<runtime::Slice> arguments;
    for (const Instruction* operand : fusion.operands())
      for (std::int64_t leaf = 0; leaf < num_leaves(operand->shape()); ++leaf)
        arguments.push_back(to_runtime(c_.assignment.slice(*operand, leaf)));
    for (std::int64_t leaf = 0; leaf < num_leaves(fusion.shape()); ++leaf)
      arguments.push_back(to_runtime(c_.assignment.slice(fusion, leaf)));
    note({&fusion});
    note_overlaps(kernel, arguments);
    if (moves_alone(fusion)) kernels::stream_stores(kernel, kernels::least_streamed_bytes(target_, is_read_again(fusion)));
    auto split_bytes = kernel.cuts.empty() ? std::vector<std::vector<std::int64_t>>() : parts_of(fusion);
    add_call(std::move(kernel), std::move(arguments), to);
    std::get<runtime::Call>(to.back().of).split_bytes = std::move(split_bytes);
    return {};
  }

  // Where the parts of operands and results begin.
  static std::vector<std::vector<std::int64_t>> parts_of(const Instruction& fusion) {
    std::vector<std::vector<std::int64_t>> all;
    for (const Instruction* operand : fusion.operands())
      for (const Shape* leaf : leaves(operand->shape())) all.push_back(part_starts(*leaf));
    for (const Shape* leaf : leaves(fusion.shape())) all.push_back(part_starts(*leaf));
    return all;
  }

  // Bytes, if the parts of the split lie one behind the other: it is of the outermost dimension.
  static std::vector<std::int64_t> part_starts(const Shape& shape) {
    if (!shape.is_array() || !shape.has_layout() || shape.layout().parts().splits.empty()) return {};
    const Layout::Split& split = shape.layout().parts().splits[0];
    const auto& order = shape.layout().minor_to_major;
    const auto outermost = std::find_if(order.rbegin(), order.rend(), [&](std::int64_t d) { return shape.dim(d) > 1; });
    if (outermost == order.rend() || *outermost != split.dimension || !shape.layout().unplaced().is_plain()) return {};
    std::vector<std::int64_t> starts;
    for (const std::int64_t at : split.indices) starts.push_back(at * (shape.size_bytes() / shape.dim(split.dimension)));
    return starts;
  }

  Expected<> routine(const Instruction& i, Steps& to) {
    const library::RoutinePlan plan = TRY(plan_routine(i));
    return add_routine(i, plan, to);
  }

  // A step for each call of the routine; the calls of one instruction have its name.
  Expected<> add_routine(const Instruction& i, const library::RoutinePlan& plan, Steps& to) {
    if (plan.keeps) c_.program.kept.push_back(plan.keeps);
    for (const library::Routine& r : plan.calls) {
      runtime::Call call;
      call.name = i.name();
      call.function = r.function;
      for (const library::Argument& a : r.arguments) {
        using Kind = library::Argument::Kind;
        const runtime::Slice slice = TRY(argument(i, a, r));
        call.arguments.push_back(slice);
        call.written.push_back(a.kind == Kind::Result || a.kind == Kind::Workspace);
      }
      call.cost = r.blocks * r.block_cost;
      call.ordered = plan.keeps != nullptr || i.opcode() == Opcode::CustomCall;
      call.blocks = r.blocks;
      call.max_workers = workers(r.blocks, r.block_cost);
      call.scratch_bytes = r.scratch_bytes;
      call.may_fail = std::ranges::find(r.arguments, library::Argument::Kind::Status, &library::Argument::kind) !=
                      r.arguments.end();
      note({&i});
      to.push_back({std::move(call)});
    }
    return {};
  }

  // Each device has one state, however many instructions read it.
  Expected<> random_state(const Instruction& i, Steps& to) {
    if (!rng_states_) rng_states_ = std::make_shared<library::RngStates>(num_devices(c_.program));
    return add_routine(i, library::plan_rng_state(rng_states_, i.attr<hlo::RngStateAttr>().delta), to);
  }

  Expected<runtime::Slice> argument(const Instruction& i, const library::Argument& a, const library::Routine& r) {
    using Kind = library::Argument::Kind;
    switch (a.kind) {
      case Kind::Descriptor: return constant_slice(r.descriptor);
      case Kind::Status: return own_slice(status_, runtime::Allocation::Kind::Status, sizeof(base::RunStatus));
      case Kind::Device: return own_slice(device_, runtime::Allocation::Kind::Device, sizeof(std::int64_t));
      case Kind::HostPort: return own_slice(host_, runtime::Allocation::Kind::HostPort, sizeof(void*));
      case Kind::Operand: return operand_slice(i, a.number);
      case Kind::Result: return to_runtime(c_.assignment.slice(i, a.number));
      case Kind::Workspace: break;
    }
    const runtime::Slice whole = to_runtime(c_.assignment.workspace(i));
    return runtime::Slice{whole.allocation, whole.offset + a.number, whole.size_bytes - a.number};
  }

  // A fusion has a value once that its routine takes twice.
  runtime::Slice operand_slice(const Instruction& step, std::int64_t leaf) const {
    const bool fused = step.opcode() == Opcode::Fusion;
    for (const Instruction* operand : routine_of(step).operands()) {
      const Instruction& given = fused ? *step.operand(read_by_routine(*operand).parameter_number()) : *operand;
      if (leaf < num_leaves(operand->shape())) return to_runtime(c_.assignment.slice(given, leaf));
      leaf -= num_leaves(operand->shape());
    }
    HLOOM_CHECK(false);
    return {};
  }

  // Memory beside what the buffers stage knows. Equal constants are one.
  Expected<runtime::Slice> constant_slice(const base::AlignedBytes& bytes) {
    const auto size = bytes.size_bytes();
    const auto& constants = c_.program.constants;
    const auto same = std::ranges::find_if(routine_constants_, [&](std::int32_t allocation) {
      const auto number = c_.program.allocations[static_cast<std::size_t>(allocation)].number;
      return std::ranges::equal(constants[static_cast<std::size_t>(number)], bytes.bytes());
    });
    if (same != routine_constants_.end()) return runtime::Slice{*same, 0, size};
    const std::span<std::byte> room = TRY(add_constant(size));
    std::ranges::copy(bytes.bytes(), room.begin());
    const auto number = static_cast<std::int32_t>(constants.size() - 1);
    routine_constants_.push_back(add_allocation({runtime::Allocation::Kind::Constant, number, size}));
    return runtime::Slice{routine_constants_.back(), 0, size};
  }

  // What a run has one of, made when it is first needed.
  runtime::Slice own_slice(std::int32_t& allocation, runtime::Allocation::Kind kind, std::int64_t size_bytes) {
    if (allocation < 0) allocation = add_allocation({kind, 0, size_bytes});
    return {allocation, 0, size_bytes};
  }

  std::int32_t add_allocation(runtime::Allocation allocation) {
    c_.program.allocations.push_back(allocation);
    return static_cast<std::int32_t>(c_.program.allocations.size() - 1);
  }

  void keep(kernels::Kernel kernel) {
    c_.kernels.push_back(std::move(kernel));
    planned_(c_.kernels.back());
  }

  Expected<kernels::Kernel> plan(const Instruction& fusion) const {
    if (kernels::is_dot_fusion(fusion)) return kernels::plan_dot(fusion, unit_);
    if (kernels::is_sort_fusion(fusion)) return kernels::plan_sort(fusion);
    return kernels::plan_fusion(fusion);
  }

  // Dots and sorts come back to what they have written.
  static bool moves_alone(const Instruction& fusion) {
    return !kernels::is_dot_fusion(fusion) && !kernels::is_sort_fusion(fusion);
  }

  // Whether a step of the same run reads what the instruction makes.
  bool is_read_again(const Instruction& i) const {
    const Computation& entry = *c_.module->entry();
    return i.parent() != &entry || std::ranges::any_of(i.users(), [&](const Instruction* user) {
             return !is_silent(*user) || (user != entry.root() && is_read_again(*user));
           });
  }

  void add_call(kernels::Kernel kernel, std::vector<runtime::Slice> arguments, Steps& to) {
    note_overlaps(kernel, arguments);
    runtime::Call call;
    call.name = kernel.name;
    call.arguments = std::move(arguments);
    for (const kernels::Argument& a : kernel.arguments) call.written.push_back(a.written);
    call.cost = kernel.blocks * kernel.block_cost;
    call.blocks = kernel.blocks;
    call.max_workers = workers(kernel.blocks, kernel.block_cost);
    call.scratch_bytes = kernel.scratch_bytes;
    if (options_.check_bounds) report_outside(kernel, call);
    call.cuts = kernel.cuts;
    keep(std::move(kernel));
    to.push_back({std::move(call)});
  }

  void report_outside(kernels::Kernel& kernel, runtime::Call& call) {
    kernel.checks_bounds = true;
    call.arguments.push_back(own_slice(status_, runtime::Allocation::Kind::Status, sizeof(base::RunStatus)));
    call.written.push_back(false);
    call.may_fail = true;
  }

  // Enough work for each that waking it pays.
  static std::int32_t workers(std::int64_t blocks, std::int64_t block_cost) {
    const std::int64_t worth = blocks * block_cost / (64 * 1024);
    return static_cast<std::int32_t>(std::clamp<std::int64_t>(std::min(worth, blocks), 1, 1 << 16));
  }

  Expected<> copy(const Instruction& i, Steps& to) {
    for (std::int64_t leaf = 0; leaf < num_leaves(i.shape()); ++leaf) {
      const runtime::Slice from = to_runtime(c_.assignment.slice(*i.operand(0), leaf));
      const runtime::Slice into = to_runtime(c_.assignment.slice(i, leaf));
      if (into.size_bytes == 0 || from == into) continue;
      const Shape* source = leaves(i.operand(0)->shape())[static_cast<std::size_t>(leaf)];
      const Shape* target = leaves(i.shape())[static_cast<std::size_t>(leaf)];
      if (kernels::changes_packing(*source, *target)) {
        note({&i});
        add_call(kernels::plan_packing(i.name(), *source, *target), {from, into}, to);
        continue;
      }
      if (!(source->layout().unplaced() == target->layout().unplaced())) return region_step({&i}, to);
      note({&i});
      to.push_back({runtime::Copy{from, into}});
    }
    return {};
  }

  // One kernel for several instructions; its arguments are whole allocations. Of a single copy they are its two slices.
  Expected<> region_step(const std::vector<const Instruction*>& instructions, Steps& to) {
    kernels::Builder builder("region." + std::to_string(++num_regions_));
    // Slices that share memory at other times would be arguments of which the planner thinks that they are apart.
    const bool apart = instructions.size() == 1 && instructions[0]->opcode() == Opcode::Copy;
    std::map<std::tuple<std::int32_t, std::int64_t, std::int64_t>, int> arguments;  // slice to argument
    std::vector<runtime::Slice> slices;
    const auto place_of = [&](const Instruction& i, std::int64_t leaf) -> kernels::Place {
      const buffers::Slice s = canonical(c_.assignment.slice(i, leaf));
      const buffers::Allocation& a = c_.assignment.allocation(s);
      const runtime::Slice of = apart ? to_runtime(s) : runtime::Slice{s.allocation, 0, a.bytes};
      const auto [found, added] =
          arguments.emplace(std::tuple(of.allocation, of.offset, of.size_bytes), static_cast<int>(arguments.size()));
      if (added) {
        kernels::Argument argument;
        argument.name = "m" + std::to_string(s.allocation) + (apart ? "_" + std::to_string(s.offset) : "");
        argument.num_elements = of.size_bytes;
        argument.written = a.writable;
        argument.memory_space = a.space;
        const bool aligned = argument.written && a.kind == buffers::Allocation::Kind::Arena && of.offset % 64 == 0;
        argument.alignment = aligned ? 64 : 1;
        builder.kernel().arguments.push_back(argument);
        slices.push_back(of);
      }
      return {found->second, s.offset - of.offset, *leaves(i.shape())[static_cast<std::size_t>(leaf)]};
    };
    // All arguments first: scratch is numbered behind them.
    for (const Instruction* i : instructions) name_places(*i, place_of);
    std::int64_t forked_scratch_bytes = 0;
    TRY(kernels::plan_steps_into(builder, instructions, place_of, unit_,
                                 [&](const Instruction& i, const kernels::Places& places) {
                                   return plan_called(i, places, forked_scratch_bytes);
                                 }));
    kernels::Kernel kernel = std::move(builder).finish();
    if (apart) kernels::stream_stores(kernel, kernels::least_streamed_bytes(target_, is_read_again(*instructions[0])));
    const bool forks = !kernel.callees.empty();
    note(instructions);
    add_call(std::move(kernel), std::move(slices), to);
    auto& call = std::get<runtime::Call>(to.back().of);
    call.forks = forks;
    call.forked_scratch_bytes = forked_scratch_bytes;
    return {};
  }

  // A kernel of its own, which a region calls.
  Expected<kernels::CalledKernel> plan_called(const Instruction& i, const kernels::Places& places,
                                              std::int64_t& forked_scratch_bytes) {
    kernels::Kernel kernel = TRY(i.opcode() == Opcode::Copy ? Expected<kernels::Kernel>(kernels::plan_copy(i)) : plan(i));
    kernel.name = i.name();
    std::vector<kernels::Place> all = places.operands;
    all.insert(all.end(), places.results.begin(), places.results.end());
    note_overlaps(kernel, [&](std::size_t a, std::size_t b) {
      return all[a].argument == all[b].argument &&
             all[a].byte_offset < all[b].byte_offset + all[b].shape.size_bytes() &&
             all[b].byte_offset < all[a].byte_offset + all[a].shape.size_bytes();
    });
    if (i.opcode() == Opcode::Copy || moves_alone(i))
      kernels::stream_stores(kernel, kernels::least_streamed_bytes(target_, is_read_again(i)));
    kernel.checks_bounds = options_.check_bounds;
    kernels::CalledKernel called{kernel.name, kernel.blocks, kernel.scratch_bytes};
    forked_scratch_bytes = std::max(forked_scratch_bytes, kernel.scratch_bytes);
    keep(std::move(kernel));
    return called;
  }

  void note_overlaps(kernels::Kernel& kernel, const std::vector<runtime::Slice>& arguments) const {
    note_overlaps(kernel, [&](std::size_t a, std::size_t b) { return overlap(arguments[a], arguments[b]); });
  }

  // Of arguments that share bytes, one of which is written.
  template <typename Overlap>
  static void note_overlaps(kernels::Kernel& kernel, const Overlap& overlap) {
    auto& arguments = kernel.arguments;
    for (std::size_t a = 0; a < arguments.size(); ++a)
      for (std::size_t b = 0; b < arguments.size(); ++b)
        if (a != b && (arguments[a].written || arguments[b].written) && overlap(a, b)) arguments[a].may_overlap = true;
  }

  void name_places(const Instruction& i, const kernels::PlaceOf& place_of) const {
    for (const Instruction* operand : i.operands())
      for (std::int64_t leaf = 0; leaf < num_leaves(operand->shape()); ++leaf) place_of(*operand, leaf);
    for (std::int64_t leaf = 0; leaf < num_leaves(i.shape()); ++leaf) place_of(i, leaf);
    if (i.opcode() == Opcode::Fusion) return;
    for (const Computation* callee : i.called())
      for (const Instruction& inner : callee->instructions()) name_places(inner, place_of);
  }

  // A result that is a donated parameter's memory goes by the parameter's name, so that one memory has one.
  buffers::Slice canonical(buffers::Slice s) const {
    const auto& all = c_.assignment.allocations();
    const buffers::Allocation& own = c_.assignment.allocation(s);
    if (own.kind != buffers::Allocation::Kind::Result) return s;
    for (std::size_t a = 0; a < all.size(); ++a)
      if (all[a].kind == buffers::Allocation::Kind::Parameter && all[a].aliased_result == own.number)
        s.allocation = static_cast<std::int32_t>(a);
    return s;
  }

  Compiled& c_;
  const Options& options_;
  const base::Target& target_;
  const kernels::VectorUnit unit_;
  jit::DiskCache* const cache_;
  const Planned& planned_;
  const std::shared_ptr<runtime::ReadOnlyMemory> constant_memory_ = std::make_shared<runtime::ReadOnlyMemory>();
  int num_regions_ = 0;
  std::vector<std::int32_t> routine_constants_;  // allocations
  std::int32_t status_ = -1, device_ = -1, host_ = -1;  // allocations
  std::shared_ptr<library::RngStates> rng_states_;
  std::map<const Instruction*, runtime::Collective> started_;
  std::map<const Instruction*, std::int32_t> started_copies_;
};

runtime::Call* call_of(runtime::Step& step) {
  auto* start = std::get_if<runtime::Start>(&step.of);
  return start != nullptr ? std::get_if<runtime::Call>(&start->of) : std::get_if<runtime::Call>(&step.of);
}

Expected<> link_steps(Steps& steps, const jit::Code& code) {
  for (runtime::Step& step : steps) {
    if (auto* call = call_of(step)) {
      if (call->function == nullptr) call->function = TRY(jit::kernel_function(code, call->name));
    } else if (auto* loop = std::get_if<runtime::While>(&step.of)) {
      TRY(link_steps(loop->condition, code));
      TRY(link_steps(loop->body, code));
    } else if (auto* conditional = std::get_if<runtime::Conditional>(&step.of)) {
      for (Steps& branch : conditional->branches) TRY(link_steps(branch, code));
    }
  }
  return {};
}

}  // namespace

Expected<> build_program(Compiled& compiled, const Options& options, jit::DiskCache* cache,
                         const std::function<void(const kernels::Kernel&)>& planned) {
  const base::Target target = TRY(jit::target_or_host(options.cpu));
  return ProgramBuilder(compiled, options, target, cache, planned).build();
}

Expected<> link_program(Compiled& compiled) {
  compiled.program.code = compiled.code;
  for (collectives::Operation& operation : compiled.program.collectives) {
    int number = 0;
    for (collectives::Array& array : operation.arrays)
      for (collectives::Fold& fold : array.folds)
        fold.function =
            TRY(jit::kernel_function(*compiled.code, operation.name + ".fold" + std::to_string(number++)));
  }
  return link_steps(compiled.program.steps, *compiled.code);
}

}  // namespace hloom::compiler
