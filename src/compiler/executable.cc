#include "hloom/executable.h"

#include "base/try.h"
#include "base/fail.h"
#include "compiler/compile.h"
#include "compiler/execute_literals.h"
#include "compiler/read_program.h"
#include "runtime/cpus.h"
#include "runtime/devices.h"
#include "runtime/executor.h"

namespace hloom {

struct Executable::Impl {
  std::vector<Shape> parameters, results;  // leaves
  std::vector<std::int64_t> donated;       // for each result leaf
  MemoryReport memory;
  std::unique_ptr<runtime::ThreadPool> pool;  // null: the process's
  std::unique_ptr<runtime::Executor> executor;
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

MemoryReport report(const compiler::Compiled& c) {
  using Kind = buffers::Allocation::Kind;
  MemoryReport r;
  for (const buffers::Allocation& a : c.assignment.allocations()) switch (a.kind) {
      case Kind::Arena: r.temp_bytes += a.bytes; break;
      case Kind::Parameter: r.argument_bytes += a.bytes; break;
      case Kind::Result: r.result_bytes += a.bytes; break;
      case Kind::Constant: break;
    }
  for (const base::AlignedBytes& constant : c.program.constants) r.constant_bytes += constant.size_bytes();
  for (const buffers::InPlaceDecision& d : c.assignment.decisions())
    r.updates.push_back({d.at, std::string(buffers::name(d.kind)), d.in_place, d.in_place ? 0 : d.bytes, d.reason});
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
  compile_options.threads = options.threads;
  compile_options.cpu = options.cpu;
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
  impl->executor = TRY(runtime::Executor::create(std::move(compiled.program)));
  const int threads = options.threads > 0 ? options.threads : runtime::available_cpus();
  impl->memory.scratch_bytes = impl->executor->scratch_bytes(threads);
  impl->timeout = options.collective_timeout;
  if (runtime::num_devices(impl->executor->program()) > 1) {
    impl->devices = std::make_unique<runtime::Devices>(*impl->executor, threads);
    impl->memory.scratch_bytes = impl->devices->scratch_bytes();
  } else if (options.threads > 0) {
    impl->pool = std::make_unique<runtime::ThreadPool>(options.threads);
  }
  return Executable(std::move(impl));
}

Expected<> Executable::run(std::span<const std::span<std::byte>> inputs,
                           std::span<const std::span<std::byte>> outputs) const {
  if (impl_->pool) return impl_->executor->execute(inputs, outputs, *impl_->pool);
  return impl_->executor->execute(inputs, outputs);
}

Expected<> Executable::run_devices(std::span<const DeviceArrays> arrays) const {
  if (static_cast<std::int64_t>(arrays.size()) != num_devices())
    return fail(Code::InvalidArgument, impl_->executor->program().name, ": runs on ", num_devices(),
                " devices, found arrays for ", arrays.size());
  if (!impl_->devices) return run(arrays[0].inputs, arrays[0].outputs);
  std::vector<runtime::DeviceValues> values;
  for (const DeviceArrays& device : arrays) values.push_back({device.inputs, device.outputs});
  return impl_->devices->execute(values, {}, impl_->timeout);
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
