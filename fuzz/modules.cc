// Runs random modules against the interpreter, each batch in a process of its own:
//
//   fuzz_modules --seeds 0:20000 [--devices] [--quick] [--deadline SECONDS] [--out DIR]
//
// Prints what differs, aborts or hangs, with its seed; exit status 1 if anything does. DIR gets each such module,
// SEED.hlo and SEED.npz, and a small one with the same fault, SEED.small.hlo and SEED.small.npz, for hloom check. With
// --devices the programs are for 2 to 4 devices, whose arguments are in SEED.devK.npz; those are not made smaller.
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "arrays/npz.h"
#include "compiler/agreement.h"
#include "generate/generate.h"
#include "shrink/shrink.h"
#include "text/print.h"

namespace {

using namespace hloom;

struct Words {
  std::uint64_t from = 0, to = 100;
  int deadline_s = 60;
  bool quick = false;
  bool devices = false;
  std::string out;
};

std::unique_ptr<hlo::Module> draw(const Words& words, std::uint64_t seed) {
  generate::Options options;
  options.on_devices = words.devices;
  return generate::module(seed, options);
}

/// What a child tells about a seed.
enum class Outcome : char { Good = 'g', Differs = 'd', Unimplemented = 'u', Refused = 'r' };

// One line on the pipe: a letter, the seed, words.
void tell(int pipe, char letter, std::uint64_t seed, std::string words) {
  for (char& c : words)
    if (c == '\n') c = ' ';
  if (words.size() > 3000) words.resize(3000);
  const std::string line = std::string(1, letter) + " " + std::to_string(seed) + " " + words + "\n";
  if (write(pipe, line.data(), line.size()) < 0) _exit(3);
}

void run_seeds(const Words& words, std::uint64_t from, int pipe) {
  compiler::AgreementOptions options;
  options.steps = options.instructions = !words.quick;
  const compiler::Agreement agreement(options);
  for (std::uint64_t seed = from; seed < words.to; ++seed) {
    tell(pipe, 's', seed, "");
    const auto module = draw(words, seed);
    const auto found = agreement.difference(*module, generate::device_arguments(*module, seed));
    if (!found)
      tell(pipe,
           static_cast<char>(found.error().code() == Code::Unimplemented ? Outcome::Unimplemented : Outcome::Refused),
           seed, found.error().message());
    else
      tell(pipe, static_cast<char>(*found ? Outcome::Differs : Outcome::Good), seed, found->value_or(""));
  }
}

/// Reads what a child tells, ends it if it says nothing for too long.
class Batch {
 public:
  Batch(const Words& words, std::uint64_t from) : deadline_s_(words.deadline_s) {
    int ends[2];
    if (pipe(ends) != 0) std::abort();
    std::fflush(nullptr);
    child_ = fork();
    if (child_ == 0) {
      close(ends[0]);
      run_seeds(words, from, ends[1]);
      _exit(0);
    }
    close(ends[1]);
    pipe_ = ends[0];
  }
  ~Batch() { close(pipe_); }

  /// The next line; empty at the end.
  std::string next() {
    for (;;) {
      if (const auto end = held_.find('\n'); end != std::string::npos) {
        std::string line = held_.substr(0, end);
        held_.erase(0, end + 1);
        return line;
      }
      pollfd p{pipe_, POLLIN, 0};
      if (poll(&p, 1, deadline_s_ * 1000) == 0) {
        hung_ = true;
        kill(child_, SIGKILL);
        return "";
      }
      char bytes[4096];
      const ssize_t n = read(pipe_, bytes, sizeof(bytes));
      if (n <= 0) return "";
      held_.append(bytes, static_cast<std::size_t>(n));
    }
  }
  /// How it ended: empty if well.
  std::string end() {
    int status = 0;
    waitpid(child_, &status, 0);
    if (hung_) return "hangs";
    if (WIFSIGNALED(status)) return std::string("ends by signal ") + strsignal(WTERMSIG(status));
    if (WEXITSTATUS(status) != 0) return "exits with " + std::to_string(WEXITSTATUS(status));
    return "";
  }

 private:
  int deadline_s_;
  pid_t child_ = 0;
  int pipe_ = -1;
  bool hung_ = false;
  std::string held_;
};

void write_arguments(const std::string& path, const std::vector<hlo::Literal>& arguments) {
  arrays::Npz npz;
  std::size_t n = 0;
  for (const hlo::Literal& a : arguments) npz.add("arg" + std::to_string(n++), arrays::to_array(a));
  if (const auto written = arrays::write_npz(path, npz); !written)
    std::fprintf(stderr, "%s\n", written.error().message().c_str());
}

void write_program(const std::string& path, const shrink::Program& program) {
  std::ofstream(path + ".hlo") << text::print(*program.module);
  write_arguments(path + ".npz", program.arguments);
}

/// How a module fails, so that a smaller one fails alike.
enum class Fault { None, Differs, Refused, Unimplemented, Signal, Hangs };

Fault fault_in_child(const shrink::Program& program) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    if (std::freopen("/dev/null", "w", stderr) == nullptr) _exit(0);
    alarm(20);
    compiler::AgreementOptions options;
    options.max_interpreter_steps = 20'000;
    const auto found = compiler::Agreement(options).difference(*program.module, program.arguments);
    if (!found && found.error().code() == Code::ResourceExhausted) _exit(0);
    _exit(found ? (*found ? 1 : 0) : found.error().code() == Code::Unimplemented ? 3 : 2);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) return WTERMSIG(status) == SIGALRM ? Fault::Hangs : Fault::Signal;
  return static_cast<Fault>(WEXITSTATUS(status));
}

void keep_program(const Words& words, std::uint64_t seed) {
  if (words.out.empty()) return;
  shrink::Program program{draw(words, seed), {}, true};
  const std::string path = words.out + "/" + std::to_string(seed);
  if (words.devices) {
    std::ofstream(path + ".hlo") << text::print(*program.module);
    const auto all = generate::device_arguments(*program.module, seed);
    for (std::size_t k = 0; k < all.size(); ++k) write_arguments(path + ".dev" + std::to_string(k) + ".npz", all[k]);
    return;
  }
  program.arguments = generate::arguments(*program.module, seed);
  write_program(path, program);
  const Fault fault = fault_in_child(program);
  if (fault == Fault::None || fault == Fault::Hangs) return;
  const auto same = [&](const shrink::Program& p) { return fault_in_child(p) == fault; };
  const shrink::Result small = shrink::shrink(std::move(program), same, {.max_tries = 1500, .progress = {}});
  write_program(path + ".small", small.program);
  std::printf("%s", text::print(*small.program.module, text::PrintOptions::short_parsable()).c_str());
  std::fflush(stdout);
}

struct Counts {
  std::uint64_t good = 0, bad = 0;
  std::map<std::string, int> unimplemented;
};

void report(const Words& words, std::uint64_t seed, const std::string& what, Counts& counts) {
  ++counts.bad;
  std::printf("seed %" PRIu64 ": %s\n", seed, what.c_str());
  std::fflush(stdout);
  keep_program(words, seed);
}

// Words without the instruction's name and the dimensions of shapes.
std::string kind_of(const std::string& message) {
  const auto colon = message.find(": ");
  std::string what = colon == std::string::npos ? message : message.substr(colon + 2);
  if (const auto shape = what.find('['); shape != std::string::npos) what.resize(shape);
  return what.substr(0, 60);
}

Counts run_all(const Words& words) {
  Counts counts;
  for (std::uint64_t at = words.from; at < words.to;) {
    Batch batch(words, at);
    for (std::string line = batch.next(); !line.empty(); line = batch.next()) {
      const char letter = line[0];
      char* rest = nullptr;
      const std::uint64_t seed = std::strtoull(line.c_str() + 2, &rest, 10);
      const std::string message = *rest == ' ' ? rest + 1 : rest;
      at = seed;
      if (letter == 's') continue;
      if (letter == static_cast<char>(Outcome::Good)) ++counts.good;
      if (letter == static_cast<char>(Outcome::Unimplemented)) ++counts.unimplemented[kind_of(message)];
      if (letter == static_cast<char>(Outcome::Differs)) report(words, seed, message, counts);
      if (letter == static_cast<char>(Outcome::Refused)) report(words, seed, "is refused: " + message, counts);
    }
    if (const std::string end = batch.end(); !end.empty()) report(words, at, end, counts);
    ++at;
  }
  return counts;
}

}  // namespace

int main(int argc, char** argv) {
  Words words;
  for (int a = 1; a < argc; ++a) {
    const std::string word = argv[a];
    if (word == "--quick") {
      words.quick = true;
      continue;
    }
    if (word == "--devices") {
      words.devices = true;
      continue;
    }
    if (a + 1 >= argc) return 2;
    const char* value = argv[++a];
    char* rest = nullptr;
    if (word == "--seeds") {
      words.from = std::strtoull(value, &rest, 10);
      words.to = *rest == ':' ? std::strtoull(rest + 1, nullptr, 10) : words.from + 1;
    } else if (word == "--deadline") {
      words.deadline_s = std::atoi(value);
    } else if (word == "--out") {
      words.out = value;
    } else {
      std::fprintf(stderr, "fuzz_modules --seeds FROM:TO [--devices] [--quick] [--deadline SECONDS] [--out DIR]\n");
      return 2;
    }
  }
  const Counts counts = run_all(words);
  std::printf("seeds %" PRIu64 ":%" PRIu64 ": %" PRIu64 " agree, %" PRIu64 " do not", words.from, words.to, counts.good,
              counts.bad);
  int refused = 0;
  for (const auto& [what, number] : counts.unimplemented) refused += number;
  std::printf(", %d have no code:\n", refused);
  for (const auto& [what, number] : counts.unimplemented) std::printf("  %5d %s\n", number, what.c_str());
  return counts.bad == 0 ? 0 : 1;
}
