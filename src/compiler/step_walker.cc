#include "compiler/step_walker.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/fail.h"
#include "base/run_status.h"
#include "base/try.h"
#include "compiler/layout_bytes.h"
#include "compiler/leaves.h"
#include "fusion/taps.h"
#include "hlo/source_place.h"

namespace hloom::compiler {

using hlo::Computation;
using hlo::Instruction;
using hlo::Literal;
using hlo::Opcode;

std::string source_of(const Instruction& i) {
  const hlo::Metadata& m = i.annotations().metadata;
  std::string place = hlo::source_place(i, i.module());
  if (place.empty() && i.line() > 0) place = "line " + std::to_string(i.line()) + " of the text";
  if (m.op_name.empty()) return place;
  return place.empty() ? m.op_name : place + " (" + m.op_name + ")";
}

StepWalker::StepWalker(const Compiled& compiled, const runtime::Device& device, std::span<HostTransfers> hosts)
    : c_(compiled), device_(device), options_{.hosts = hosts}, port_(runtime::host_port(options_, device_)) {
  std::size_t number = 0;
  runtime::for_each_step(c_.program.steps, [&](const runtime::Step& step) {
    for (const Instruction* i : c_.step_instructions[number]) steps_[i].push_back(&step);
    ++number;
  });
}

// The walker has all memory at once; what the system lacks would end the process.
Expected<> StepWalker::check_memory() const {
  const std::int64_t available = sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
  std::int64_t sum = 0;
  for (const runtime::Allocation& a : c_.program.allocations) {
    sum += std::min(a.size_bytes, available);
    if (sum >= available)
      return fail(Code::ResourceExhausted, c_.program.name, ": needs more memory than this machine's ", available >> 20,
                  " MiB");
  }
  return {};
}

Expected<> StepWalker::walk(std::span<const Literal> arguments) {
  TRY(check_memory());
  for (const runtime::Allocation& a : c_.program.allocations) {
    memory_.emplace_back(a.size_bytes);
    std::ranges::fill(memory_.back().bytes(), std::byte{0});
    if (a.kind == runtime::Allocation::Kind::Device)
      std::memcpy(memory_.back().data(), &device_.number, sizeof(device_.number));
    if (const library::HostPort* port = &port_; a.kind == runtime::Allocation::Kind::HostPort && !options_.hosts.empty())
      std::memcpy(memory_.back().data(), &port, sizeof(port));
    if (a.kind != runtime::Allocation::Kind::Constant) continue;
    const auto from = c_.program.constants[static_cast<std::size_t>(a.number)];
    std::copy(from.begin(), from.end(), memory_.back().data());
  }
  std::size_t leaf = 0;
  for (const Instruction* p : c_.module->entry()->parameters()) {
    const auto shapes = leaves(p->shape());
    for (std::size_t l = 0; l < shapes.size(); ++l, ++leaf)
      if (shapes[l]->is_array())
        store_literal(arguments[leaf], *shapes[l], bytes(c_.assignment.slice(*p, static_cast<std::int64_t>(l))));
  }
  return computation(*c_.module->entry());
}

std::vector<Literal> StepWalker::results() {
  const Instruction& root = *c_.module->entry()->root();
  std::vector<Literal> values;
  for (std::int64_t l = 0; l < num_leaves(root.shape()); ++l) values.push_back(value(root, l));
  return values;
}

std::span<std::byte> StepWalker::bytes(const buffers::Slice& s) {
  return {memory_[static_cast<std::size_t>(s.allocation)].data() + s.offset, static_cast<std::size_t>(s.bytes)};
}

std::byte* StepWalker::at(const runtime::Slice& s) {
  return memory_[static_cast<std::size_t>(s.allocation)].data() + s.offset;
}

Literal StepWalker::value(const Instruction& i, std::int64_t leaf) {
  const Shape& shape = *leaves(i.shape())[static_cast<std::size_t>(leaf)];
  return shape.is_array() ? load_literal(shape, bytes(c_.assignment.slice(i, leaf))) : Literal(shape);
}

Literal StepWalker::whole_value(const Instruction& i) { return read(i, nullptr); }

Literal StepWalker::read(const Instruction& i, const Box* box) const { return read_leaves(i, 0, i.shape(), box); }

Literal StepWalker::read_leaves(const Instruction& i, std::int64_t first, const Shape& shape, const Box* box) const {
  std::vector<Literal> flat;
  for (std::int64_t l = 0; l < num_leaves(shape); ++l) flat.push_back(read_leaf(i, first + l, box));
  std::span<const Literal> rest(flat);
  return take_value(box == nullptr ? shape : resized(shape, box->size), rest);
}

Literal StepWalker::read_leaf(const Instruction& i, std::int64_t leaf, const Box* box) const {
  const Shape& shape = *leaves(i.shape())[static_cast<std::size_t>(leaf)];
  if (!shape.is_array()) return Literal(shape);
  const buffers::Slice& s = c_.assignment.slice(i, leaf);
  std::span<const std::byte> from(memory_[static_cast<std::size_t>(s.allocation)].data() + s.offset, static_cast<std::size_t>(s.bytes));
  if (const auto found = kept_.find({&i, leaf}); found != kept_.end()) from = found->second;
  return box == nullptr ? load_literal(shape, from) : load_box(shape, from, *box);
}

void StepWalker::keep_operands(const Instruction& i) {
  kept_.clear();
  const auto is_written = [&](const buffers::Slice& s) {
    for (std::int64_t l = 0; l < num_leaves(i.shape()); ++l) {
      if (!leaves(i.shape())[static_cast<std::size_t>(l)]->is_array()) continue;
      const buffers::Slice& to = c_.assignment.slice(i, l);
      if (s.allocation == to.allocation && s.offset < to.offset + to.bytes && to.offset < s.offset + s.bytes) return true;
    }
    return false;
  };
  for (const Instruction* operand : i.operands())
    for (std::int64_t l = 0; l < num_leaves(operand->shape()); ++l) {
      if (!leaves(operand->shape())[static_cast<std::size_t>(l)]->is_array()) continue;
      const buffers::Slice& s = c_.assignment.slice(*operand, l);
      if (!is_written(s)) continue;
      const auto from = bytes(s);
      kept_[{operand, l}].assign(from.begin(), from.end());
    }
}

Expected<> StepWalker::computation(const Computation& c) {
  for (const Instruction& i : c.instructions()) TRY(instruction(i));
  return {};
}

Expected<> StepWalker::instruction(const Instruction& i) {
  switch (i.opcode()) {
    case Opcode::While: return run_while(i);
    case Opcode::Conditional: {
      const Literal selector = value(*i.operand(0), 0);
      const auto count = static_cast<std::int64_t>(i.called().size());
      std::int64_t branch = element_as_int64(selector, 0);
      if (selector.dtype() == DType::Pred) branch = branch != 0 ? 0 : 1;
      if (branch < 0 || branch >= count) branch = count - 1;
      return computation(*i.called(branch));
    }
    case Opcode::Call: return computation(*i.to_apply());
    default: kept_.clear(); return visit(i);
  }
}

Expected<> StepWalker::run_while(const Instruction& i) {
  for (loops_.push_back({&i, 0});; ++loops_.back().iteration) {
    TRY(computation(*i.condition()));
    if (bytes(c_.assignment.slice(*i.condition()->root()))[0] == std::byte{0}) break;
    TRY(computation(*i.body()));
  }
  loops_.pop_back();
  return {};
}

Expected<> StepWalker::run(const Instruction& i) {
  const auto found = steps_.find(&i);
  if (found == steps_.end()) return {};
  for (const runtime::Step* step : found->second) {
    const auto* start = std::get_if<runtime::Start>(&step->of);
    const auto* copy = start != nullptr ? std::get_if<runtime::Copy>(&start->of) : std::get_if<runtime::Copy>(&step->of);
    if (copy != nullptr) {
      const auto from = at(copy->from);
      std::copy(from, from + copy->from.size_bytes, at(copy->to));
    } else if (const auto* one = std::get_if<runtime::Call>(&step->of)) {
      TRY(call(*one));
    } else if (const auto* collective = std::get_if<runtime::Collective>(&step->of)) {
      TRY(meet(*collective));
    } else if (const auto* number = std::get_if<runtime::DeviceNumber>(&step->of)) {
      write_number(*number);
    }
  }
  return {};
}

Expected<> StepWalker::meet(const runtime::Collective& collective) {
  std::vector<void*>& buffers = collective_buffers_[collective.number];
  if (collective.part != runtime::Collective::Part::Done) {
    buffers.clear();
    for (const runtime::Slice& s : collective.arguments) buffers.push_back(at(s));
  }
  const collectives::Operation& what = c_.program.collectives[static_cast<std::size_t>(collective.number)];
  return runtime::run_collective(device_, what, collective.part, buffers.data(), runtime::process_pool(), room_);
}

void StepWalker::write_number(const runtime::DeviceNumber& number) {
  const bool replica = number.of == runtime::DeviceNumber::Of::Replica;
  const auto value = static_cast<std::uint32_t>(replica ? device_.number / c_.program.partitions
                                                        : device_.number % c_.program.partitions);
  std::memcpy(at(number.to), &value, sizeof(value));
}

Expected<> StepWalker::call(const runtime::Call& call) {
  std::vector<void*> pointers;
  for (const runtime::Slice& s : call.arguments) pointers.push_back(at(s));
  runtime::ThreadPool& pool = runtime::process_pool();
  const auto workers = static_cast<int>(std::clamp<std::int64_t>(call.blocks, 1, std::min(call.max_workers, pool.num_threads())));
  constexpr std::int64_t kLine = 128;
  const std::int64_t stride = (call.scratch_bytes + kLine - 1) / kLine * kLine;
  base::AlignedBytes scratch(stride * workers);
  pool.parallel_for_blocks(call.function, pointers.data(), call.blocks, workers, {scratch.data(), stride});
  if (!call.may_fail) return {};
  for (const runtime::Slice& s : call.arguments) {
    if (c_.program.allocations[static_cast<std::size_t>(s.allocation)].kind != runtime::Allocation::Kind::Status)
      continue;
    auto& status = *reinterpret_cast<base::RunStatus*>(at(s));
    if (base::has_failed(status)) return base::take_failure(status, call.name);
  }
  return {};
}

StepWalker::Taps StepWalker::taps_of(const Instruction& fusion) {
  Taps taps;
  std::int64_t leaf = 0;
  for (const Instruction* r : fusion::results_of(fusion)) {
    taps.emplace(r, leaf);
    leaf += num_leaves(r->shape());
  }
  return taps;
}

Literal StepWalker::read_tap(const Instruction& fusion, const Taps& taps, const Instruction& inner, const Box* box) const {
  return read_leaves(fusion, taps.at(&inner), inner.shape(), box);
}

Expected<> StepWalker::run_fusion(const Instruction& fusion, const Inner& inner) {
  std::unordered_map<const Instruction*, Literal> values;
  const Computation& body = *fusion.called(0);
  for (const Instruction* p : body.parameters()) values[p] = whole_value(*fusion.operand(p->parameter_number()));
  TRY(run(fusion));
  const Taps taps = taps_of(fusion);
  for (const Instruction& i : body.instructions()) {
    if (i.opcode() == Opcode::Parameter || (i.opcode() == Opcode::Tuple && i.is_root())) continue;
    std::vector<Literal> operands;
    for (const Instruction* operand : i.operands()) operands.push_back(values.at(operand));
    std::optional<Literal> shown;
    if (taps.contains(&i)) shown = read_tap(fusion, taps, i, nullptr);
    values[&i] = TRY(inner(i, operands, std::move(shown)));
  }
  return {};
}

}  // namespace hloom::compiler
