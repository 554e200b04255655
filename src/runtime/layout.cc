#include "runtime/layout.h"

#include <algorithm>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "base/fail.h"
#include "base/run_status.h"
#include "base/try.h"
#include "runtime/threads.h"

namespace hloom::runtime {
namespace {

constexpr std::int64_t kAlignment = 64;  // of allocations
constexpr std::int64_t kHostSpace = 2;  // mapped host memory
constexpr std::int64_t kLine = 128;  // two lines: processors fetch pairs
constexpr std::int64_t kTouchedBytes = std::int64_t{1} << 20;  // where a slice's pages lie begins to matter
constexpr std::size_t kMaxTouched = 64;

std::int64_t round_up(std::int64_t value, std::int64_t alignment) { return (value + alignment - 1) & -alignment; }

class Builder {
 public:
  explicit Builder(const Program& program) : program_(program) {}

  Expected<Layout> build() {
    TRY(check_collectives());
    TRY(place_allocations());
    TRY(check_aliases());
    TRY(add_steps(program_.steps));
    return std::move(layout_);
  }

 private:
  using Kind = Operation::Kind;

  Error wrong(std::string_view what) const {
    return fail(Code::Internal, program_.name, ", step ", layout_.steps.size(), " ", step_name_, ": ", what);
  }

  Expected<> place_allocations() {
    for (const Allocation& allocation : program_.allocations) {
      TableEntry entry;
      entry.number = allocation.number;
      std::int64_t size = allocation.size_bytes;
      switch (allocation.kind) {
        case Allocation::Kind::Arena:
          place_arena(allocation, entry);
          break;
        case Allocation::Kind::Constant:
          entry.base = TableEntry::Base::Constant;
          size = size_at(program_.constants, allocation.number, [](const auto& c) { return std::ssize(c); });
          break;
        case Allocation::Kind::Status:
          entry.base = TableEntry::Base::Status;
          size = sizeof(base::RunStatus);
          break;
        case Allocation::Kind::Device:
          entry.base = TableEntry::Base::Device;
          size = sizeof(std::int64_t);
          break;
        case Allocation::Kind::HostPort:
          entry.base = TableEntry::Base::HostPort;
          size = sizeof(void*);
          break;
        case Allocation::Kind::Parameter:
          entry.base = TableEntry::Base::Port;
          entry.number = port_of_parameter(allocation.number);
          size = size_at(program_.parameters, allocation.number, [](const Port& p) { return p.size_bytes; });
          break;
        case Allocation::Kind::Result:
          entry.base = TableEntry::Base::Port;
          entry.number = port_of_result(allocation.number);
          size = size_at(program_.results, allocation.number, [](const Port& p) { return p.size_bytes; });
          break;
      }
      if (allocation.size_bytes < 0 || size != allocation.size_bytes)
        return wrong("an allocation's size is not that of its memory");
      layout_.allocations.push_back(entry);
    }
    return {};
  }

  // Other spaces than 0 begin with a page.
  void place_arena(const Allocation& allocation, TableEntry& entry) {
    const bool host = allocation.memory_space == kHostSpace;
    std::int64_t& bytes = host ? layout_.host_bytes : layout_.arena_bytes;
    if (allocation.memory_space != 0) bytes = round_up(bytes, kPage);
    if (host)
      entry.base = TableEntry::Base::Host;
    else if (allocation.memory_space != 0)
      layout_.arena_alignment = kPage;
    entry.offset = bytes;
    bytes = round_up(bytes + allocation.size_bytes, kAlignment);
  }

  // The size of the element of that number, or -1 if there is none.
  template <typename Vector, typename Size>
  static std::int64_t size_at(const Vector& vector, std::int32_t number, Size size) {
    const auto i = static_cast<std::size_t>(number);
    return number < 0 || i >= vector.size() ? -1 : size(vector[i]);
  }

  std::int32_t port_of_result(std::int32_t number) const {
    return static_cast<std::int32_t>(program_.parameters.size()) + number;
  }
  std::int32_t port_of_parameter(std::int32_t number) const {
    for (const Alias& alias : program_.aliases)
      if (alias.parameter == number) return port_of_result(alias.result);
    return number;
  }

  Expected<> check_collectives() const {
    if (program_.replicas < 1 || program_.partitions < 1) return wrong("a program without devices");
    for (std::size_t n = 0; n < program_.collectives.size(); ++n) {
      const collectives::Operation& operation = program_.collectives[n];
      if (operation.number != static_cast<std::int64_t>(n)) return wrong("a collective with another's number");
      if (static_cast<std::int64_t>(operation.members.size()) != num_devices(program_))
        return wrong("a collective of other devices");
    }
    return {};
  }

  Expected<> check_aliases() const {
    std::vector<bool> parameters(program_.parameters.size()), results(program_.results.size());
    for (const Alias& alias : program_.aliases) {
      const auto p = static_cast<std::size_t>(alias.parameter), r = static_cast<std::size_t>(alias.result);
      if (p >= parameters.size() || r >= results.size() || parameters[p] || results[r])
        return wrong("an alias names what is not there, or is aliased twice");
      if (program_.parameters[p].size_bytes != program_.results[r].size_bytes)
        return wrong("an alias joins different sizes");
      parameters[p] = results[r] = true;
    }
    return {};
  }

  Expected<> check(const Slice& slice) const {
    const auto i = static_cast<std::size_t>(slice.allocation);
    if (slice.allocation < 0 || i >= program_.allocations.size()) return wrong("a slice names no allocation");
    if (slice.offset < 0 || slice.size_bytes < 0 ||
        slice.offset > program_.allocations[i].size_bytes - slice.size_bytes)
      return wrong("a slice is out of its allocation");
    return {};
  }

  Expected<std::uint32_t> add_pointers(std::span<const Slice> slices) {
    const auto first = static_cast<std::uint32_t>(layout_.table.size());
    for (const Slice& slice : slices) {
      TRY(check(slice));
      TableEntry entry = layout_.allocations[static_cast<std::size_t>(slice.allocation)];
      entry.offset += slice.offset;
      layout_.table.push_back(entry);
    }
    return first;
  }

  std::uint32_t here() const { return static_cast<std::uint32_t>(layout_.operations.size()); }

  Operation& add(Kind kind) {
    Operation operation{.kind = kind};
    operation.step = static_cast<std::int32_t>(layout_.steps.size()) - 1;
    operation.loop = loop_;
    layout_.operations.push_back(operation);
    return layout_.operations.back();
  }

  Expected<> add_steps(std::span<const Step> steps) {
    const std::set<std::int32_t> outside = std::exchange(open_, {});
    TRY(add_all(steps));
    if (!open_.empty()) return wrong("what was started is not finished where it began");
    open_ = outside;
    return {};
  }

  Expected<> add_all(std::span<const Step> steps) {
    while (!steps.empty()) {
      const std::size_t straight = length_of_straight_run(steps);
      if (straight > 1)
        TRY(add_straight_run(steps.first(straight)));
      else
        TRY(add_one(steps.front()));
      steps = steps.subspan(std::max<std::size_t>(straight, 1));
    }
    return {};
  }

  Expected<> add_one(const Step& step) {
    step_name_.clear();
    if (const Call* call = std::get_if<Call>(&step.of)) step_name_ = call->name;
    layout_.steps.push_back(&step);
    return std::visit([&](const auto& of) { return add_step(of); }, step.of);
  }

  // Calls and copies, of which some might go on at the same time.
  static std::size_t length_of_straight_run(std::span<const Step> steps) {
    const auto ends = [](const Step& step) {
      const Call* call = std::get_if<Call>(&step.of);
      return call != nullptr ? call->forks : !std::holds_alternative<Copy>(step.of);
    };
    const auto length = static_cast<std::size_t>(std::ranges::find_if(steps, ends) - steps.begin());
    return std::min(length, kMaxGraphNodes);
  }

  Expected<> add_straight_run(std::span<const Step> steps) {
    const std::uint32_t at = here();
    add(Kind::Graph);
    for (const Step& step : steps) TRY(add_one(step));
    std::vector<Task> tasks;
    for (std::uint32_t o = at + 1; o < here(); ++o) {
      if (layout_.operations[o].kind == Kind::Check)
        tasks.back().checked = true;
      else
        tasks.push_back(task_of(o));
    }
    std::optional<Graph> graph = make_graph(tasks);
    if (!graph) {  // nothing jumps into the middle
      layout_.operations.erase(layout_.operations.begin() + at);
      return {};
    }
    layout_.operations[at].target = here();
    layout_.operations[at].count = static_cast<std::int64_t>(layout_.graphs.size());
    layout_.most_nodes = std::max(layout_.most_nodes, graph->nodes.size());
    layout_.graphs.push_back(*std::move(graph));
    return {};
  }

  Task task_of(std::uint32_t number) const {
    const Operation& operation = layout_.operations[number];
    Task task{number, operation.workers, 0, false, false, {}};
    const Step& step = *layout_.steps[static_cast<std::size_t>(operation.step)];
    if (const Copy* copy = std::get_if<Copy>(&step.of)) {
      task.cost = copy->from.size_bytes;
      task.parts = static_cast<std::int32_t>(std::clamp<std::int64_t>(operation.count / kCopyPart, 1, 64));
      task.accesses = {access(copy->from, false), access(copy->to, true)};
      return task;
    }
    const Call& call = std::get<Call>(step.of);
    task.cost = call.cost;
    task.ordered = call.ordered || call.may_fail;  // there is one status
    for (std::size_t i = 0; i < call.arguments.size(); ++i)
      task.accesses.push_back(access(call.arguments[i], call.written.empty() || call.written[i]));
    if (call.scratch_room.size_bytes > 0) task.accesses.push_back(access(call.scratch_room, true));
    return task;
  }

  Access access(const Slice& slice, bool written) const {
    const TableEntry& entry = layout_.allocations[static_cast<std::size_t>(slice.allocation)];
    const bool numbered = entry.base == TableEntry::Base::Constant || entry.base == TableEntry::Base::Port;
    const std::int64_t begin = entry.offset + slice.offset;
    return {static_cast<std::int64_t>(entry.base) << 32 | (numbered ? entry.number : 0), begin,
            begin + slice.size_bytes, written};
  }

  Expected<> add_step(const Call& call) {
    if (call.function == nullptr || call.blocks < 0 || call.scratch_bytes < 0 || call.forked_scratch_bytes < 0)
      return wrong("a call without a function, or with a negative count");
    if (!call.written.empty() && call.written.size() != call.arguments.size())
      return wrong("a call that says of other arguments whether they are written");
    TRY(check_cuts(call));
    if (call.forks && call.max_workers > 1) return wrong("a region runs on one thread");
    const std::uint32_t pointer = TRY(add_pointers(call.arguments));
    const std::uint32_t room = TRY(add_pointers(std::span(&call.scratch_room, call.scratch_room.size_bytes > 0 ? 1 : 0)));
    const std::int64_t workers = std::clamp<std::int64_t>(call.blocks, 1, std::max(call.max_workers, 1));
    Operation& operation = add(call.forks ? Kind::Forking : workers > 1 ? Kind::Parallel : Kind::Inline);
    operation.pointer = pointer;
    operation.function = call.function;
    operation.count = call.blocks;
    operation.workers = static_cast<std::int32_t>(workers);
    operation.scratch_stride = round_up(call.scratch_bytes, kLine);
    operation.room = room;
    operation.room_bytes = call.scratch_room.size_bytes;
    operation.cuts = call.cuts;
    layout_.forked_stride = std::max(layout_.forked_stride, round_up(call.forked_scratch_bytes, kLine));
    layout_.forks |= call.forks;
    if (workers > 1) note_touched(call);
    if (call.may_fail) add(Kind::Check);
    return {};
  }

  Expected<> check_cuts(const Call& call) const {
    const auto ascend = [](std::span<const std::int64_t> cuts, std::int64_t end) {
      std::int64_t before = 0;
      for (const std::int64_t cut : cuts)
        if (std::exchange(before, cut) >= cut) return false;
      return cuts.empty() || cuts.back() < end;
    };
    if (!ascend(call.cuts, call.blocks)) return wrong("cuts that are not inside, one behind the other");
    if (call.split_bytes.empty()) return {};
    if (call.split_bytes.size() != call.arguments.size()) return wrong("a call that says of other arguments how they are split");
    for (std::size_t a = 0; a < call.arguments.size(); ++a)
      if (!ascend(call.split_bytes[a], call.arguments[a].size_bytes)) return wrong("parts that are not inside an argument");
    return {};
  }

  void note_touched(const Call& call) {
    for (std::size_t a = 0; a < call.arguments.size(); ++a) {
      const Slice& slice = call.arguments[a];
      const TableEntry& base = layout_.allocations[static_cast<std::size_t>(slice.allocation)];
      if (base.base != TableEntry::Base::Arena || slice.size_bytes < kTouchedBytes) continue;
      TouchedSlice added{base.offset + slice.offset, slice.size_bytes};
      if (!call.split_bytes.empty()) added.cuts = call.split_bytes[a];
      const auto overlaps = [&](const TouchedSlice& t) {
        return t.offset < added.offset + added.size_bytes && added.offset < t.offset + t.size_bytes;
      };
      if (layout_.touched.size() < kMaxTouched && std::ranges::none_of(layout_.touched, overlaps))
        layout_.touched.push_back(added);
    }
  }

  Expected<> add_step(const Copy& copy) {
    if (copy.from.size_bytes != copy.to.size_bytes) return wrong("a copy between different sizes");
    const Slice slices[] = {copy.from, copy.to};
    const std::uint32_t pointer = TRY(add_pointers(slices));
    const TableEntry &from = layout_.table[pointer], &to = layout_.table[pointer + 1];
    const bool is_one = from.base == TableEntry::Base::Arena || from.base == TableEntry::Base::Host;
    const bool same_memory = from.base == to.base && (is_one || from.number == to.number);
    const std::int64_t size = copy.from.size_bytes;
    if (same_memory && from.offset == to.offset) return {};
    if (same_memory && from.offset < to.offset + size && to.offset < from.offset + size)
      return wrong("a copy onto a part of itself");
    Operation& operation = add(Kind::Copy);
    operation.pointer = pointer;
    operation.count = size;
    return {};
  }

  // Loops may begin it again, but not twice at a time: it ends in the list of steps in which it began.
  Expected<> add_step(const Start& start) {
    if (start.number < 0 || start.number != layout_.num_starts) return wrong("a start out of turn");
    ++layout_.num_starts;
    open_.insert(start.number);
    const std::uint32_t at = here();
    TRY(std::visit([&](const auto& of) { return add_step(of); }, start.of));
    if (here() == at) add(Kind::Copy).count = 0;  // onto itself
    Operation& operation = layout_.operations[at];
    if (here() != at + 1 || operation.kind == Kind::Forking || operation.scratch_stride != 0)
      return wrong("a start of what forks, fails or needs scratch");
    operation.kind = Kind::Start;
    operation.target = static_cast<std::uint32_t>(start.number);
    return {};
  }

  Expected<> add_step(const Finish& finish) {
    if (open_.erase(finish.number) == 0) return wrong("a finish of what was not started in these steps");
    add(Kind::Finish).target = static_cast<std::uint32_t>(finish.number);
    return {};
  }

  Expected<> add_step(const While& loop) {
    const std::int32_t outer = loop_;
    loop_ = layout_.num_loops++;
    add(Kind::EnterLoop);
    const std::uint32_t begin = here();
    std::uint32_t leave = 0;
    if (!loop.trip_count) {
      TRY(add_steps(loop.condition));
      leave = TRY(add_leave(loop.predicate));
    } else if (*loop.trip_count < 0 || !loop.condition.empty()) {
      return wrong("a loop of known trips with a condition, or of less than none");
    } else if (*loop.trip_count == 0) {
      leave = here();
      add(Kind::Goto);
    }
    TRY(add_steps(loop.body));
    Operation& repeat = add(loop.trip_count ? Kind::RepeatUntil : Kind::Repeat);
    repeat.target = begin;
    repeat.count = loop.trip_count.value_or(0);
    if (leave != 0) layout_.operations[leave].target = here();
    loop_ = outer;
    return {};
  }

  Expected<std::uint32_t> add_leave(const Slice& predicate) {
    if (predicate.size_bytes != 1) return wrong("a predicate is one byte");
    const std::uint32_t pointer = TRY(add_pointers({&predicate, 1}));
    const std::uint32_t at = here();
    add(Kind::LeaveUnless).pointer = pointer;
    return at;
  }

  Expected<> add_step(const Conditional& conditional) {
    const std::size_t branches = conditional.branches.size();
    if (branches == 0 || (conditional.selector_is_pred && branches != 2)) return wrong("a conditional's branches");
    if (conditional.selector.size_bytes != (conditional.selector_is_pred ? 1 : 4)) return wrong("a selector's size");
    const auto first = static_cast<std::uint32_t>(layout_.targets.size());
    layout_.targets.resize(first + branches);
    const std::uint32_t pointer = TRY(add_pointers({&conditional.selector, 1}));
    Operation& choose = add(conditional.selector_is_pred ? Kind::SwitchPred : Kind::SwitchIndex);
    choose.pointer = pointer;
    choose.target = first;
    choose.count = static_cast<std::int64_t>(branches);
    std::vector<std::uint32_t> ends;
    for (std::size_t i = 0; i < branches; ++i) {
      layout_.targets[first + i] = here();
      TRY(add_steps(conditional.branches[i]));
      ends.push_back(here());
      add(Kind::Goto);
    }
    for (std::uint32_t end : ends) layout_.operations[end].target = here();
    return {};
  }

  Expected<> add_step(const DeviceNumber& number) {
    if (number.to.size_bytes != 4) return wrong("a device's number has four bytes");
    const std::uint32_t pointer = TRY(add_pointers({&number.to, 1}));
    add(number.of == DeviceNumber::Of::Replica ? Kind::ReplicaNumber : Kind::PartitionNumber).pointer = pointer;
    return {};
  }

  Expected<> add_step(const Collective& collective) {
    const auto number = static_cast<std::size_t>(collective.number);
    if (collective.number < 0 || number >= program_.collectives.size()) return wrong("a collective that is not there");
    const collectives::Operation& operation = program_.collectives[number];
    step_name_ = operation.name;
    if (collective.arguments.size() != static_cast<std::size_t>(operation.num_operands()) + operation.arrays.size())
      return wrong("a collective's number of arguments");
    const std::uint32_t pointer = TRY(add_pointers(collective.arguments));
    const Kind kinds[] = {Kind::Collective, Kind::StartCollective, Kind::DoneCollective};
    Operation& added = add(kinds[static_cast<std::size_t>(collective.part)]);
    added.pointer = pointer;
    added.target = static_cast<std::uint32_t>(collective.number);
    return {};
  }

  const Program& program_;
  Layout layout_;
  std::string step_name_;
  std::int32_t loop_ = -1;
  std::set<std::int32_t> open_;  ///< started in the present list of steps
};

}  // namespace

std::int64_t Layout::scratch_stride(const Graph& graph, std::int32_t num_threads) const {
  std::int64_t most = 0;
  for (const GraphNode& node : graph.nodes)
    if (const Operation& o = operations[node.operation]; !has_room(o, num_threads)) most = std::max(most, o.scratch_stride);
  return most;
}

std::int64_t Layout::scratch_bytes(std::int32_t num_threads) const {
  std::int64_t most = 0;
  for (const Operation& operation : operations)
    if (!has_room(operation, num_threads))
      most = std::max(most, operation.scratch_stride * std::min(operation.workers, num_threads));
  for (const Graph& graph : graphs) most = std::max(most, scratch_stride(graph, num_threads) * num_threads);
  return most + forked_stride * num_threads;
}

Expected<Layout> lay_out(const Program& program) { return Builder(program).build(); }

}  // namespace hloom::runtime
