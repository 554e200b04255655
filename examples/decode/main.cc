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
#include <span>
#include <string>
#include <vector>

namespace {

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

hloom::Expected<std::vector<hloom::Buffer>> zeros(const std::vector<hloom::Shape>& shapes) {
  std::vector<hloom::Buffer> buffers;
  for (const hloom::Shape& shape : shapes) {
    hloom::Expected<hloom::Buffer> buffer = hloom::Buffer::allocate(shape.size_bytes());
    if (!buffer) return buffer.error();
    std::ranges::fill(buffer->mutable_bytes(), std::byte{0});
    buffers.push_back(*std::move(buffer));
  }
  return buffers;
}

void set(hloom::Buffer& scalar, std::int32_t value) {
  std::memcpy(scalar.mutable_bytes().data(), &value, sizeof value);
}

// The first buffers are the weights, which lie one after the other in the file; returns how many these are.
std::size_t borrow_weights(const std::string& weights, std::vector<hloom::Buffer>& buffers) {
  const std::span<const std::byte> file = std::as_bytes(std::span(weights));
  std::size_t offset = 0, i = 0;
  for (; i < buffers.size(); ++i) {
    const auto size = static_cast<std::size_t>(buffers[i].size_bytes());
    if (offset + size > file.size()) break;
    buffers[i] = hloom::Buffer::borrow_immutable(file.subspan(offset, size));
    offset += size;
  }
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
  const std::string weights = read_file(folder + "/weights.bin");
  hloom::Expected<std::vector<hloom::Buffer>> zeroed = zeros(program->parameter_shapes());
  if (!zeroed) return report(zeroed.error());
  std::vector<hloom::Buffer> args = *std::move(zeroed);
  const std::size_t cache = borrow_weights(weights, args);
  hloom::Buffer& token = args[args.size() - 2];
  hloom::Buffer& position = args[args.size() - 1];

  const std::int64_t length = program->parameter_shapes()[cache].dims()[0];
  std::string text = prompt;
  double run_s = 0;
  for (std::size_t n = 0; n < std::size_t(length); ++n) {
    const std::size_t index = vocabulary.find(text[n]);
    if (index == std::string::npos)
      return report({hloom::Code::InvalidArgument, "the model does not know this letter"});
    set(token, std::int32_t(index));
    set(position, std::int32_t(n));
    for (std::size_t i = cache; i < args.size() - 2; ++i) args[i] = hloom::donate(std::move(args[i]));
    const Clock::time_point before_run = Clock::now();
    hloom::Expected<hloom::Results> results = program->run(args);
    run_s += seconds_since(before_run);
    if (!results) return report(results.error());
    for (const hloom::Donation& donation : results->donations())
      if (!donation.reason.empty())
        std::printf("parameter %lld is copied: %s\n", static_cast<long long>(donation.parameter),
                    std::string(donation.reason).c_str());
    std::move(results->begin() + 2, results->end(), args.begin() + std::ptrdiff_t(cache));
    if (n + 1 == text.size()) text += vocabulary[std::size_t((*results)[0].as<std::int32_t>()[0])];
  }

  std::printf("%s\n\n%lld tokens, %.1f us each; compiled in %.0f ms\n", text.c_str(), static_cast<long long>(length),
              run_s / double(length) * 1e6, compile_s * 1e3);
  print_memory(program->memory());
  return 0;
}
