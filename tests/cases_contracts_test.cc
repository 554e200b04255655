// What users may count on, by the program that a peer failed at: errors instead of signals, streams of random bits,
// accuracy of transforms, devices in any number.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cmath>
#include <complex>
#include <fstream>
#include <random>
#include <sstream>

#include "hloom/executable.h"

namespace hloom {
namespace {

template <typename T>
std::span<std::byte> bytes(std::vector<T>& values) {
  return std::as_writable_bytes(std::span(values));
}

Executable compile(const std::string& text, const CompileOptions& options = {}) {
  auto program = Executable::compile(text, options);
  EXPECT_TRUE(program) << program.error().message() << "\n" << text;
  return *std::move(program);
}

std::string error_of(const std::string& text) {
  const auto program = Executable::compile(text);
  return program ? "none" : program.error().message();
}

// Results in the order of the program; sizes are those of the shapes.
template <typename T, typename R>
std::vector<R> run(const Executable& program, std::vector<T> input, std::size_t results) {
  std::vector<R> output(results);
  const std::vector<std::span<std::byte>> in = {bytes(input)}, out = {bytes(output)};
  const auto done = program.run_into(in, out);
  EXPECT_TRUE(done) << done.error().message();
  return output;
}

// --- Text and shapes -----------------------------------------------------------------------------------------------

TEST(Contract, AComputationWithoutAHeaderRuns) {
  const Executable program = compile("ENTRY lonely {\n  p = f32[5]{0} parameter(0)\n  ROOT q = f32[5]{0} multiply(p, p)\n}\n");
  EXPECT_EQ((run<float, float>(program, {1, 2, 3, 4, 5}, 5)), (std::vector<float>{1, 4, 9, 16, 25}));
}

std::string fft(const std::string& from, const std::string& to, const std::string& type, const std::string& length) {
  return "HloModule m\nENTRY root {\n  x = " + from + " parameter(0)\n  ROOT f = " + to + " fft(x), fft_type=" + type +
         ", fft_length={" + length + "}\n}\n";
}

TEST(Contract, ATransformOfAWrongLengthIsAnErrorWithItsName) {
  for (const std::string& text : {fft("c64[6,10]", "c64[6,0]", "FFT", "0"), fft("c64[6,7]", "f32[6,10]", "IRFFT", "10"),
                                  fft("c64[6,9]", "c64[6,9]", "FFT", "10"), fft("f32[6,9]", "c64[6,6]", "RFFT", "10")}) {
    const std::string error = error_of(text);
    EXPECT_NE(error.find("f: "), std::string::npos) << error;
    EXPECT_NE(error.find("4:"), std::string::npos) << "no line in " << error;
  }
}

TEST(Contract, AnUnknownCustomCallIsRefusedByNameAndTarget) {
  const std::string error = error_of(R"(HloModule dyn_filter
ENTRY root {
  x = f32[1,2,6]{2,1,0} parameter(0)
  n = s32[] constant(5)
  d = f32[1,2,<=6]{2,1,0} set-dimension-size(x, n), dimensions={2}
  k = f32[3,2,1]{2,1,0} parameter(1)
  ROOT c = f32[1,1,<=4]{2,1,0} custom-call(d, k), custom_call_target="DynamicConvolutionForward", window={size=3}, dim_labels=bf0_0io->bf0, padding_type=PADDING_VALID
})");
  EXPECT_NE(error.find("c: "), std::string::npos) << error;
  EXPECT_NE(error.find("DynamicConvolutionForward"), std::string::npos) << error;
}

// 2.8 GB, of which but the corners are touched.
TEST(Contract, StridesBeyond31BitsReachTheRightElement) {
  constexpr std::size_t kRows = 70000, kColumns = 40000;
  void* memory = mmap(nullptr, kRows * kColumns, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) GTEST_SKIP() << "no room for 2.8 GB of addresses";
  auto* p = static_cast<std::byte*>(memory);
  for (const std::size_t row : {kRows - 2, kRows - 1})
    for (const std::size_t column : {kColumns - 2, kColumns - 1})
      p[row * kColumns + column] = std::byte(static_cast<std::uint8_t>(10 * (row % 10) + column % 10));
  const Executable program = compile(R"(HloModule wide_walk
ENTRY root {
  p = u8[70000,40000]{1,0} parameter(0)
  t = u8[40000,70000]{1,0} transpose(p), dimensions={1,0}
  ROOT s = u8[2,2]{1,0} slice(t), slice={[39998:40000], [69998:70000]}
})");
  EXPECT_EQ(program.memory().temp_bytes, 0);
  std::vector<std::uint8_t> corner(4);
  const std::vector<std::span<std::byte>> in = {{p, kRows * kColumns}}, out = {bytes(corner)};
  const auto done = program.run_into(in, out);
  EXPECT_TRUE(done) << done.error().message();
  EXPECT_EQ(corner, (std::vector<std::uint8_t>{88, 98, 89, 99}));
  munmap(memory, kRows * kColumns);
}

// --- Run-time sizes ------------------------------------------------------------------------------------------------

TEST(Contract, ARunTimeSizeCountsOrIsRefused) {
  const Executable program = compile(R"(HloModule up_to_eight
sum { a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT s = s32[] add(a, b) }
ENTRY root {
  x = s32[8]{0} parameter(0)
  n = s32[] parameter(1)
  d = s32[<=8]{0} set-dimension-size(x, n), dimensions={0}
  z = s32[] constant(0)
  s = s32[] reduce(d, z), dimensions={0}, to_apply=sum
  k = s32[] get-dimension-size(d), dimensions={0}
  ROOT t = (s32[], s32[], s32[<=8]{0}) tuple(s, k, d)
})");
  std::vector<std::int32_t> x = {1, 2, 3, 4, 5, 6, 7, 8};
  for (const std::int32_t n : {0, 1, 5, 8}) {
    std::vector<std::int32_t> size = {n}, sum(1), got_size(1), array(8, -1), sizes(1);
    const std::vector<std::span<std::byte>> in = {bytes(x), bytes(size)},
                                            out = {bytes(sum), bytes(got_size), bytes(array), bytes(sizes)};
    const auto done = program.run_into(in, out);
    ASSERT_TRUE(done) << done.error().message();
    EXPECT_EQ(sum[0], n * (n + 1) / 2);
    EXPECT_EQ(got_size[0], n);
    EXPECT_EQ(sizes[0], n);
    for (std::int32_t k = 0; k < 8; ++k) EXPECT_EQ(array[static_cast<std::size_t>(k)], k < n ? k + 1 : 0);
  }
}

// --- Accuracy ------------------------------------------------------------------------------------------------------

TEST(Contract, ALongTransformAndBackKeepsFourteenDigits) {
  constexpr std::size_t kLength = 1 << 20;
  const Executable program = compile(R"(HloModule long_wave
ENTRY root {
  x = f64[1048576]{0} parameter(0)
  f = c128[524289]{0} fft(x), fft_type=RFFT, fft_length={1048576}
  ROOT y = f64[1048576]{0} fft(f), fft_type=IRFFT, fft_length={1048576}
})");
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal(0, 1);
  std::vector<double> x(kLength);
  for (double& v : x) v = normal(random);
  const std::vector<double> y = run<double, double>(program, x, kLength);
  double worst = 0;
  for (std::size_t k = 0; k < kLength; ++k) worst = std::max(worst, std::fabs(y[k] - x[k]));
  EXPECT_LT(worst, 1e-14);
}

TEST(Contract, AnIndefiniteMatrixGivesNanAndSparesItsNeighbours) {
  const Executable program = compile(
      "HloModule indefinite\nENTRY root {\n  a = f64[2,3,3]{2,1,0} parameter(0)\n  ROOT l = f64[2,3,3]{2,1,0} cholesky(a), "
      "lower=true\n}\n");
  const double other = NAN;  // the triangle that is not read
  const std::vector<double> l = run<double, double>(program,
                                                    {1, other, other, 2, 1, other, 0, 0, 1,  // not positive definite
                                                     4, other, other, 2, 10, other, 6, 9, 19},
                                                    18);
  for (std::size_t k = 0; k < 9; ++k) EXPECT_TRUE(std::isnan(l[k])) << k;
  EXPECT_EQ(std::vector<double>(l.begin() + 9, l.end()), (std::vector<double>{2, 0, 0, 1, 3, 0, 3, 2, std::sqrt(6.0)}));
}

std::string read_case(const std::string& name) {
  std::ifstream file(std::string(HLOOM_SOURCE_DIR "/tests/cases/") + name + ".hlo");
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

using Wide = std::complex<long double>;

// JAX spells these functions out in real ones; the error is that of the spelling and of each step.
TEST(Contract, ComplexInversesAsJaxSpellsThemAreWithinFourUnitsAPart) {
  const std::pair<const char*, Wide (*)(const Wide&)> functions[] = {
      {"arcsinh", std::asinh}, {"arcsin", std::asin}, {"arccos", std::acos}, {"arctanh", std::atanh}};
  std::vector<float> axis;
  for (int k = 0; k < 20; ++k)
    for (const float sign : {1.0f, -1.0f}) axis.push_back(sign * std::pow(10.0f, -6.0f + 12.0f * static_cast<float>(k) / 19));
  std::vector<std::complex<float>> x;
  for (const float re : axis)
    for (const float im : axis) x.emplace_back(re, im);
  const auto error = [](float got, long double want) {
    const double ulp = std::nextafter(std::fabs(static_cast<float>(want)), INFINITY) - std::fabs(static_cast<float>(want));
    return std::fabs(static_cast<double>(got - want)) / ulp;
  };
  for (const auto& [name, function] : functions) {
    const Executable program = compile(read_case(name));
    const auto y = run<std::complex<float>, std::complex<float>>(program, x, x.size());
    for (std::size_t k = 0; k < x.size(); ++k) {
      const Wide want = function(Wide(x[k]));
      EXPECT_LT(error(y[k].real(), want.real()), 4) << name << x[k] << " gives " << y[k];
      EXPECT_LT(error(y[k].imag(), want.imag()), 4) << name << x[k] << " gives " << y[k];
    }
  }
}

// --- Random bits ---------------------------------------------------------------------------------------------------

std::string dice(const std::string& algorithm, int words, const std::string& dims) {
  const std::string state = "u64[" + std::to_string(words) + "]{0}";
  return "HloModule dice\nENTRY root {\n  s = " + state + " parameter(0)\n  ROOT r = (" + state + ", u32[" + dims +
         "]) rng-bit-generator(s), algorithm=" + algorithm + "\n}\n";
}

// The streams of XLA:CPU (jaxlib 0.10.2) from the same states. ThreeFry's two words go to two halves of a dimension, so its
// stream depends on the shape, there as here.
TEST(Contract, RandomBitsAreXlasForEachAlgorithmAndThreadCount) {
  struct Stream {
    const char *algorithm, *dims;
    std::vector<std::uint64_t> state, next;
    std::vector<std::uint32_t> bits;
  };
  const std::vector<std::uint32_t> philox = {3638399712u, 2062214027u, 3146123175u, 802453873u, 1978377041u,
                                             3765297969u, 2607981893u, 3087968913u, 132594816u};
  const Stream streams[] = {{"rng_philox", "9", {7, 9, 6}, {7, 12, 6}, philox},
                            {"rng_philox", "3,3", {7, 9, 6}, {7, 12, 6}, philox},
                            {"rng_three_fry",
                             "9",
                             {7, 9},
                             {7, 14},
                             {2148922066u, 1218255668u, 17873132u, 884161837u, 2218545827u, 757886286u, 1460919419u, 1895465418u,
                              2293606280u}},
                            {"rng_three_fry",
                             "3,3",
                             {7, 9},
                             {7, 15},
                             {2148922066u, 17873132u, 2218545827u, 1218255668u, 884161837u, 757886286u, 1460919419u, 2293606280u,
                              239565225u}}};
  for (const Stream& stream : streams)
    for (const int threads : {1, 2, 5}) {
      CompileOptions options;
      options.threads = threads;
      const Executable program = compile(dice(stream.algorithm, static_cast<int>(stream.state.size()), stream.dims), options);
      std::vector<std::uint64_t> state = stream.state, next(state.size());
      std::vector<std::uint32_t> bits(9);
      const std::vector<std::span<std::byte>> in = {bytes(state)}, out = {bytes(next), bytes(bits)};
      ASSERT_TRUE(program.run_into(in, out));
      EXPECT_EQ(next, stream.next) << stream.algorithm;
      EXPECT_EQ(bits, stream.bits) << stream.algorithm << " [" << stream.dims << "]";
    }
}

// --- Devices -------------------------------------------------------------------------------------------------------

std::string all_reduce(int replicas, const std::string& groups) {
  return "HloModule m, replica_count=" + std::to_string(replicas) +
         "\nsum {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT s = f32[] add(a, b)\n}\nENTRY root {\n  p = f32[] "
         "parameter(0)\n  ROOT a = f32[] all-reduce(p), replica_groups={" +
         groups + "}, to_apply=sum\n}\n";
}

// --- Sums and small steps ------------------------------------------------------------------------------------------

// Small integers, so that the sums are exact in any order.
TEST(Contract, SumsOfColumnsAreThoseOfEachColumn) {
  constexpr std::size_t kSize = 160;
  const Executable program = compile("HloModule down\nsum {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT s = f32[] add(a, b)\n}\n"
                                     "ENTRY root {\n  x = f32[160,160,160]{2,1,0} parameter(0)\n  z = f32[] constant(0)\n"
                                     "  ROOT s = f32[160,160]{1,0} reduce(x, z), dimensions={0}, to_apply=sum\n}\n");
  std::vector<float> x(kSize * kSize * kSize), want(kSize * kSize);
  for (std::size_t n = 0; n < x.size(); ++n) {
    x[n] = static_cast<float>((n * 37 + n / 160 * 11 + n / 25600 * 5) % 101) - 50;
    want[n % want.size()] += x[n];
  }
  EXPECT_EQ((run<float, float>(program, x, want.size())), want);
}

// A rotation by a matrix that is made from three numbers, and a cross product, in each of 100 000 steps.
template <typename T>
std::vector<T> steps_of(const std::string& type, std::vector<T> turns, std::int64_t count) {
  const std::string n = std::to_string(count), m = type + "[3,3]", v = type + "[3]", one = type + "[1]";
  const std::string text = "HloModule tiny\ncond {\n  s = (s32[], " + m + ", " + v + ", " + type + "[" + n + ",3]) parameter(0)\n"
      "  i = s32[] get-tuple-element(s), index=0\n  n = s32[] constant(" + n + ")\n  ROOT c = pred[] compare(i, n), direction=LT\n}\n"
      "body {\n  s = (s32[], " + m + ", " + v + ", " + type + "[" + n + ",3]) parameter(0)\n"
      "  i = s32[] get-tuple-element(s), index=0\n  r = " + m + " get-tuple-element(s), index=1\n  w = " + v + " get-tuple-element(s), index=2\n"
      "  us = " + type + "[" + n + ",3] get-tuple-element(s), index=3\n  z = s32[] constant(0)\n"
      "  row = " + type + "[1,3] dynamic-slice(us, i, z), dynamic_slice_sizes={1,3}\n  u = " + v + " reshape(row)\n"
      "  a = " + one + " slice(u), slice={[0:1]}\n  b = " + one + " slice(u), slice={[1:2]}\n  c = " + one + " slice(u), slice={[2:3]}\n"
      "  na = " + one + " negate(a)\n  nb = " + one + " negate(b)\n  nc = " + one + " negate(c)\n  zero = " + one + " constant({0})\n"
      "  flat = " + type + "[9] concatenate(zero, nc, b, c, zero, na, nb, a, zero), dimensions={0}\n  k = " + m + " reshape(flat)\n"
      "  kk = " + m + " dot(k, k), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
      "  h = " + type + "[] constant(0.0078125)\n  hs = " + m + " broadcast(h), dimensions={}\n  g = " + type + "[] constant(3.0517578125e-05)\n"
      "  gs = " + m + " broadcast(g), dimensions={}\n  x = " + m + " multiply(hs, k)\n  y = " + m + " multiply(gs, kk)\n"
      "  one = " + m + " constant({{1,0,0},{0,1,0},{0,0,1}})\n  e = " + m + " add(one, x)\n  f = " + m + " add(e, y)\n"
      "  q = " + m + " dot(r, f), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
      "  wk = " + v + " dot(w, k), lhs_contracting_dims={0}, rhs_contracting_dims={0}\n  hv = " + v + " broadcast(h), dimensions={}\n"
      "  step = " + v + " multiply(hv, wk)\n  p = " + v + " add(w, step)\n  d = s32[] constant(1)\n  j = s32[] add(i, d)\n"
      "  ROOT t = (s32[], " + m + ", " + v + ", " + type + "[" + n + ",3]) tuple(j, q, p, us)\n}\n"
      "ENTRY root {\n  us = " + type + "[" + n + ",3] parameter(0)\n  z = s32[] constant(0)\n  r = " + m + " constant({{1,0,0},{0,1,0},{0,0,1}})\n"
      "  w = " + v + " constant({1,1,1})\n  t = (s32[], " + m + ", " + v + ", " + type + "[" + n + ",3]) tuple(z, r, w, us)\n"
      "  l = (s32[], " + m + ", " + v + ", " + type + "[" + n + ",3]) while(t), condition=cond, body=body\n"
      "  q = " + m + " get-tuple-element(l), index=1\n  p = " + v + " get-tuple-element(l), index=2\n  qf = " + type + "[9] reshape(q)\n"
      "  ROOT out = " + type + "[12] concatenate(qf, p), dimensions={0}\n}\n";
  return run<T, T>(compile(text), std::move(turns), 12);
}

// The same in plain C++: r·(1 + hK + gK²), w + h·(K'w).
std::vector<double> steps_in_double(const std::vector<double>& turns) {
  std::vector<double> r = {1, 0, 0, 0, 1, 0, 0, 0, 1}, w = {1, 1, 1};
  const auto times = [](const std::vector<double>& a, const std::vector<double>& b) {
    std::vector<double> c(9);
    for (std::size_t i = 0; i < 3; ++i)
      for (std::size_t j = 0; j < 3; ++j)
        for (std::size_t k = 0; k < 3; ++k) c[3 * i + j] += a[3 * i + k] * b[3 * k + j];
    return c;
  };
  for (std::size_t t = 0; t < turns.size(); t += 3) {
    const double a = turns[t], b = turns[t + 1], c = turns[t + 2];
    const std::vector<double> k = {0, -c, b, c, 0, -a, -b, a, 0};
    std::vector<double> f = times(k, k), p = w;
    for (std::size_t e = 0; e < 9; ++e) f[e] = (e % 4 == 0 ? 1.0 : 0.0) + 0.0078125 * k[e] + 3.0517578125e-05 * f[e];
    r = times(r, f);
    for (std::size_t j = 0; j < 3; ++j)
      for (std::size_t i = 0; i < 3; ++i) p[j] += 0.0078125 * w[i] * k[3 * i + j];
    w = p;
  }
  r.insert(r.end(), w.begin(), w.end());
  return r;
}

TEST(Contract, AHundredThousandTinyStepsGiveWhatEachStepGives) {
  constexpr std::int64_t kSteps = 100'000;
  std::mt19937_64 random(132);
  std::vector<double> turns;
  for (std::int64_t n = 0; n < 3 * kSteps; ++n) turns.push_back(static_cast<double>(random() % 2001) / 1024 - 0.9765625);
  const std::vector<double> want = steps_in_double(turns), got = steps_of<double>("f64", turns, kSteps);
  for (std::size_t e = 0; e < 12; ++e) EXPECT_NEAR(got[e], want[e], 1e-9 * (1 + std::fabs(want[e]))) << e;
  const std::vector<float> single = steps_of<float>("f32", {turns.begin(), turns.end()}, kSteps);
  for (std::size_t e = 0; e < 12; ++e) EXPECT_NEAR(single[e], want[e], 0.05 * (1 + std::fabs(want[e]))) << e;
}

TEST(Contract, GroupsNameEachReplicaOnce) {
  EXPECT_EQ(error_of(all_reduce(4, "{0,3},{1,2}")), "none");
  for (const char* groups : {"{0,3}", "{0,1},{1,2,3}", "{0,1}", "{0,1},{2,4}"}) {
    const std::string error = error_of(all_reduce(4, groups));
    EXPECT_NE(error.find("replica_groups="), std::string::npos) << groups << ": " << error;
  }
}

TEST(Contract, AllToAllOfSeveralOperandsSendsOneToEach) {
  const auto text = [](const std::string& operands, const std::string& more) {
    return "HloModule swapmeet, replica_count=2\nENTRY root {\n  a = f32[3]{0} parameter(0)\n  b = f32[3]{0} parameter(1)\n" + more +
           " all-to-all(" + operands + "), replica_groups={{0,1}}\n  x = f32[3]{0} get-tuple-element(t), index=0\n"
           "  y = f32[3]{0} get-tuple-element(t), index=1\n  ROOT s = f32[3]{0} subtract(x, y)\n}\n";
  };
  const Executable program = compile(text("a, b", "  t = (f32[3]{0}, f32[3]{0})"));
  std::vector<float> a0 = {1, 2, 3}, b0 = {10, 20, 30}, a1 = {4, 5, 6}, b1 = {40, 50, 60}, s0(3), s1(3);
  const std::vector<std::span<std::byte>> in0 = {bytes(a0), bytes(b0)}, in1 = {bytes(a1), bytes(b1)}, out0 = {bytes(s0)},
                                          out1 = {bytes(s1)};
  const std::vector<DeviceArrays> devices = {{in0, out0}, {in1, out1}};
  const auto done = program.run_devices(devices);
  ASSERT_TRUE(done) << done.error().message();
  EXPECT_EQ(s0, (std::vector<float>{-3, -3, -3}));
  EXPECT_EQ(s1, (std::vector<float>{-30, -30, -30}));
  const std::string error = error_of(text("a, b, a", "  t = (f32[3]{0}, f32[3]{0}, f32[3]{0})"));
  EXPECT_NE(error.find("t: "), std::string::npos) << error;
  EXPECT_NE(error.find("2"), std::string::npos) << "no group size in " << error;
}

TEST(Contract, ThirtyTwoReplicasRunOnAnyNumberOfThreads) {
  const std::string text = R"(HloModule crowded, replica_count=32
sum { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }
ENTRY root {
  p = f32[1000]{0} parameter(0)
  a = f32[1000]{0} all-reduce(p), to_apply=sum
  e = f32[1000]{0} tanh(a)
  ROOT b = f32[1000]{0} all-reduce(e), replica_groups={{0,1,2,3,4,5,6,7},{8,9,10,11,12,13,14,15},{16,17,18,19,20,21,22,23},{24,25,26,27,28,29,30,31}}, to_apply=sum
})";
  for (const int threads : {1, 2, 16}) {
    CompileOptions options;
    options.threads = threads;
    const Executable program = compile(text, options);
    std::vector<float> p(1000, 1.0f / 64);
    std::vector<std::vector<float>> results(32, std::vector<float>(1000));
    const std::vector<std::span<std::byte>> in = {bytes(p)};
    std::vector<std::vector<std::span<std::byte>>> outs;
    for (auto& r : results) outs.push_back({bytes(r)});
    std::vector<DeviceArrays> devices;
    for (const auto& out : outs) devices.push_back({in, out});
    const auto done = program.run_devices(devices);
    ASSERT_TRUE(done) << done.error().message();
    for (const auto& r : results)
      for (const float x : r) ASSERT_NEAR(x, 3.6969373, 1e-6);
  }
}

}  // namespace
}  // namespace hloom
