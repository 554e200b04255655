// Each family of kernels with data that lies in the first, second and third cache and in memory, on one thread.
//
// Of those that move data, `share` is the time of a memcpy of as many bytes as arguments and results have, over their own;
// of those that compute, their operations over what the processor's multiply-add units can do. Both by this thread's time.
#include <benchmark/benchmark.h>
#include <time.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <cmath>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "hloom/executable.h"
#include "peak.h"

namespace {

// In texts, N is the number of elements, R and C of rows and columns, C = min(1024, √N), S the side of
// a square of N; the other letters are what program() says.
struct Case {
  const char* name;
  const char* text;
  double (*operations)(double n) = nullptr;  // null: it moves data
  bool in_place = false;                     // the result is the first argument's memory
  std::int64_t moved_bytes = 0;              // 0: arguments and results
};

#define HLOOM_SUM "sum { x = f32[] parameter(0)\n y = f32[] parameter(1)\n ROOT s = f32[] add(x, y) }\n"
#define HLOOM_MAX "max { x = f32[] parameter(0)\n y = f32[] parameter(1)\n ROOT s = f32[] maximum(x, y) }\n"
#define HLOOM_LESS "less { x = f32[] parameter(0)\n y = f32[] parameter(1)\n ROOT s = pred[] compare(x, y), direction=LT, type=TOTALORDER }\n"

const Case kCases[] = {
    {"loop/add", "ENTRY e { p = f32[N] parameter(0)\n q = f32[N] parameter(1)\n ROOT r = f32[N] add(p, q) }"},
    {"loop/exp", "ENTRY e { p = f32[N] parameter(0)\n ROOT r = f32[N] exponential(p) }"},
    {"loop/tanh", "ENTRY e { p = f32[N] parameter(0)\n ROOT r = f32[N] tanh(p) }"},
    {"loop/from_bf16", "ENTRY e { p = bf16[N] parameter(0)\n ROOT r = f32[N] convert(p) }"},
    {"loop/to_bf16", "ENTRY e { p = f32[N] parameter(0)\n ROOT r = bf16[N] convert(p) }"},
    {"concatenate/rows",
     "ENTRY e { p = f32[R,C] parameter(0)\n q = f32[R,C] parameter(1)\n ROOT r = f32[R,D] concatenate(p, q), dimensions={1} }"},
    {"concatenate/interleave",
     "ENTRY e { p = f32[N,1] parameter(0)\n q = f32[N,1] parameter(1)\n ROOT r = f32[N,2] concatenate(p, q), dimensions={1} }"},
    {"update/window",
     "ENTRY e { p = f32[N] parameter(0)\n i = s32[] constant(5)\n x = f32[] constant(2)\n z = f32[1024] broadcast(x), dimensions={}\n"
     " ROOT r = f32[N] dynamic-update-slice(p, z, i) }",
     nullptr, true, 2 * 4096},
    {"copy/transpose", "ENTRY e { p = f32[R,C] parameter(0)\n ROOT r = f32[C,R] transpose(p), dimensions={1,0} }"},
    {"copy/slice", "ENTRY e { p = f32[R,D] parameter(0)\n ROOT r = f32[R,C] slice(p), slice={[0:R], [3:E]} }"},
    {"copy/pad", "ENTRY e { p = f32[R,C] parameter(0)\n z = f32[] constant(0)\n ROOT r = f32[R,F] pad(p, z), padding=0_0x1_2 }"},
    {"copy/reverse", "ENTRY e { p = f32[R,C] parameter(0)\n ROOT r = f32[R,C] reverse(p), dimensions={1} }"},
    {"copy/roll",
     "ENTRY e { p = f32[R,C] parameter(0)\n a = f32[R,G] slice(p), slice={[0:R], [3:C]}\n b = f32[R,3] slice(p), slice={[0:R], [0:3]}\n"
     " ROOT r = f32[R,C] concatenate(a, b), dimensions={1} }"},
    {"copy/broadcast", "ENTRY e { p = f32[C] parameter(0)\n ROOT r = f32[R,C] broadcast(p), dimensions={1} }"},
    {"reduce/row", HLOOM_SUM "ENTRY e { p = f32[R,C] parameter(0)\n z = f32[] constant(0)\n ROOT r = f32[R] reduce(p, z), dimensions={1}, to_apply=sum }"},
    {"reduce/column", HLOOM_SUM "ENTRY e { p = f32[R,C] parameter(0)\n z = f32[] constant(0)\n ROOT r = f32[C] reduce(p, z), dimensions={0}, to_apply=sum }"},
    {"reduce/all", HLOOM_SUM "ENTRY e { p = f32[R,C] parameter(0)\n z = f32[] constant(0)\n ROOT r = f32[] reduce(p, z), dimensions={0,1}, to_apply=sum }"},
    {"reduce/argmax",
     "best { a = f32[] parameter(0)\n i = s32[] parameter(1)\n b = f32[] parameter(2)\n j = s32[] parameter(3)\n g = pred[] compare(a, b), direction=GT\n"
     " n = pred[] compare(a, a), direction=NE\n t = pred[] or(g, n)\n q = pred[] compare(a, b), direction=EQ\n l = pred[] compare(i, j), direction=LT\n"
     " u = pred[] and(q, l)\n k = pred[] or(t, u)\n v = f32[] select(t, a, b)\n w = s32[] select(k, i, j)\n ROOT r = (f32[], s32[]) tuple(v, w) }\n"
     "ENTRY e { p = f32[R,C] parameter(0)\n i = s32[R,C] iota(), iota_dimension=1\n z = f32[] constant(-inf)\n o = s32[] constant(0)\n"
     " ROOT r = (f32[R], s32[R]) reduce(p, i, z, o), dimensions={1}, to_apply=best }"},
    {"gather/rows",
     "ENTRY e { p = f32[R,C] parameter(0)\n i = s32[R,1] parameter(1)\n ROOT r = f32[R,C] gather(p, i), offset_dims={1}, collapsed_slice_dims={0}, "
     "start_index_map={0}, index_vector_dim=1, slice_sizes={1,C} }"},
    {"gather/elements",
     "ENTRY e { p = f32[N] parameter(0)\n i = s32[N,1] parameter(1)\n ROOT r = f32[N] gather(p, i), offset_dims={}, collapsed_slice_dims={0}, "
     "start_index_map={0}, index_vector_dim=1, slice_sizes={1} }"},
    {"scatter/rows", HLOOM_SUM
     "ENTRY e { p = f32[R,C] parameter(0)\n i = s32[R,1] parameter(1)\n u = f32[R,C] parameter(2)\n ROOT r = f32[R,C] scatter(p, i, u), "
     "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum }",
     nullptr, true},
    {"scatter/elements", HLOOM_SUM
     "ENTRY e { p = f32[N] parameter(0)\n i = s32[N,1] parameter(1)\n u = f32[N] parameter(2)\n ROOT r = f32[N] scatter(p, i, u), "
     "update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum }",
     nullptr, true},
    {"window/cumulative_sum", HLOOM_SUM
     "ENTRY e { p = f32[R,C] parameter(0)\n z = f32[] constant(0)\n ROOT r = f32[R,C] reduce-window(p, z), window={size=1xC pad=0_0xI_0}, to_apply=sum }"},
    {"window/sum_3x3", HLOOM_SUM
     "ENTRY e { p = f32[R,C] parameter(0)\n z = f32[] constant(0)\n ROOT r = f32[R,C] reduce-window(p, z), window={size=3x3 pad=1_1x1_1}, to_apply=sum }"},
    {"window/max_3x3_channels", HLOOM_MAX
     "ENTRY e { p = f32[1,K,8,32] parameter(0)\n z = f32[] constant(-inf)\n ROOT r = f32[1,K,8,32] reduce-window(p, z), "
     "window={size=1x3x3x1 pad=0_0x1_1x1_1x0_0}, to_apply=max }"},
    {"window/max_15x15", HLOOM_MAX
     "ENTRY e { p = f32[R,C] parameter(0)\n z = f32[] constant(-inf)\n ROOT r = f32[R,C] reduce-window(p, z), window={size=15x15 pad=7_7x7_7}, to_apply=max }"},
    {"order/sort", HLOOM_LESS "ENTRY e { p = f32[N] parameter(0)\n ROOT r = f32[N] sort(p), dimensions={0}, to_apply=less }"},
    {"order/sort_rows", HLOOM_LESS "ENTRY e { p = f32[R,C] parameter(0)\n ROOT r = f32[R,C] sort(p), dimensions={1}, to_apply=less }"},
    {"order/sort_pairs",
     "less { x = f32[] parameter(0)\n y = f32[] parameter(1)\n v = s32[] parameter(2)\n w = s32[] parameter(3)\n ROOT s = pred[] compare(x, y), direction=LT, "
     "type=TOTALORDER }\n"
     "ENTRY e { p = f32[N] parameter(0)\n i = s32[N] iota(), iota_dimension=0\n ROOT r = (f32[N], s32[N]) sort(p, i), dimensions={0}, is_stable=true, to_apply=less }"},
    {"order/top_8", "ENTRY e { p = f32[R,C] parameter(0)\n ROOT r = (f32[R,8], s32[R,8]) topk(p), k=8, largest=true }"},
    {"random/threefry",
     "ENTRY e { p = u64[2] parameter(0)\n ROOT r = (u64[2], u32[N]) rng-bit-generator(p), algorithm=rng_three_fry }"},
    {"random/philox", "ENTRY e { p = u64[3] parameter(0)\n ROOT r = (u64[3], u32[N]) rng-bit-generator(p), algorithm=rng_philox }"},
    {"dot/square",
     "ENTRY e { p = f32[S,S] parameter(0)\n q = f32[S,S] parameter(1)\n ROOT r = f32[S,S] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0} }",
     [](double n) { return 2 * n * std::sqrt(n); }},
    {"dot/vector",
     "ENTRY e { p = f32[R,C] parameter(0)\n q = f32[C] parameter(1)\n ROOT r = f32[R] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0} }"},
    {"dot/bf16",
     "ENTRY e { p = bf16[S,S] parameter(0)\n q = bf16[S,S] parameter(1)\n ROOT r = bf16[S,S] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0} }",
     [](double n) { return 2 * n * std::sqrt(n); }},
    {"dot/s8",
     "ENTRY e { p = s8[S,S] parameter(0)\n q = s8[S,S] parameter(1)\n ROOT r = s32[S,S] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0} }",
     [](double n) { return 2 * n * std::sqrt(n); }},
    {"convolution/3x3",
     "ENTRY e { p = f32[1,K,8,32] parameter(0)\n q = f32[3,3,32,32] parameter(1)\n ROOT r = f32[1,K,8,32] convolution(p, q), "
     "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f }",
     [](double n) { return 2 * n * 9 * 32; }},
    {"convolution/bf16",
     "ENTRY e { p = bf16[1,K,8,32] parameter(0)\n q = bf16[3,3,32,32] parameter(1)\n ROOT r = bf16[1,K,8,32] convolution(p, q), "
     "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f }",
     [](double n) { return 2 * n * 9 * 32; }},
    {"convolution/grouped",
     "ENTRY e { p = f32[1,K,8,32] parameter(0)\n q = f32[3,3,8,32] parameter(1)\n ROOT r = f32[1,K,8,32] convolution(p, q), "
     "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f, feature_group_count=4 }",
     [](double n) { return 2 * n * 9 * 8; }},
    {"convolution/depthwise",
     "ENTRY e { p = f32[1,K,8,32] parameter(0)\n q = f32[3,3,1,32] parameter(1)\n ROOT r = f32[1,K,8,32] convolution(p, q), "
     "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f, feature_group_count=32 }"},
    {"convolution/depthwise_planes",
     "ENTRY e { p = f32[32,8,H,C] parameter(0)\n q = f32[8,1,3,3] parameter(1)\n ROOT r = f32[32,8,H,C] convolution(p, q), "
     "window={size=3x3 pad=1_1x1_1}, dim_labels=bf01_oi01->bf01, feature_group_count=8 }"},
    {"convolution/depthwise_gradient",
     "ENTRY e { p = f32[1,8,K,32] parameter(0)\n q = f32[1,8,K,32] parameter(1)\n ROOT r = f32[3,3,1,32] convolution(p, q), "
     "window={size=8xK pad=1_1x1_1}, dim_labels=f01b_i01o->01bf, batch_group_count=32 }"},
    {"fft/256",
     "ENTRY e { p = c64[L,256] parameter(0)\n ROOT r = c64[L,256] fft(p), fft_type=FFT, fft_length={256} }"},
};

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
                                                {'L', n / 512}, {'H', std::max<std::int64_t>(1, n / columns / 256)}};
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

double thread_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

// Seconds that memcpy takes to read half of the bytes and write the other half.
double copy_seconds(std::int64_t bytes) {
  const auto half = static_cast<std::size_t>(std::max<std::int64_t>(bytes / 2, 64));
  std::vector<char> from(half, 1), to(half);
  const std::size_t times = std::max<std::size_t>(1, (1 << 22) / half);
  double best = INFINITY;
  for (int i = 0; i < 8; ++i) {
    const double start = thread_seconds();
    for (std::size_t k = 0; k < times; ++k) {
      std::memcpy(to.data(), from.data(), half);
      benchmark::DoNotOptimize(to.data());
      benchmark::ClobberMemory();
    }
    best = std::min(best, (thread_seconds() - start) / static_cast<double>(times));
  }
  return best;
}

// Floats in (-1, 1), integers that are indices of any array here, as a caller has them.
void fill(const hloom::Shape& shape, std::int64_t rows, std::vector<std::byte>& bytes) {
  std::mt19937_64 random(1);
  for (std::size_t i = 0; i + 4 <= bytes.size(); i += 4) {
    const float x = static_cast<float>(static_cast<double>(random() >> 11) * 0x1p-52 - 1);
    const auto index = static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(rows));
    if (shape.dtype() == hloom::DType::BF16) {
      const auto half = static_cast<std::uint32_t>(std::bit_cast<std::uint32_t>(x) >> 16);
      const std::uint32_t two = half | half << 16;
      std::memcpy(&bytes[i], &two, 4);
    } else if (shape.dtype() == hloom::DType::S32) {
      std::memcpy(&bytes[i], &index, 4);
    } else {
      std::memcpy(&bytes[i], &x, 4);
    }
  }
}

void family(benchmark::State& state, const Case& c, const Size& size) {
  hloom::CompileOptions options;
  options.threads = 1;
  const auto program_of = hloom::Executable::compile(program(c, size.elements), options);
  if (!program_of) return state.SkipWithError(program_of.error().message().c_str());
  std::vector<std::vector<std::byte>> arrays;
  std::vector<std::span<std::byte>> inputs, outputs;
  std::int64_t moved = 0;
  const auto add = [&](const hloom::Shape& shape, std::vector<std::span<std::byte>>& to) {
    arrays.emplace_back(static_cast<std::size_t>(shape.size_bytes()));
    to.emplace_back(arrays.back());
    moved += shape.size_bytes();
  };
  arrays.reserve(16);
  for (const hloom::Shape& shape : program_of->parameter_shapes()) {
    add(shape, inputs);
    fill(shape, std::max<std::int64_t>(1, size.elements / 1024), arrays.back());
  }
  for (const hloom::Shape& shape : program_of->result_shapes()) add(shape, outputs);
  if (c.in_place) outputs[0] = inputs[0];
  if (c.moved_bytes > 0) moved = c.moved_bytes;
  // Large ones are measured once or twice: not while their memory comes.
  for (int run = 0; run < 2; ++run)
    if (const auto done = program_of->run_into(inputs, outputs); !done) return state.SkipWithError(done.error().message().c_str());
  double best = INFINITY;
  for (auto _ : state) {
    const double start = thread_seconds();
    const auto done = program_of->run_into(inputs, outputs);
    best = std::min(best, thread_seconds() - start);
    if (!done) return state.SkipWithError(done.error().message().c_str());
  }
  if (c.operations != nullptr) {
    const double rate = c.operations(static_cast<double>(size.elements)) / best;
    state.counters["Gflop/s"] = rate * 1e-9;
    state.counters["share"] = rate / hloom::bench::peak_flops();
  } else {
    state.counters["GB/s"] = static_cast<double>(moved) / best * 1e-9;
    state.counters["share"] = copy_seconds(moved) / best;
  }
}

const bool kRegistered = [] {
  for (const Case& c : kCases)
    for (const Size& size : kSizes)
      benchmark::RegisterBenchmark((std::string(c.name) + "/" + size.name).c_str(), [&c, &size](benchmark::State& state) {
        family(state, c, size);
      })->MinTime(0.1);
  return true;
}();

}  // namespace
