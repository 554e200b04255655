#include "hloom/executable.h"

#include <algorithm>
#include <unordered_map>

#include "base/fail.h"
#include "base/try.h"
#include "buffers/report.h"
#include "compiler/checked_run.h"
#include "compiler/compile.h"
#include "compiler/execute_literals.h"
#include "compiler/memory_budget.h"
#include "compiler/read_program.h"
#include "compiler/show_memory.h"
#include "hlo/source_place.h"
#include "runtime/buffer_runs.h"
#include "runtime/devices.h"
#include "runtime/executor.h"
#include "runtime/process_allocator.h"

namespace hloom {

struct Executable::Impl {
  std::vector<Shape> parameters, results;  // leaves
  std::vector<std::int64_t> donated;       // for each result leaf
  MemoryReport memory;
  std::unique_ptr<runtime::ThreadPool> own_pool;  // null: the process's
  runtime::ThreadPool* pool = nullptr;
  std::unique_ptr<runtime::Executor> executor;
  std::unique_ptr<runtime::BufferRuns> runs;
  std::chrono::milliseconds timeout;
  std::unique_ptr<runtime::Devices> devices;  // of a program for several
};

namespace {

std::vector<Shape> leaf_shapes(const Shape& shape) {
  std::vector<Shape> result;
  for (const Shape* leaf : leaves(shape)) result.push_back(*leaf);
  return result;
}

// Leaves that had a size at run time say so; their arrays are as large as their bounds.
void mark_dynamic(const std::vector<Shape>& written, std::vector<Shape>& leaves) {
  for (std::size_t i = 0; i < written.size(); ++i)
    for (std::int64_t d = 0; d < written[i].rank(); ++d) leaves[i].set_dynamic_dim(d, written[i].is_dynamic_dim(d));
}

// The leaves of the parameters that a donation without a result names.
std::vector<bool> buffer_donors(const hlo::Module& module) {
  std::vector<bool> donors;
  for (const hlo::Instruction* p : module.entry()->parameters()) {
    const std::size_t first = donors.size();
    donors.resize(first + leaves(p->shape()).size());
    for (const hlo::BufferDonor& d : module.config().donors) {
      if (d.parameter != p->parameter_number()) continue;
      std::size_t from = first;
      const Shape* at = &p->shape();
      for (const std::int64_t k : d.parameter_index) {
        for (std::int64_t before = 0; before < k; ++before) from += leaves(at->element(before)).size();
        at = &at->element(k);
      }
      std::fill_n(donors.begin() + static_cast<std::ptrdiff_t>(from), leaves(*at).size(), true);
    }
  }
  return donors;
}

std::vector<DonationReport> donations(const compiler::Compiled& c) {
  const std::vector<bool> donors = buffer_donors(*c.module);
  std::vector<DonationReport> all;
  for (const buffers::Allocation& a : c.assignment.allocations()) {
    if (a.kind != buffers::Allocation::Kind::Parameter || !a.writable) continue;
    DonationReport report{a.number, a.aliased_result, ""};
    if (a.aliased_result < 0)
      report.reason = donors[static_cast<std::size_t>(a.number)]
                          ? "buffer_donor names no result for it; its memory serves other values of the run"
                          : "the result has another layout than the parameter, so it would be written elsewhere and copied";
    all.push_back(std::move(report));
  }
  return all;
}

bool is_donated(const compiler::Compiled& c, std::int64_t result) {
  return std::ranges::find(c.assignment.allocations(), result, &buffers::Allocation::aliased_result) !=
         c.assignment.allocations().end();
}

void report_updates(const compiler::Compiled& c, MemoryReport& to) {
  std::unordered_map<std::string_view, const hlo::Instruction*> named;
  for (const hlo::Computation& computation : c.module->computations())
    for (const hlo::Instruction& i : computation.instructions()) named.emplace(i.name(), &i);
  for (const buffers::InPlaceDecision& d : c.assignment.decisions()) {
    const auto at = named.find(d.at);
    to.updates.push_back({d.at, std::string(buffers::name(d.kind)), d.in_place, d.in_place ? 0 : d.bytes, d.reason,
                          d.leaf, d.depth, at == named.end() ? "" : hlo::source_place(*at->second, *c.module)});
  }
}

void report_peak(const compiler::Compiled& c, MemoryReport& to) {
  const buffers::MemoryReport peak = buffers::report(c.assignment);
  to.gap_bytes = peak.unused_bytes;
  if (peak.peak_at != nullptr) to.peak_at = peak.peak_at->name();
  for (const buffers::ArenaBlock* owner : peak.owners)
    to.owners.push_back({owner->bytes, owner->values,
                         owner->definer == nullptr ? "" : hlo::source_place(*owner->definer, *c.module)});
}

MemoryReport report(const compiler::Compiled& c) {
  using Kind = buffers::Allocation::Kind;
  MemoryReport r;
  for (const buffers::Allocation& a : c.assignment.allocations()) switch (a.kind) {
      case Kind::Arena: r.temp_bytes += a.bytes; break;
      case Kind::Parameter: r.argument_bytes += a.bytes; break;
      case Kind::Result: r.result_bytes += is_donated(c, a.number) ? 0 : a.bytes; break;
      case Kind::Constant: break;
    }
  for (const auto& constant : c.program.constants) r.constant_bytes += std::ssize(constant);
  report_updates(c, r);
  report_peak(c, r);
  r.donations = donations(c);
  r.peak_bytes = r.temp_bytes + r.argument_bytes + r.result_bytes + r.constant_bytes;
  return r;
}

}  // namespace

Executable::Executable(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Executable::Executable(Executable&&) noexcept = default;
Executable& Executable::operator=(Executable&&) noexcept = default;
Executable::~Executable() = default;

Expected<Executable> Executable::compile(std::string_view program, const CompileOptions& options) {
  compiler::ReadOptions read;
  read.module = options.module;
  read.fill_elided = options.fill_elided;
  read.replicas = options.replicas;
  read.partitions = options.partitions;
  auto module = TRY(compiler::read_program(program, read));
  const std::vector<Shape> parameters = compiler::parameter_leaves(*module), results = compiler::result_leaves(*module);
  compiler::Options compile_options;
  compile_options.threads = options.pool != nullptr ? options.pool->num_threads() : options.threads;
  compile_options.cpu = options.cpu;
  compile_options.memory.limit_bytes = options.memory_limit_bytes;
  compile_options.memory.concurrency_bytes = options.concurrency_memory_bytes;
  compile_options.memory.in_place = options.require_in_place;
  if (!options.memory_budget.empty())
    compile_options.memory.budget = TRY(compiler::parse_budget(options.memory_budget, "CompileOptions::memory_budget"));
  compile_options.cache_folder = options.cache_folder;
  compile_options.check_memory = compile_options.check_bounds = options.debug_memory;
  auto compiled = TRY(compiler::compile(std::move(module), compile_options));

  auto impl = std::make_unique<Impl>();
  const hlo::Computation& entry = *compiled.module->entry();
  for (const hlo::Instruction* p : entry.parameters())
    for (const Shape* leaf : leaves(p->shape())) impl->parameters.push_back(*leaf);
  impl->results = leaf_shapes(entry.root()->shape());
  mark_dynamic(parameters, impl->parameters);
  mark_dynamic(results, impl->results);
  impl->donated.assign(impl->results.size(), -1);
  for (const buffers::Allocation& a : compiled.assignment.allocations())
    if (a.kind == buffers::Allocation::Kind::Parameter && a.aliased_result >= 0)
      impl->donated[static_cast<std::size_t>(a.aliased_result)] = a.number;
  impl->memory = report(compiled);
  if (options.memory_json) impl->memory.json = compiler::memory_json(compiled);
  if (!options.memory_against.empty())
    impl->memory.changes = TRY(compiler::memory_changes(options.memory_against, "CompileOptions::memory_against", compiled));
  HostAllocator& allocator = options.allocator != nullptr ? *options.allocator : runtime::process_allocator();
  impl->executor = TRY(compiler::make_executor(std::move(compiled), {.allocator = &allocator,
                                                                      .host_memory = options.host_memory,
                                                                      .max_concurrent_runs = options.max_concurrent_runs}));
  impl->runs = std::make_unique<runtime::BufferRuns>(*impl->executor, allocator);
  if (options.pool != nullptr)
    impl->own_pool = std::make_unique<runtime::ThreadPool>(*options.pool);
  else if (options.threads > 0)
    impl->own_pool = std::make_unique<runtime::ThreadPool>(options.threads);
  impl->pool = impl->own_pool != nullptr ? impl->own_pool.get() : &runtime::process_pool();
  impl->memory.scratch_bytes = impl->executor->scratch_bytes(impl->pool->num_threads());
  impl->timeout = options.collective_timeout;
  if (runtime::num_devices(impl->executor->program()) > 1) {
    impl->devices = std::make_unique<runtime::Devices>(*impl->executor, impl->pool->num_threads());
    impl->memory.scratch_bytes = impl->devices->scratch_bytes();
  }
  return Executable(std::move(impl));
}

static runtime::RunOptions run_options(const RunOptions& options) {
  return {.cancel = options.cancel, .hosts = options.hosts, .host_timeout = options.host_timeout};
}

Expected<Results> Executable::run(std::span<Buffer> args, const RunOptions& options) const {
  return impl_->runs->run(args, *impl_->pool, run_options(options));
}

Expected<> Executable::run_into(std::span<const std::span<std::byte>> inputs,
                                std::span<const std::span<std::byte>> outputs, const RunOptions& options) const {
  return impl_->executor->execute(inputs, outputs, *impl_->pool, run_options(options));
}

Expected<> Executable::run_devices(std::span<const DeviceArrays> arrays, const RunOptions& options) const {
  if (static_cast<std::int64_t>(arrays.size()) != num_devices())
    return fail(Code::InvalidArgument, impl_->executor->program().name, ": runs on ", num_devices(),
                " devices, found arrays for ", arrays.size());
  if (!impl_->devices) return run_into(arrays[0].inputs, arrays[0].outputs, options);
  std::vector<runtime::DeviceValues> values;
  for (const DeviceArrays& device : arrays) values.push_back({device.inputs, device.outputs});
  return impl_->devices->execute(values, run_options(options), impl_->timeout);
}

std::int64_t Executable::num_replicas() const { return impl_->executor->program().replicas; }
std::int64_t Executable::num_partitions() const { return impl_->executor->program().partitions; }
const std::vector<Shape>& Executable::parameter_shapes() const { return impl_->parameters; }
const std::vector<Shape>& Executable::result_shapes() const { return impl_->results; }
std::int64_t Executable::donated_parameter(std::int64_t result) const {
  return impl_->donated[static_cast<std::size_t>(result)];
}
MemoryReport Executable::memory() const { return impl_->memory; }

}  // namespace hloom
