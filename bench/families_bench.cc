// Each family of kernels with data that lies in the first, second and third cache and in memory, on one thread, in memory as
// results have it.
//
// `share` is the time that the machine needs over the program's: of a memcpy of as many bytes as arguments and results have;
// where results are an eighth of the arguments or less, of reading them; of those that pick rows, of a loop that copies
// these rows; and of those that compute, of their operations in the processor's multiply-add units.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <cmath>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "family_cases.h"
#include "hloom/executable.h"
#include "limits.h"

namespace hloom::bench {
namespace {

struct Size {
  const char* name;
  std::int64_t elements;
};
const Size kSizes[] = {{"L1", 4096}, {"L2", 1 << 17}, {"L3", 1 << 22}, {"memory", 1 << 26}};

// The text with a number for each capital that stands alone.
std::string program(const Case& c, std::int64_t n) {
  const auto side = static_cast<std::int64_t>(std::sqrt(static_cast<double>(n)));
  const std::int64_t columns = std::min<std::int64_t>(1024, side);
  const std::map<char, std::int64_t> numbers = {{'N', n}, {'S', side}, {'C', columns}, {'R', n / columns}, {'D', 2 * columns},
                                                {'E', columns + 3}, {'F', columns + 3}, {'G', columns - 3}, {'I', columns - 1}, {'K', n / 256},
                                                {'L', n / 512}, {'M', n / 1024}, {'O', n - 8}, {'P', n / 16}, {'Q', n / 64}, {'H', std::max<std::int64_t>(1, n / columns / 256)}};
  const auto in_word = [](char x) { return std::isalnum(static_cast<unsigned char>(x)) != 0 || x == '_'; };
  const std::string head = c.in_place ? " HloModule m, input_output_alias={ {}: (0, {}, may-alias) }\n" : " ";
  const std::string text = head + c.text + " ";
  std::string result;
  for (std::size_t i = 1; i + 1 < text.size(); ++i) {
    const auto number = numbers.find(text[i]);
    const bool alone = (!in_word(text[i - 1]) || text[i - 1] == 'x' || text[i - 1] == '_') && (!in_word(text[i + 1]) || text[i + 1] == '_');
    result += number != numbers.end() && alone ? std::to_string(number->second) : std::string(1, text[i]);
  }
  return result;
}

// Floats in (-1, 1), integers that are indices below `limit`, as a caller has them.
void fill(const Shape& shape, std::int64_t limit, std::span<std::byte> bytes) {
  std::mt19937_64 random(1);
  for (std::size_t i = 0; i + 4 <= bytes.size(); i += 4) {
    const float x = static_cast<float>(static_cast<double>(random() >> 11) * 0x1p-52 - 1);
    const auto index = static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(limit));
    if (shape.dtype() == DType::BF16) {
      const auto half = static_cast<std::uint32_t>(std::bit_cast<std::uint32_t>(x) >> 16);
      const std::uint32_t two = half | half << 16;
      std::memcpy(&bytes[i], &two, 4);
    } else if (shape.dtype() == DType::S32) {
      std::memcpy(&bytes[i], &index, 4);
    } else {
      std::memcpy(&bytes[i], &x, 4);
    }
  }
}

struct Arrays {
  std::vector<Buffer> memory;
  std::vector<std::span<std::byte>> inputs, outputs;
  std::int64_t read_bytes = 0, written_bytes = 0;
};

Arrays arrays_of(const Case& c, const Executable& program, std::int64_t elements) {
  Arrays a;
  const auto add = [&](const Shape& shape) {
    a.memory.push_back(*Buffer::allocate(shape.size_bytes()));
    return a.memory.back().mutable_bytes();
  };
  for (const Shape& shape : program.parameter_shapes()) {
    const std::int64_t rows = program.parameter_shapes()[0].rank() > 0 ? program.parameter_shapes()[0].dim(0) : 1;
    a.inputs.push_back(add(shape));
    fill(shape, c.near ? std::max<std::int64_t>(1, elements / 1024) : rows, a.inputs.back());
    a.read_bytes += shape.size_bytes();
  }
  for (const Shape& shape : program.result_shapes()) {
    a.outputs.push_back(c.in_place ? a.inputs[0] : add(shape));
    a.written_bytes += shape.size_bytes();
  }
  return a;
}

double limit_seconds(const Case& c, const Arrays& a) {
  if (c.moved_bytes > 0) return copy_seconds(c.moved_bytes);
  if (c.row_bytes > 0) {
    const std::span<const std::byte> indices = a.inputs[1];
    return rows_seconds(a.inputs[0], c.row_bytes, {reinterpret_cast<const std::int32_t*>(indices.data()), indices.size() / 4}, a.outputs[0]);
  }
  return 8 * a.written_bytes <= a.read_bytes ? read_seconds(a.read_bytes) : copy_seconds(a.read_bytes + a.written_bytes);
}

void family(benchmark::State& state, const Case& c, const Size& size) {
  CompileOptions options;
  options.threads = 1;
  const auto compiled = Executable::compile(program(c, size.elements), options);
  if (!compiled) return state.SkipWithError(compiled.error().message().c_str());
  const Arrays a = arrays_of(c, *compiled, size.elements);
  const std::int64_t moved = c.moved_bytes > 0 ? c.moved_bytes : a.read_bytes + a.written_bytes;
  // Large ones are measured once or twice: not while their memory comes.
  for (int run = 0; run < 2; ++run)
    if (const auto done = compiled->run_into(a.inputs, a.outputs); !done) return state.SkipWithError(done.error().message().c_str());
  const std::int64_t times = c.operations == nullptr ? times_for(moved) : 1;
  double best = INFINITY;
  for (auto _ : state) {
    const double start = thread_seconds();
    for (std::int64_t k = 0; k < times; ++k) benchmark::DoNotOptimize(compiled->run_into(a.inputs, a.outputs).has_value());
    best = std::min(best, (thread_seconds() - start) / static_cast<double>(times));
  }
  state.counters["us"] = best * 1e6;
  if (c.operations != nullptr) {
    const double rate = c.operations(static_cast<double>(size.elements)) / best;
    state.counters["Gflop/s"] = rate * 1e-9;
    state.counters["share"] = rate / peak_flops();
  } else {
    state.counters["GB/s"] = static_cast<double>(moved) / best * 1e-9;
    state.counters["share"] = limit_seconds(c, a) / best;
  }
}

const bool kRegistered = [] {
  for (const Case& c : cases())
    for (const Size& size : kSizes)
      benchmark::RegisterBenchmark((std::string(c.name) + "/" + size.name).c_str(), [&c, &size](benchmark::State& state) {
        family(state, c, size);
      })->MinTime(0.1);
  return true;
}();

}  // namespace
}  // namespace hloom::bench
