#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <sstream>

#include "base/try.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/debug_memory.h"
#include "cli/demands.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/source.h"
#include "cli/tables.h"
#include "compiler/compile.h"
#include "compiler/execute_literals.h"
#include "compiler/layout_bytes.h"
#include "hloom/host_allocator.h"
#include "runtime/buffer_runs.h"
#include "runtime/cpus.h"
#include "runtime/devices.h"
#include "runtime/process_allocator.h"

namespace hloom::cli {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t kMinRuns = 3, kMaxRuns = 200'000;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

std::int64_t page_faults() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt + usage.ru_majflt;
}

std::int64_t peak_rss_bytes() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss * 1024;  // in KiB
}

/// The arguments of one device. What a run overwrites is put back before the next.
class Ports {
 public:
  static Expected<Ports> create(const runtime::Program& program, std::span<const Shape> shapes,
                                std::span<const hlo::Literal> arguments) {
    Ports ports;
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      ports.args_.push_back(TRY(Buffer::allocate(shapes[i].size_bytes())));
      if (shapes[i].is_array()) compiler::store_literal(arguments[i], shapes[i], ports.args_[i].mutable_bytes());
    }
    for (const runtime::Alias& alias : program.aliases)
      TRY(ports.give_up(static_cast<std::size_t>(alias.parameter), static_cast<std::size_t>(alias.result)));
    for (std::size_t i = 0; i < program.parameters.size(); ++i)
      if (program.parameters[i].overwritten) TRY(ports.give_up(i, std::nullopt));
    return ports;
  }

  /// Copies of what a run writes over, as one hands it over that has no use for it any more.
  Expected<std::span<Buffer>> donated_args() {
    for (const Overwritten& o : overwritten_) args_[o.parameter] = donate(TRY(Buffer::copy_of(o.value.bytes())));
    return std::span<Buffer>(args_);
  }

  /// The same for runs that take memory, in which a donated parameter is its result's memory. Needs: filled once.
  Expected<> fill(const runtime::Program& program) {
    for (Buffer& arg : args_) inputs_.push_back(arg.mutable_bytes());
    for (const runtime::Port& result : program.results) {
      results_.push_back(TRY(Buffer::allocate(result.size_bytes)));
      outputs_.push_back(results_.back().mutable_bytes());
    }
    for (const Overwritten& o : overwritten_)
      if (o.result) outputs_[*o.result] = inputs_[o.parameter];
    return {};
  }
  runtime::DeviceValues restored() {
    for (const Overwritten& o : overwritten_) std::ranges::copy(o.value.bytes(), inputs_[o.parameter].begin());
    return {inputs_, outputs_};
  }

 private:
  struct Overwritten {
    std::size_t parameter;
    std::optional<std::size_t> result;  // which lies in its memory
    Buffer value;
  };

  Expected<> give_up(std::size_t parameter, std::optional<std::size_t> result) {
    overwritten_.push_back({parameter, result, TRY(Buffer::copy_of(args_[parameter].bytes()))});
    return {};
  }

  std::vector<Buffer> args_, results_;
  std::vector<std::span<std::byte>> inputs_, outputs_;
  std::vector<Overwritten> overwritten_;
};

struct Figures {
  double compile_s = 0;
  jit::CompileReport code;
  std::vector<double> run_s;  // sorted
  std::int64_t temp_bytes = 0, scratch_bytes = 0, peak_rss_bytes = 0, page_faults = 0;
  std::int64_t moved_bytes = 0;         // arguments, results and temporaries
  double copy_bytes_per_s = 0;          // read and written, on the same threads
  double median() const { return run_s[run_s.size() / 2]; }
};

using Clocked = Expected<double>;

// One run of a program for one device, as Executable::run() does it.
Clocked run_once(const runtime::BufferRuns& runs, runtime::ThreadPool& pool, Ports& ports) {
  const std::span<Buffer> args = TRY(ports.donated_args());
  const Clock::time_point start = Clock::now();
  const Results results = TRY(runs.run(args, pool, {}));
  return seconds_since(start);
}

// One run on several devices, as Executable::run_devices() does it.
Clocked run_once(const runtime::Devices& devices, std::vector<Ports>& ports, std::chrono::milliseconds timeout) {
  std::vector<runtime::DeviceValues> values;
  for (Ports& of_device : ports) values.push_back(of_device.restored());
  const Clock::time_point start = Clock::now();
  TRY(devices.execute(values, {}, timeout));
  return seconds_since(start);
}

// Runs until the time is over. What the first runs do, page in arena and results and start threads, is not counted.
Expected<> measure(const std::function<Clocked()>& once, const Options& options, Figures& figures) {
  figures.run_s.assign(kMaxRuns, 0);  // touched, so that noting a time costs no page fault
  figures.run_s.clear();
  for (int i = 0; i < 2; ++i) TRY(once());
  const std::int64_t faults = page_faults();
  const Clock::time_point start = Clock::now();
  while (figures.run_s.size() < kMinRuns || (seconds_since(start) < options.seconds && figures.run_s.size() < kMaxRuns)) {
    const double seconds = TRY(once());
    figures.run_s.push_back(seconds);
  }
  figures.page_faults = page_faults() - faults;
  std::sort(figures.run_s.begin(), figures.run_s.end());
  return {};
}

// The best of some copies of an array larger than caches.
Expected<double> copy_bandwidth(runtime::ThreadPool& pool) {
  constexpr std::int64_t kBytes = 128 << 20;
  HostAllocator allocator;
  HostBuffer from = TRY(allocator.allocate(kBytes)), to = TRY(allocator.allocate(kBytes));
  std::fill(from.bytes().begin(), from.bytes().end(), std::byte{1});
  double best = 0;
  for (int i = 0; i < 6; ++i) {
    const Clock::time_point start = Clock::now();
    pool.parallel_copy(to.data(), from.data(), kBytes);
    best = std::max(best, 2.0 * static_cast<double>(kBytes) / seconds_since(start));
  }
  return best;
}

std::int64_t bytes_of(const runtime::Program& program) {
  const auto add = [](std::int64_t sum, const runtime::Port& port) { return sum + port.size_bytes; };
  return std::accumulate(program.results.begin(), program.results.end(),
                         std::accumulate(program.parameters.begin(), program.parameters.end(), std::int64_t{0}, add),
                         add);
}

std::string json(const Source& source, const Figures& f) {
  nlohmann::ordered_json line;
  line["program"] = source.path;
  line["scale"] = source.bench_scale ? "bench" : "check";
  line["compile_s"] = f.compile_s;
  line["kernels"] = f.code.kernels;
  line["cached_kernels"] = f.code.from_memory + f.code.from_disk;
  line["run_s_min"] = f.run_s.front();
  line["run_s_median"] = f.median();
  line["call_runs"] = f.run_s.size();
  line["temp_bytes"] = f.temp_bytes;
  line["scratch_bytes"] = f.scratch_bytes;
  line["peak_rss_bytes"] = f.peak_rss_bytes;
  line["page_faults"] = f.page_faults;
  // A path need not be UTF-8.
  return line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::string text(const Source& source, const Figures& f, const compiler::Compiled& compiled, int threads) {
  const buffers::Assignment& assignment = compiled.assignment;
  const std::string words = code_words(compiled);
  std::ostringstream out;
  out.precision(4);
  out << source.path << ", " << threads << (threads == 1 ? " thread" : " threads") << "\n";
  out << "compile    " << f.compile_s * 1e3 << " ms; " << words << "\n";
  out << "run        median " << f.median() * 1e6 << " us, least " << f.run_s.front() * 1e6 << " us, of "
      << f.run_s.size() << " runs\n";
  out << "memory     temporaries " << f.temp_bytes << " bytes, scratch " << f.scratch_bytes << ", peak resident "
      << f.peak_rss_bytes << ", page faults in these runs " << f.page_faults << "\n";
  const double rate = static_cast<double>(f.moved_bytes) / f.median();
  out << "bandwidth  arguments, results and temporaries once: " << rate * 1e-9 << " GB/s, "
      << 100 * rate / f.copy_bytes_per_s << " % of this machine's copy (" << f.copy_bytes_per_s * 1e-9 << " GB/s)\n";
  std::int64_t in_place = 0, copied = 0;
  for (const buffers::InPlaceDecision& d : assignment.decisions()) ++(d.in_place ? in_place : copied);
  out << "updates    " << in_place << " in place, " << copied << " copied";
  for (const buffers::InPlaceDecision& d : assignment.decisions())
    if (!d.in_place) out << "\n           " << d.at << ": " << d.bytes << " bytes, because " << d.reason;
  out << "\n";
  return std::move(out).str();
}

Expected<compiler::Compiled> timed_compile(const Source& source, std::unique_ptr<hlo::Module> module,
                                           const compiler::Options& options, Figures& figures) {
  const Progress progress("compiling " + source.path);
  const Clock::time_point start = Clock::now();
  auto compiled = compiler::compile(std::move(module), options);
  figures.compile_s = seconds_since(start);
  if (compiled) figures.code = compiled->code_report;
  return compiled;
}

}  // namespace

Expected<int> bench(const Options& options) {
  const Source source = TRY(read_source(options, true));
  auto module = TRY(read_module(source, options));
  const Devices wanted = TRY(devices_of(*module));
  const auto arguments = TRY(read_arguments(options, source, *module, wanted));
  const int threads = options.threads > 0 ? options.threads : runtime::available_cpus();
  if (options.debug_memory) TRY(run_watched(options, source, arguments));

  Figures figures;
  compiler::Options compile = TRY(compile_options(options));
  compiler::Compiled compiled = TRY(timed_compile(source, std::move(module), compile, figures));
  const auto executor = TRY(runtime::Executor::create(std::move(compiled.program)));
  figures.temp_bytes = executor->arena_bytes();
  const runtime::Devices devices(*executor, threads);
  figures.scratch_bytes = devices.scratch_bytes();
  figures.moved_bytes =
      (bytes_of(executor->program()) + figures.temp_bytes) * runtime::num_devices(executor->program());

  std::vector<Ports> ports;
  for (const auto& of_device : arguments)
    ports.push_back(TRY(Ports::create(executor->program(), compiler::parameter_leaves(*compiled.module), of_device)));
  runtime::ThreadPool pool(threads);
  const runtime::BufferRuns runs(*executor, runtime::process_allocator());
  if (ports.size() == 1) {
    TRY(measure([&] { return run_once(runs, pool, ports[0]); }, options, figures));
  } else {
    for (Ports& of_device : ports) TRY(of_device.fill(executor->program()));
    TRY(measure([&] { return run_once(devices, ports, collective_timeout(options)); }, options, figures));
  }
  figures.peak_rss_bytes = peak_rss_bytes();
  if (options.json) {
    TRY(write_output(json(source, figures)));
    return kGood;
  }
  figures.copy_bytes_per_s = TRY(copy_bandwidth(pool));
  TRY(write_output(text(source, figures, compiled, threads)));
  return kGood;
}

}  // namespace hloom::cli
