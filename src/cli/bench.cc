#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <numeric>
#include <sstream>

#include "base/try.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/demands.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/source.h"
#include "compiler/compile.h"
#include "compiler/execute_literals.h"
#include "compiler/layout_bytes.h"
#include "hloom/host_allocator.h"
#include "runtime/cpus.h"
#include "runtime/devices.h"

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

/// Parameters and results in memory of their own; a donated parameter is its result's memory.
class Ports {
 public:
  static Expected<Ports> create(const runtime::Program& program, std::span<const Shape> shapes,
                                std::span<const hlo::Literal> arguments) {
    Ports ports;
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      ports.inputs_.push_back(TRY(ports.allocate(shapes[i].size_bytes())));
      if (shapes[i].is_array()) compiler::store_literal(arguments[i], shapes[i], ports.inputs_[i]);
    }
    for (const runtime::Port& result : program.results)
      ports.outputs_.push_back(TRY(ports.allocate(result.size_bytes)));
    for (const runtime::Alias& alias : program.aliases) {
      const std::span<std::byte> input = ports.inputs_[static_cast<std::size_t>(alias.parameter)];
      ports.donated_.push_back({input, std::vector<std::byte>(input.begin(), input.end())});
      ports.outputs_[static_cast<std::size_t>(alias.result)] = input;
    }
    return ports;
  }

  /// What a run overwrites comes back.
  void restore() {
    for (Donated& d : donated_) std::copy(d.value.begin(), d.value.end(), d.memory.begin());
  }
  std::span<const std::span<std::byte>> inputs() const { return inputs_; }
  std::span<const std::span<std::byte>> outputs() const { return outputs_; }

 private:
  struct Donated {
    std::span<std::byte> memory;
    std::vector<std::byte> value;
  };

  Expected<std::span<std::byte>> allocate(std::int64_t size_bytes) {
    memory_.push_back(TRY(allocator_->allocate(size_bytes)));
    return memory_.back().bytes();
  }

  std::unique_ptr<HostAllocator> allocator_ = std::make_unique<HostAllocator>();
  std::vector<HostBuffer> memory_;
  std::vector<std::span<std::byte>> inputs_, outputs_;
  std::vector<Donated> donated_;
};

struct Figures {
  double compile_s = 0;
  std::vector<double> run_s;  // sorted
  std::int64_t temp_bytes = 0, scratch_bytes = 0, peak_rss_bytes = 0, page_faults = 0;
  std::int64_t moved_bytes = 0;         // arguments, results and temporaries
  double copy_bytes_per_s = 0;          // read and written, on the same threads
  double median() const { return run_s[run_s.size() / 2]; }
};

// Runs until the time is over. What the first run does, page in the arena and start threads, is not counted.
Expected<> measure(const runtime::Devices& devices, std::vector<Ports>& ports, const Options& options,
                   Figures& figures) {
  std::vector<runtime::DeviceValues> values;
  for (const Ports& of_device : ports) values.push_back({of_device.inputs(), of_device.outputs()});
  const auto once = [&] {
    for (Ports& of_device : ports) of_device.restore();
    const Clock::time_point start = Clock::now();
    Expected<> done = devices.execute(values, {}, collective_timeout(options));
    figures.run_s.push_back(seconds_since(start));
    return done;
  };
  figures.run_s.assign(kMaxRuns, 0);  // touched, so that noting a time costs no page fault
  figures.run_s.clear();
  TRY(once());
  figures.run_s.clear();
  const std::int64_t faults = page_faults();
  const Clock::time_point start = Clock::now();
  while (figures.run_s.size() < kMinRuns || (seconds_since(start) < options.seconds && figures.run_s.size() < kMaxRuns))
    TRY(once());
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
    pool.parallel_copy(to.data(), from.data(), kBytes, pool.num_threads());
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

std::string text(const Source& source, const Figures& f, const buffers::Assignment& assignment, int threads) {
  std::ostringstream out;
  out.precision(4);
  out << source.path << ", " << threads << (threads == 1 ? " thread" : " threads") << "\n";
  out << "compile    " << f.compile_s * 1e3 << " ms\n";
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
  return compiled;
}

}  // namespace

Expected<int> bench(const Options& options) {
  const Source source = TRY(read_source(options, true));
  auto module = TRY(read_module(source, options));
  const Devices wanted = TRY(devices_of(*module));
  const auto arguments = TRY(read_arguments(options, source, *module, wanted));
  const int threads = options.threads > 0 ? options.threads : runtime::available_cpus();

  Figures figures;
  compiler::Options compile = compile_options(options);
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
  TRY(measure(devices, ports, options, figures));
  figures.peak_rss_bytes = peak_rss_bytes();
  if (options.json) {
    TRY(write_output(json(source, figures)));
    return kGood;
  }
  runtime::ThreadPool pool(threads);
  figures.copy_bytes_per_s = TRY(copy_bandwidth(pool));
  TRY(write_output(text(source, figures, compiled.assignment, threads)));
  return kGood;
}

}  // namespace hloom::cli
