// Where the layout of a result is split, parts of the grid are parts of the array.
#include <gmock/gmock.h>

#include <algorithm>
#include <random>

#include "kernels/evaluate.h"
#include "kernels/print.h"
#include "kernels/test_run_fused.h"
#include "kernels/verify.h"

namespace hloom::kernels {
namespace {

const Instruction& fusion_of(const hlo::Module& module) {
  for (const Instruction& i : module.entry()->instructions())
    if (i.opcode() == Opcode::Fusion) return i;
  ADD_FAILURE() << "no fusion";
  return *module.entry()->root();
}

std::string dims_text(const std::vector<std::int64_t>& dims) {
  std::string text = "[";
  for (std::size_t d = 0; d < dims.size(); ++d) text += (d > 0 ? "," : "") + std::to_string(dims[d]);
  return text + "]";
}

struct Case {
  std::vector<std::int64_t> dims, order;  // order: minor to major
  Layout::Split split;

  std::string shape(bool placed) const {
    std::string text = "f32" + dims_text(dims) + "{";
    for (std::size_t d = 0; d < order.size(); ++d) text += (d > 0 ? "," : "") + std::to_string(order[d]);
    if (placed && !split.indices.empty()) {
      text += ":SC(" + std::to_string(split.dimension) + ":";
      for (std::size_t n = 0; n < split.indices.size(); ++n) text += (n > 0 ? "," : "") + std::to_string(split.indices[n]);
      text += ")";
    }
    return text + "}";
  }
  // The part that an element, by its place in memory, belongs to.
  std::size_t part_of(std::int64_t place) const {
    for (const std::int64_t d : order) {
      if (d == split.dimension)
        return static_cast<std::size_t>(std::ranges::upper_bound(split.indices, place % dims[static_cast<std::size_t>(d)]) -
                                        split.indices.begin());
      place /= dims[static_cast<std::size_t>(d)];
    }
    return 0;
  }
};

Case draw(std::mt19937& random) {
  const auto below = [&](std::int64_t n) { return static_cast<std::int64_t>(random() % static_cast<unsigned>(n)); };
  Case c;
  const std::int64_t rank = 1 + below(3);
  std::int64_t left = 70'000 + below(40'000);
  for (std::int64_t d = 0; d < rank; ++d) {
    const std::int64_t extent = d + 1 == rank ? left : 2 + below(std::min<std::int64_t>(left / 4, 300));
    c.dims.push_back(extent);
    left = std::max<std::int64_t>(left / extent, 2);
    c.order.push_back(d);
  }
  std::ranges::shuffle(c.dims, random);
  std::ranges::shuffle(c.order, random);
  c.split.dimension = below(rank);
  const std::int64_t extent = c.dims[static_cast<std::size_t>(c.split.dimension)];
  for (std::int64_t n = 1 + below(4); n > 0 && extent > 1; --n) c.split.indices.push_back(1 + below(extent - 1));
  std::ranges::sort(c.split.indices);
  c.split.indices.erase(std::ranges::unique(c.split.indices).begin(), c.split.indices.end());
  return c;
}

// Sums, transposes and concatenations: boxes, squares and pieces.
std::string program(const Case& c, int form, bool placed) {
  const std::string y = c.shape(placed), x = c.shape(false);
  std::string row_major = "f32" + dims_text(c.dims), body;
  if (form == 0) body = "ROOT r = " + y + " add(p, q)";
  if (form == 1) body = "n = " + row_major + " negate(q) ROOT r = " + y + " add(p, n)";
  if (form == 2) body = "v = " + x + " reverse(p), dimensions={0} ROOT r = " + y + " subtract(v, q)";
  return "HloModule m\nf { p = " + x + " parameter(0) q = " + (form == 1 ? row_major : x) + " parameter(1) " + body +
         " }\nENTRY e { a = " + x + " parameter(0) b = " + (form == 1 ? row_major : x) + " parameter(1) ROOT k = " + y +
         " fusion(a, b), kind=kLoop, calls=f }";
}

std::vector<std::byte> run(const Kernel& kernel, const std::vector<std::vector<std::byte>>& inputs, std::int64_t begin,
                           std::int64_t end, std::byte before) {
  std::vector<std::byte> output(inputs[0].size(), before);
  std::vector<std::vector<std::byte>> all = inputs;
  std::vector<void*> pointers;
  for (auto& input : all) pointers.push_back(input.data());
  pointers.push_back(output.data());
  std::vector<std::byte> scratch(static_cast<std::size_t>(kernel.scratch_bytes) + 64);
  const auto done = evaluate(kernel, pointers.data(), begin, end, scratch.data());
  EXPECT_TRUE(done) << done.error().message();
  return output;
}

TEST(Splits, APartOfTheGridWritesAPartOfTheArray) {
  std::mt19937 random(3);
  int cut = 0;
  for (int round = 0; round < 60; ++round) {
    const Case c = draw(random);
    const int form = round % 3;
    const auto module = parse(program(c, form, true)), plain = parse(program(c, form, false));
    const auto kernel = plan(fusion_of(*module)), whole = plan(fusion_of(*plain));
    ASSERT_TRUE(kernel) << kernel.error().message();
    ASSERT_TRUE(whole) << whole.error().message();
    const std::string text = print(*kernel);
    ASSERT_TRUE(verify(*kernel)) << text;
    ASSERT_EQ(kernel->cuts.size(), c.split.indices.size()) << text;
    cut += kernel->cuts.empty() ? 0 : 1;
    std::vector<std::vector<std::byte>> inputs(2);
    for (auto& input : inputs) {
      const auto elements = static_cast<std::size_t>(kernel->arguments[0].num_elements);
      input.resize(4 * elements);
      for (std::size_t n = 0; n < elements; ++n) {
        const float value = static_cast<float>(random() % 100'000) / 7;
        std::memcpy(&input[4 * n], &value, 4);
      }
    }
    const auto want = run(*whole, inputs, 0, whole->blocks, std::byte{0});
    ASSERT_EQ(run(*kernel, inputs, 0, kernel->blocks, std::byte{0}), want) << text;
    // Bytes that were neither 0x11 nor 0x22 before are written.
    for (std::size_t p = 0; p <= kernel->cuts.size(); ++p) {
      const std::int64_t begin = p == 0 ? 0 : kernel->cuts[p - 1];
      const std::int64_t end = p == kernel->cuts.size() ? kernel->blocks : kernel->cuts[p];
      const auto one = run(*kernel, inputs, begin, end, std::byte{0x11}), two = run(*kernel, inputs, begin, end, std::byte{0x22});
      std::size_t wrong = 0;
      for (std::size_t n = 0; n < one.size(); n += 4) {
        const bool written = std::memcmp(&one[n], &two[n], 4) == 0;
        wrong += written != (c.part_of(static_cast<std::int64_t>(n / 4)) == p);
      }
      ASSERT_EQ(wrong, 0u) << "part " << p << "\n" << text;
    }
  }
  EXPECT_GT(cut, 40);
}

// What has blocks of its own: rows, batches and rows of dots, lines of sorts.
struct Follower {
  const char* what;
  const char* fused;
  const char* entry;
  std::int64_t extent;  ///< of the dimension that is split
};

void PrintTo(const Follower& f, std::ostream* out) { *out << f.what; }

class Followers : public testing::TestWithParam<Follower> {};

// Whether a call for these blocks writes to each byte of the last argument, of inputs that are all zero.
std::vector<bool> written_bytes(const Kernel& kernel, std::int64_t begin, std::int64_t end) {
  std::vector<std::byte> left[2];
  for (const int n : {0, 1}) {
    std::vector<std::vector<std::byte>> buffers;
    std::vector<void*> pointers;
    for (const Argument& a : kernel.arguments)
      buffers.emplace_back(static_cast<std::size_t>(argument_bytes(a)), a.written ? std::byte(0x11 + n) : std::byte{0});
    for (auto& buffer : buffers) pointers.push_back(buffer.data());
    std::vector<std::byte> scratch(static_cast<std::size_t>(kernel.scratch_bytes) + 64);
    const auto done = evaluate(kernel, pointers.data(), begin, end, scratch.data());
    EXPECT_TRUE(done) << done.error().message();
    left[n] = buffers.back();
  }
  std::vector<bool> written;
  for (std::size_t n = 0; n < left[0].size(); ++n) written.push_back(left[0][n] == left[1][n]);
  return written;
}

TEST_P(Followers, ShareOutPartsByTheNearestBlocks) {
  const Follower& f = GetParam();
  const std::vector<std::int64_t> at = {f.extent / 4, f.extent / 2, f.extent - f.extent / 4};
  const std::string split = ":SC(0:" + std::to_string(at[0]) + "," + std::to_string(at[1]) + "," + std::to_string(at[2]) + ")";
  std::string text = "HloModule m\n"
                     "add { s = f32[] parameter(0) t = f32[] parameter(1) ROOT u = f32[] add(s, t) }\n"
                     "less { s = f32[] parameter(0) t = f32[] parameter(1) ROOT u = pred[] compare(s, t), direction=LT }\n"
                     "f { " + std::string(f.fused) + " }\nENTRY e { " + f.entry + " }\n";
  for (std::size_t n; (n = text.find('@')) != std::string::npos;) text.replace(n, 1, split);
  const auto module = parse(text);
  ASSERT_TRUE(module);
  const auto kernel = plan(fusion_of(*module));
  ASSERT_TRUE(kernel) << kernel.error().message();
  const std::string printed = print(*kernel);
  ASSERT_TRUE(verify(*kernel)) << printed;
  ASSERT_EQ(kernel->cuts.size(), at.size()) << printed;
  EXPECT_EQ(kernel->arguments.back().splits.size(), 1u) << "told to the kernel";
  const std::int64_t row = argument_bytes(kernel->arguments.back()) / f.extent;
  const std::int64_t block = (f.extent + kernel->blocks - 1) / kernel->blocks;
  for (std::size_t p = 0; p <= at.size(); ++p) {
    const auto written = written_bytes(*kernel, p == 0 ? 0 : kernel->cuts[p - 1], p == at.size() ? kernel->blocks : kernel->cuts[p]);
    const std::int64_t from = p == 0 ? 0 : at[p - 1], to = p == at.size() ? f.extent : at[p];
    for (std::int64_t index = 0; index < f.extent; ++index) {
      const bool near = std::min(std::abs(index - from), std::abs(index - to)) <= block / 4 + 8;  // tiles of dots have several rows
      const bool here = written[static_cast<std::size_t>(index * row)];
      ASSERT_TRUE(near || here == (index >= from && index < to)) << "part " << p << ", index " << index << "\n" << printed;
    }
  }
}

constexpr Follower kFollowers[] = {
    {"rows",
     "p = f32[600,80]{1,0} parameter(0) z = f32[] constant(0) s = f32[600]{0} reduce(p, z), dimensions={1}, to_apply=add, "
     "backend_config={\"hloom\":{\"rows\":\"pass 1\"}} b = f32[600,80]{1,0} broadcast(s), dimensions={0} ROOT r = f32[600,80]{1,0@} subtract(p, b)",
     "a = f32[600,80]{1,0} parameter(0) ROOT k = f32[600,80]{1,0@} fusion(a), kind=kInput, calls=f, "
     "backend_config={\"hloom\":{\"kernel\":\"rows\",\"rows\":\"600 of 80\"}}",
     600},
    {"dot",
     "p = f32[2400,80]{1,0} parameter(0) q = f32[80,80]{1,0} parameter(1) "
     "ROOT r = f32[2400,80]{1,0@} dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
     "a = f32[2400,80]{1,0} parameter(0) b = f32[80,80]{1,0} parameter(1) "
     "ROOT k = f32[2400,80]{1,0@} fusion(a, b), kind=kInput, calls=f",
     2400},
    {"batches",
     "p = f32[252,40,40]{2,1,0} parameter(0) q = f32[252,40,40]{2,1,0} parameter(1) "
     "ROOT r = f32[252,40,40]{2,1,0@} dot(p, q), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, "
     "rhs_contracting_dims={1}",
     "a = f32[252,40,40]{2,1,0} parameter(0) b = f32[252,40,40]{2,1,0} parameter(1) "
     "ROOT k = f32[252,40,40]{2,1,0@} fusion(a, b), kind=kInput, calls=f",
     252},
    {"lines",
     "p = f32[600,80]{1,0} parameter(0) ROOT r = f32[600,80]{1,0@} sort(p), dimensions={1}, to_apply=less",
     "a = f32[600,80]{1,0} parameter(0) ROOT k = f32[600,80]{1,0@} fusion(a), kind=kCustom, calls=f", 600},
};

INSTANTIATE_TEST_SUITE_P(Splits, Followers, testing::ValuesIn(kFollowers),
                         [](const auto& follower) { return std::string(follower.param.what); });

TEST(Splits, BlocksOfAPartCoverItOnce) {
  const Case c{{50, 40, 60}, {2, 1, 0}, {1, {7, 30}}};
  const auto module = parse(program(c, 0, true));
  const auto kernel = plan(fusion_of(*module));
  ASSERT_TRUE(kernel) << kernel.error().message();
  const auto elements = static_cast<std::size_t>(kernel->arguments[0].num_elements);
  const std::vector<std::vector<std::byte>> inputs(2, std::vector<std::byte>(4 * elements));
  std::vector<int> times(elements);
  for (std::int64_t block = 0; block < kernel->blocks; ++block) {
    const auto one = run(*kernel, inputs, block, block + 1, std::byte{0x11});
    for (std::size_t n = 0; n < elements; ++n) times[n] += one[4 * n] != std::byte{0x11};
  }
  EXPECT_THAT(times, testing::Each(1));
}

TEST(Splits, KernelsSayTheirCuts) {
  const Case c{{300, 400}, {1, 0}, {0, {100}}};
  const auto module = parse(program(c, 0, true));
  const auto kernel = plan(fusion_of(*module));
  ASSERT_TRUE(kernel) << kernel.error().message();
  const std::string text = print(*kernel);
  EXPECT_THAT(text, testing::HasSubstr("split 0 at 100"));
  EXPECT_THAT(text, testing::ContainsRegex("blocks [0-9]+ cost [0-9]+ cut [0-9]+ "));
  EXPECT_THAT(text, testing::ContainsRegex("block [0-9]+ after [0-9]+"));
  const auto back = parse(std::string_view(text));
  ASSERT_TRUE(back) << back.error().message();
  EXPECT_EQ(print(*back), text);
}

}  // namespace
}  // namespace hloom::kernels
