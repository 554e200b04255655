// What users may count on of size, memory and threads, by the program that a peer failed at. What must not grow is counted:
// no test here reads a clock.
#include <dirent.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <numeric>
#include <string>

#include "cases.h"
#include "compiler/compile.h"
#include "compiler/read_program.h"
#include "hloom/executable.h"

namespace hloom {
namespace {

template <typename T>
std::span<std::byte> bytes(std::vector<T>& values) {
  return std::as_writable_bytes(std::span(values));
}

Executable compile(const std::string& text, const CompileOptions& options = {}) {
  auto program = Executable::compile(text, options);
  EXPECT_TRUE(program) << program.error().message();
  return *std::move(program);
}

std::int64_t entries(const char* folder) {
  DIR* dir = opendir(folder);
  std::int64_t count = 0;
  while (readdir(dir) != nullptr) ++count;
  closedir(dir);
  return count;
}

std::int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::int64_t all = 0, resident = 0;
  file >> all >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

// --- Devices -------------------------------------------------------------------------------------------------------

// 0 + 1, … 5 + 1, added up in groups of one, two and three.
TEST(Sizes, GroupsOfDifferentSizesAddUpWhatTheirMembersHave) {
  const Executable program = compile(R"(HloModule m, replica_count=6
sum { a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT s = s32[] add(a, b) }
ENTRY e {
  i = u32[] replica-id()
  n = s32[] convert(i)
  one = s32[] constant(1)
  m = s32[] add(n, one)
  p = s32[5] broadcast(m), dimensions={}
  ROOT r = s32[5] all-reduce(p), replica_groups={{5},{0,3},{1,2,4}}, to_apply=sum
})");
  std::vector<std::vector<std::int32_t>> outputs(6, std::vector<std::int32_t>(5));
  std::vector<std::span<std::byte>> spans;
  for (auto& output : outputs) spans.push_back(bytes(output));
  std::vector<DeviceArrays> arrays;
  for (auto& span : spans) arrays.push_back({{}, {&span, 1}});
  const auto done = program.run_devices(arrays);
  ASSERT_TRUE(done) << done.error().message();
  const std::int32_t want[] = {5, 10, 10, 5, 10, 6};
  for (std::size_t k = 0; k < 6; ++k) EXPECT_EQ(outputs[k], std::vector<std::int32_t>(5, want[k])) << k;
}

// --- Programs of many instructions ---------------------------------------------------------------------------------

std::string ladder(int rungs) {
  std::string text = "HloModule ladder\nENTRY e {\n  a0 = f32[] parameter(0)\n";
  for (int k = 0; k < rungs; ++k) {
    const std::string a = "a" + std::to_string(k);
    text += "  a" + std::to_string(k + 1) + " = f32[] " + (k % 3 == 0 ? "multiply(" : "add(") + a + ", " + a + ")\n";
  }
  return text + "  ROOT r = f32[] tanh(a" + std::to_string(rungs) + ")\n}\n";
}

std::size_t statements(const kernels::Block& block) {
  std::size_t count = block.size();
  for (const kernels::Statement& s : block)
    if (const auto* loop = std::get_if<kernels::Loop>(&s.of)) count += statements(loop->body);
  return count;
}

// Each value is read twice: a kernel that made it anew each time would have 2^60 lines.
TEST(Sizes, ALadderOfDiamondsIsComputedOnce) {
  for (const int rungs : {60, 300}) {
    auto module = compiler::read_program(ladder(rungs));
    ASSERT_TRUE(module) << module.error().message();
    const auto compiled = compiler::compile(*std::move(module));
    ASSERT_TRUE(compiled) << compiled.error().message();
    std::size_t lines = 0;
    for (const kernels::Kernel& kernel : compiled->kernels) lines += statements(kernel.body);
    EXPECT_LT(lines, static_cast<std::size_t>(3 * rungs));
  }
  const Executable program = compile(ladder(60));
  std::vector<float> x = {0x1p-20f}, y(1);
  const std::vector<std::span<std::byte>> in = {bytes(x)}, out = {bytes(y)};
  ASSERT_TRUE(program.run_into(in, out));
  EXPECT_EQ(y[0], std::tanh(0.f));  // 2^-20 is squared twenty times: it underflows
}

std::string wide(int n, bool tuple) {
  std::string shapes, text, results;
  for (int k = 0; k < n; ++k) {
    const std::string number = std::to_string(k);
    shapes += (k == 0 ? "f32[3]{0}" : ", f32[3]{0}");
    text += tuple ? "  p" + number + " = f32[3]{0} get-tuple-element(all), index=" + number + "\n"
                  : "  p" + number + " = f32[3]{0} parameter(" + number + ")\n";
    text += "  q" + number + " = f32[3]{0} negate(p" + number + ")\n";
    results += (k == 0 ? "q" : ", q") + number;
  }
  const std::string all = tuple ? "  all = (" + shapes + ") parameter(0)\n" : "";
  return "HloModule wide\nENTRY e {\n" + all + text + "  ROOT t = (" + shapes + ") tuple(" + results + ")\n}\n";
}

TEST(Sizes, TwoThousandParametersAndResults) {
  constexpr int kCount = 2000;
  for (const bool tuple : {false, true}) {
    const Executable program = compile(wide(kCount, tuple));
    std::vector<std::vector<float>> inputs, outputs(kCount, std::vector<float>(3));
    for (int k = 0; k < kCount; ++k) inputs.push_back({static_cast<float>(k), 0, -1});
    std::vector<std::span<std::byte>> in, out;
    for (int k = 0; k < kCount; ++k) {
      in.push_back(bytes(inputs[static_cast<std::size_t>(k)]));
      out.push_back(bytes(outputs[static_cast<std::size_t>(k)]));
    }
    const auto done = program.run_into(in, out);
    ASSERT_TRUE(done) << done.error().message();
    for (int k = 0; k < kCount; ++k)
      ASSERT_EQ(outputs[static_cast<std::size_t>(k)], (std::vector<float>{-static_cast<float>(k), -0.f, 1})) << k;
  }
}

// --- Memory --------------------------------------------------------------------------------------------------------

// Tables of indices are numbers, not arrays.
TEST(Sizes, AnIndexTableIsNotMade) {
  constexpr std::int64_t kRows = 10'000'000;
  const Executable program = compile(R"(HloModule eye_indices
ENTRY root {
  r = s32[10000000,1]{1,0} iota(), iota_dimension=0
  ix = s32[10000000,2]{1,0} concatenate(r, r), dimensions={1}
  c = s32[10000000,1]{1,0} slice(ix), slice={[0:10000000], [1:2]}
  v = s32[10000000]{0} reshape(c)
  p = s32[10000000]{0} parameter(0)
  ROOT d = s32[10000000]{0} subtract(v, p)
})");
  const MemoryReport memory = program.memory();
  EXPECT_EQ(memory.temp_bytes, 0);
  EXPECT_LE(memory.constant_bytes, 64);
  std::vector<std::int32_t> p(kRows, 5), d(kRows);
  const std::vector<std::span<std::byte>> in = {bytes(p)}, out = {bytes(d)};
  ASSERT_TRUE(program.run_into(in, out));
  EXPECT_EQ(d[0], -5);
  EXPECT_EQ(d[kRows - 1], kRows - 6);
  EXPECT_TRUE(std::ranges::is_sorted(d));
}

constexpr const char* kIdentity = R"(HloModule same, input_output_alias={ {}: (0, {}, may-alias) }
ENTRY e { ROOT p = f32[262144] parameter(0) })";

TEST(Sizes, ADonatedArrayComesBackAsItIs) {
  const Executable program = compile(kIdentity);
  std::vector<float> x(262144, 3);
  Buffer args[] = {donate(Buffer::borrow(bytes(x)))};
  const auto results = program.run(args);
  ASSERT_TRUE(results) << results.error().message();
  EXPECT_EQ((*results)[0].data(), bytes(x).data());
}

TEST(Sizes, AnArrayThatIsNotDonatedIsCopiedAndNeverWritten) {
  const Executable program = compile(kIdentity);
  const std::vector<float> x(262144, 3);
  Buffer args[] = {Buffer::borrow_immutable(std::as_bytes(std::span(x)))};
  auto results = program.run(args);
  ASSERT_TRUE(results) << results.error().message();
  EXPECT_NE((*results)[0].data(), std::as_bytes(std::span(x)).data());
  EXPECT_EQ((*results)[0].as<float>()[262143], 3);
  std::ranges::fill((*results)[0].mutable_bytes(), std::byte{0xff});
  EXPECT_EQ(x[262143], 3);
}

std::string times(int k) {
  return "HloModule m\nENTRY e {\n p = f32[16] parameter(0)\n k = f32[] constant(" + std::to_string(k) +
         ")\n kb = f32[16] broadcast(k), dimensions={}\n m = f32[16] multiply(p, kb)\n one = f32[] constant(1)\n"
         " ones = f32[16] broadcast(one), dimensions={}\n ROOT r = f32[16] add(m, ones)\n}\n";
}

// What is compiled and dropped is gone: pages, code and files.
TEST(Sizes, ProgramsThatAreDroppedLeaveNothing) {
  constexpr int kBefore = 60, kAll = 300;
  std::int64_t bytes_before = 0, files_before = 0;
  for (int k = 0; k < kAll; ++k) {
    if (k == kBefore) bytes_before = resident_bytes(), files_before = entries("/proc/self/fd");
    const Executable program = compile(times(k));
    std::vector<float> x(16, 2), y(16);
    const std::vector<std::span<std::byte>> in = {bytes(x)}, out = {bytes(y)};
    ASSERT_TRUE(program.run_into(in, out));
    ASSERT_EQ(y[15], 2 * static_cast<float>(k) + 1);
  }
  EXPECT_EQ(entries("/proc/self/fd"), files_before);
  EXPECT_LT(resident_bytes() - bytes_before, 10 << 20);
}

// --- Threads -------------------------------------------------------------------------------------------------------

TEST(Sizes, OneThreadIsTheCallersOwn) {
  const std::int64_t before = entries("/proc/self/task");
  std::string text = "HloModule m\nENTRY e {\n p = f32[1000000] parameter(0)\n s = f32[1000000] tanh(p)\n ROOT r = f32[1000000] add(s, p)\n}\n";
  std::vector<float> x(1000000, 0.5f), y(1000000), z(1000000);
  const std::vector<std::span<std::byte>> in = {bytes(x)}, out = {bytes(y)}, other = {bytes(z)};
  const Executable alone = compile(text, {.threads = 1});
  ASSERT_TRUE(alone.run_into(in, out));
  EXPECT_EQ(entries("/proc/self/task"), before);
  const Executable many = compile(text, {.threads = 3});
  ASSERT_TRUE(many.run_into(in, other));
  EXPECT_LE(entries("/proc/self/task"), before + 3);
  EXPECT_EQ(y, z);
}

}  // namespace

namespace cases {
namespace {

// By the leading axis, of all elements, and the first ones of the order from the greatest.
constexpr const char* kSorts = R"(HloModule sorts
less { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = pred[] compare(a, b), direction=LT, type=TOTALORDER }
first { a = f32[] parameter(0)
  b = f32[] parameter(1)
  c = s32[] parameter(2)
  d = s32[] parameter(3)
  ROOT r = pred[] compare(a, b), direction=LT, type=TOTALORDER }
ENTRY e {
  x = f32[3,4] parameter(0)
  i = s32[3,4] iota(), iota_dimension=0
  by_rows = (f32[3,4], s32[3,4]) sort(x, i), dimensions={0}, is_stable=true, to_apply=first
  order = s32[3,4] get-tuple-element(by_rows), index=1
  flat = f32[12] reshape(x)
  all = f32[12] sort(flat), dimensions={0}, to_apply=less
  n = f32[3,4] negate(x)
  j = s32[3,4] iota(), iota_dimension=1
  down = (f32[3,4], s32[3,4]) sort(n, j), dimensions={1}, is_stable=true, to_apply=first
  falling = s32[3,4] get-tuple-element(down), index=1
  best = s32[3,2] slice(falling), slice={[0:3], [0:2]}
  ROOT r = (s32[3,4], f32[12], s32[3,2]) tuple(order, all, best)
})";

INSTANTIATE_TEST_SUITE_P(Sizes, Cases,
                         testing::Values(Case{"SortsAlongTheLeadingAxisOfAllAndOfTheFirst", kSorts,
                                              {"{{3, 1, 2, 2}, {1, 1, 0, 5}, {2, 0, 2, 4}}"},
                                              {"{{1, 2, 1, 0}, {2, 0, 0, 2}, {0, 1, 2, 1}}", "{0, 0, 1, 1, 1, 2, 2, 2, 2, 3, 4, 5}",
                                               "{{0, 2}, {3, 0}, {3, 0}}"}}),
                         name_of);

}  // namespace
}  // namespace cases
}  // namespace hloom
