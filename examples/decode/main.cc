// Decodes text with a small transformer: compiles program.hlo once, then runs it once a token. The key/value cache is
// donated: each step writes its rows where they are.
//
//   decode [FOLDER [PROMPT]]      FOLDER has program.hlo, weights.bin and vocabulary.txt
#include <hloom/executable.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace {

using Bytes = std::vector<std::byte>;
using Clock = std::chrono::steady_clock;

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

int report(const hloom::Error& error) {
  std::fprintf(stderr, "%s\n", error.message().c_str());
  return 1;
}

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

std::vector<Bytes> zeros(const std::vector<hloom::Shape>& shapes) {
  std::vector<Bytes> buffers;
  for (const hloom::Shape& shape : shapes) buffers.emplace_back(static_cast<std::size_t>(shape.size_bytes()));
  return buffers;
}

std::vector<std::span<std::byte>> views(std::vector<Bytes>& buffers) { return {buffers.begin(), buffers.end()}; }

void set(Bytes& scalar, std::int32_t value) { std::memcpy(scalar.data(), &value, sizeof value); }

std::int32_t get(const Bytes& scalar) {
  std::int32_t value;
  std::memcpy(&value, scalar.data(), sizeof value);
  return value;
}

// Fills the first buffers with the weights, which lie one after the other; returns how many these are.
std::size_t fill_weights(const std::string& weights, std::vector<Bytes>& buffers) {
  std::size_t offset = 0, i = 0;
  for (; i < buffers.size() && offset + buffers[i].size() <= weights.size(); offset += buffers[i++].size())
    std::memcpy(buffers[i].data(), weights.data() + offset, buffers[i].size());
  return i;
}

void print_memory(const hloom::MemoryReport& memory) {
  std::printf("peak memory %.1f KiB: %.1f arguments, %.1f results not in place, %.1f temporaries, %.1f constants\n",
              double(memory.peak_bytes) / 1024, double(memory.argument_bytes) / 1024,
              double(memory.result_bytes) / 1024, double(memory.temp_bytes) / 1024,
              double(memory.constant_bytes) / 1024);
  for (const auto& update : memory.updates)
    std::printf("  %s: %s%s\n", update.instruction.c_str(), update.in_place ? "in place" : "copied, because ",
                update.in_place ? "" : update.reason.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  const std::string folder = argc > 1 ? argv[1] : ".";
  const std::string prompt = argc > 2 ? argv[2] : "The time has come";
  const std::string vocabulary = read_file(folder + "/vocabulary.txt");  // token i is byte i

  const Clock::time_point before_compile = Clock::now();
  hloom::Expected<hloom::Executable> program = hloom::Executable::compile(read_file(folder + "/program.hlo"));
  if (!program) return report(program.error());
  const double compile_s = seconds_since(before_compile);

  // Parameters: weights, cache, token, position. Results: next token, logits, cache.
  std::vector<Bytes> parameters = zeros(program->parameter_shapes());
  std::vector<Bytes> results = zeros(program->result_shapes());
  const std::size_t cache = fill_weights(read_file(folder + "/weights.bin"), parameters);
  Bytes& token = parameters[parameters.size() - 2];
  Bytes& position = parameters[parameters.size() - 1];
  const std::vector<std::span<std::byte>> inputs = views(parameters);
  std::vector<std::span<std::byte>> outputs = views(results);
  std::copy(inputs.begin() + std::ptrdiff_t(cache), inputs.end() - 2, outputs.begin() + 2);

  const std::int64_t length = program->parameter_shapes()[cache].dims()[0];
  std::string text = prompt;
  double run_s = 0;
  for (std::size_t n = 0; n < std::size_t(length); ++n) {
    const std::size_t index = vocabulary.find(text[n]);
    if (index == std::string::npos)
      return report({hloom::Code::InvalidArgument, "the model does not know this letter"});
    set(token, std::int32_t(index));
    set(position, std::int32_t(n));
    const Clock::time_point before_run = Clock::now();
    if (hloom::Expected<> ran = program->run(inputs, outputs); !ran) return report(ran.error());
    run_s += seconds_since(before_run);
    if (n + 1 == text.size()) text += vocabulary[std::size_t(get(results[0]))];
  }

  std::printf("%s\n\n%lld tokens, %.1f us each; compiled in %.0f ms\n", text.c_str(), static_cast<long long>(length),
              run_s / double(length) * 1e6, compile_s * 1e3);
  print_memory(program->memory());
  return 0;
}
