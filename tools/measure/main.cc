// Measures how far the functions of compiled programs are from the exact value, and prints docs/numerics-measured.md.
//
// f16, bf16 and f32: all inputs. f64, pairs and complex numbers: samples. A wider function of the C library finds the
// worst 1000 of them, and MPFR or MPC say how far these are.
//
//   measure_functions                        all of it; half an hour on two cores
//   measure_functions --share=0.001 log tan  of these functions, a thousandth of the inputs
#include <CLI/CLI.hpp>
#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>
#include <functional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "compiled.h"
#include "exact.h"
#include "functions.h"
#include "samples.h"
#include "worst.h"

namespace hloom::measure {
namespace {

double share = 1;
std::vector<std::string> types;  // to measure; all if none is named

bool wants(const char* type) { return types.empty() || std::ranges::find(types, type) != types.end(); }

// What came of some inputs.
template <class Input>
struct Tally {
  Worst<Input> worst;
  std::int64_t rounded = 0;  // correctly
};

std::int64_t shared(double inputs) { return std::max<std::int64_t>(1, static_cast<std::int64_t>(inputs * share / kBlock)); }

// part(first, last, tally) of `blocks` blocks on each processor.
template <class Input>
Tally<Input> on_all(std::int64_t blocks, const std::function<void(std::int64_t, std::int64_t, Tally<Input>&)>& part) {
  const std::int64_t n = std::min<std::int64_t>(blocks, std::max(1u, std::thread::hardware_concurrency()));
  std::vector<Tally<Input>> tallies(static_cast<std::size_t>(n));
  std::vector<std::thread> threads;
  for (std::int64_t i = 0; i < n; ++i)
    threads.emplace_back([&, i] { part(blocks * i / n, blocks * (i + 1) / n, tallies[static_cast<std::size_t>(i)]); });
  for (std::thread& t : threads) t.join();
  Tally<Input> all;
  for (const Tally<Input>& t : tallies) {
    all.worst.add(t.worst);
    all.rounded += t.rounded;
  }
  return all;
}

struct Figure {
  double error = 0;       // in last places
  double rounded = 0;     // share of inputs with the nearest result
  std::int64_t seen = 0;
  std::string at;
};

std::string hexadecimal(double x) {
  char text[64];
  std::snprintf(text, sizeof text, "%a", x);
  return text;
}
std::string hexadecimal(std::complex<double> x) { return hexadecimal(x.real()) + ", " + hexadecimal(x.imag()); }

template <class Input, class Exact, class At>
Figure figure(const Tally<Input>& tally, Exact exact, At at) {
  Figure f;
  f.seen = tally.worst.seen();
  f.rounded = static_cast<double>(tally.rounded) / static_cast<double>(f.seen);
  for (const auto& item : tally.worst.items()) {
    const double error = exact(item.input);
    if (error >= f.error) f = {error, f.rounded, f.seen, at(item.input)};
  }
  return f;
}

struct Real {
  double x, got;
};
Figure figure(const char* name, const Format& format, const Tally<Real>& tally) {
  return figure(tally, [&](const Real& i) { return exact_distance(name, format, i.x, i.got); },
                [](const Real& i) { return hexadecimal(i.x); });
}

// All floats, or an even share of them.
Figure floats(const Function& f) {
  const Compiled program(unary_program(f.name, "f32"));
  const std::int64_t blocks = shared(0x1p32), stride = (std::int64_t{1} << 32) / (blocks * kBlock);
  return figure(f.name, kF32, on_all<Real>(blocks, [&](std::int64_t first, std::int64_t last, Tally<Real>& tally) {
    std::vector<float> x(kBlock), y(kBlock);
    for (std::int64_t b = first; b < last; ++b) {
      for (std::int64_t i = 0; i < kBlock; ++i)
        x[static_cast<std::size_t>(i)] = std::bit_cast<float>(static_cast<std::uint32_t>((b * kBlock + i) * stride));
      const std::span<std::byte> in[] = {bytes_of(x)}, out[] = {bytes_of(y)};
      program.run(in, out);
      for (std::size_t i = 0; i < kBlock; ++i) {
        const double want = f.of_double(x[i]);
        const bool nearest = static_cast<float>(want) == y[i] || (std::isnan(want) && std::isnan(y[i]));
        tally.rounded += nearest;
        const double error = nearest && tally.worst.floor() > 0.4 ? 0 : distance(kF32, y[i], want);
        tally.worst.see(error, {x[i], y[i]});
      }
    }
  }));
}

Figure doubles(const Function& f) {
  const Compiled program(unary_program(f.name, "f64"));
  return figure(f.name, kF64, on_all<Real>(shared(1e7), [&](std::int64_t first, std::int64_t last, Tally<Real>& tally) {
    std::vector<double> x(kBlock), y(kBlock);
    for (std::int64_t b = first; b < last; ++b) {
      Random random(static_cast<std::uint64_t>(b) + 1);
      for (double& value : x) value = some_double(random);
      std::copy(std::begin(kHard), std::end(kHard), x.begin());
      const std::span<std::byte> in[] = {bytes_of(x)}, out[] = {bytes_of(y)};
      program.run(in, out);
      for (std::size_t i = 0; i < kBlock; ++i) {
        const long double want = f.of_long_double(x[i]);
        tally.rounded += static_cast<double>(want) == y[i] || (std::isnan(want) && std::isnan(y[i]));
        tally.worst.see(distance(kF64, y[i], want), {x[i], y[i]});
      }
    }
  }));
}

// All numbers of 16 bits.
Figure narrow(const Function& f, const Format& format) {
  const Compiled program(narrow_program(f.name, format.name));
  std::vector<std::uint16_t> bits(kBlock);
  for (std::size_t i = 0; i < kBlock; ++i) bits[i] = static_cast<std::uint16_t>(i);
  std::vector<float> x(kBlock), y(kBlock);
  const std::span<std::byte> in[] = {bytes_of(bits)}, out[] = {bytes_of(x), bytes_of(y)};
  program.run(in, out);
  Tally<Real> tally;
  for (std::size_t i = 0; i <= 0xFFFF; ++i) {
    const double error = distance(format, y[i], f.of_double(x[i]));
    tally.rounded += error <= 0.5;
    tally.worst.see(error, {x[i], y[i]});
  }
  return figure(f.name, format, tally);
}

struct Real2 {
  double x, y, got;
};
template <class T>
Figure pairs(const Function2& f, const Format& format, double inputs) {
  constexpr bool kFloat = sizeof(T) == 4;
  const Compiled program(binary_program(f.name, format.name));
  const auto tally = on_all<Real2>(shared(inputs), [&](std::int64_t first, std::int64_t last, Tally<Real2>& into) {
    std::vector<T> x(kBlock), y(kBlock), z(kBlock);
    for (std::int64_t b = first; b < last; ++b) {
      Random random(static_cast<std::uint64_t>(b) + 1);
      for (std::size_t i = 0; i < kBlock; ++i) {
        const Pair pair = some_pair(random, kFloat);
        x[i] = static_cast<T>(pair.x), y[i] = static_cast<T>(pair.y);
      }
      const std::span<std::byte> in[] = {bytes_of(x), bytes_of(y)}, out[] = {bytes_of(z)};
      program.run(in, out);
      for (std::size_t i = 0; i < kBlock; ++i) {
        const long double want = kFloat ? f.of_double(x[i], y[i]) : f.of_long_double(x[i], y[i]);
        const bool nearest = static_cast<T>(want) == z[i] || (std::isnan(want) && std::isnan(z[i]));
        into.rounded += nearest;
        const double error = nearest && into.worst.floor() > 0.4 ? 0 : distance(format, z[i], want);
        into.worst.see(error, {x[i], y[i], z[i]});
      }
    }
  });
  return figure(tally, [&](const Real2& i) { return exact_distance(f.name, format, i.x, i.y, i.got); },
                [](const Real2& i) { return hexadecimal(i.x) + ", " + hexadecimal(i.y); });
}

struct ComplexInput {
  std::complex<double> x, got;
};
template <class T>
Figure complexes(const ComplexFunction& f, const Format& format, const char* type) {
  const Compiled program(unary_program(f.name, type));
  const long double end = std::ldexp(1.0L, format.max_exponent) * (1 - std::ldexp(1.0L, -format.digits - 1));
  const auto tally = on_all<ComplexInput>(shared(1e7), [&](std::int64_t first, std::int64_t last, Tally<ComplexInput>& into) {
    std::vector<std::complex<T>> x(kBlock), y(kBlock);
    for (std::int64_t b = first; b < last; ++b) {
      Random random(static_cast<std::uint64_t>(b) + 1);
      for (auto& value : x) value = std::complex<T>(some_complex(random));
      const std::span<std::byte> in[] = {bytes_of(x)}, out[] = {bytes_of(y)};
      program.run(in, out);
      for (std::size_t i = 0; i < kBlock; ++i) {
        const Wide want = f.of(Wide(x[i])), got(y[i]);
        const long double size = std::max(std::fabs(want.real()), std::fabs(want.imag()));
        if (!(size < end)) continue;  // what overflows follows rules, which tests hold
        const long double off = std::max(std::fabs(got.real() - want.real()), std::fabs(got.imag() - want.imag()));
        const double error = std::isnan(off) ? INFINITY : static_cast<double>(off / last_place(format, size));
        into.rounded += std::complex<T>(want) == y[i];
        into.worst.see(error, {std::complex<double>(x[i]), std::complex<double>(y[i])});
      }
    }
  });
  return figure(tally, [&](const ComplexInput& i) { return exact_distance(f.name, format, i.x, i.got); },
                [](const ComplexInput& i) { return hexadecimal(i.x); });
}

struct ComplexInput2 {
  std::complex<double> x, y, got;
};
template <class T>
Figure complex_pairs(const ComplexFunction2& f, const Format& format, const char* type) {
  constexpr long double kTurn = 6.28318530717958647692528676655900577L;
  const Compiled program(binary_program(f.name, type));
  const long double end = std::ldexp(1.0L, format.max_exponent) * (1 - std::ldexp(1.0L, -format.digits - 1));
  const auto tally = on_all<ComplexInput2>(shared(1e7), [&](std::int64_t first, std::int64_t last, Tally<ComplexInput2>& into) {
    std::vector<std::complex<T>> x(kBlock), y(kBlock), z(kBlock);
    for (std::int64_t b = first; b < last; ++b) {
      Random random(static_cast<std::uint64_t>(b) + 1);
      for (std::size_t i = 0; i < kBlock; ++i) {
        x[i] = std::complex<T>(some_complex(random));
        const double largest_log = sizeof(T) == 4 ? 87 : 708;
        y[i] = std::complex<T>(f.of_angles ? some_complex(random) : some_exponent(random, std::complex<double>(x[i]), largest_log));
      }
      const std::span<std::byte> in[] = {bytes_of(x), bytes_of(y)}, out[] = {bytes_of(z)};
      program.run(in, out);
      for (std::size_t i = 0; i < kBlock; ++i) {
        const Wide want = f.of(Wide(x[i]), Wide(y[i])), got(z[i]);
        const long double size = std::max(std::fabs(want.real()), std::fabs(want.imag())) + (f.of_angles ? 1 : 0);
        if (!(size < end)) continue;
        long double re = std::fabs(got.real() - want.real());
        if (f.of_angles) re = std::min(re, std::fabs(re - kTurn));
        const long double off = std::max(re, std::fabs(got.imag() - want.imag()));
        const double error = std::isnan(off) ? INFINITY : static_cast<double>(off / last_place(format, size));
        into.rounded += std::complex<T>(want) == z[i];
        into.worst.see(error, {std::complex<double>(x[i]), std::complex<double>(y[i]), std::complex<double>(z[i])});
      }
    }
  });
  return figure(tally, [&](const ComplexInput2& i) { return exact_distance(f.name, format, i.x, i.y, i.got); },
                [](const ComplexInput2& i) { return hexadecimal(i.x) + "; " + hexadecimal(i.y); });
}

std::string cell(const Figure& f) {
  char text[128];
  std::snprintf(text, sizeof text, " %.4f | %.2f | `%s` |", std::max(std::ceil(f.error * 1e4) / 1e4, 0.5), std::floor(f.rounded * 1e4) / 100,
                f.at.c_str());
  return text;
}
void row(const std::string& name, const char* type, const Figure& f) {
  std::printf("| %s | %s | %lld |%s\n", name.c_str(), type, static_cast<long long>(f.seen), cell(f).c_str());
  std::fflush(stdout);
}

constexpr const char* kTable =
    "\n| function | type | inputs | worst | nearest, % | worst at |\n| --- | --- | --- | --- | --- | --- |\n";

void measure(const std::set<std::string>& names) {
  const auto asked = [&](const char* name) { return names.empty() || names.contains(name); };
  std::printf(
      "# Functions, measured\n\nPrinted by `measure_functions` (tools/measure). Errors of compiled code in units in the last place of the exact "
      "value, worst first found\nby a wider function of the C library, then taken from MPFR or MPC for the worst 1000 inputs. "
      "\"Nearest\": inputs whose result is the\nnearest number; of 0.5 none is further away. f16, bf16 and f32 see all their numbers, the others samples of "
      "all exponents.\nWhat is promised stands in [numerics-functions.md](numerics-functions.md).\n%s",
      kTable);
  for (const Function& f : functions()) {
    if (!asked(f.name)) continue;
    if (wants("f16")) row(f.name, "f16", narrow(f, kF16));
    if (wants("bf16")) row(f.name, "bf16", narrow(f, kBF16));
    if (wants("f32")) row(f.name, "f32", floats(f));
    if (wants("f64")) row(f.name, "f64", doubles(f));
  }
  std::printf("\n## Of two operands\n%s", kTable);
  for (const Function2& f : functions2()) {
    if (!asked(f.name)) continue;
    if (wants("f32")) row(f.name, "f32", pairs<float>(f, kF32, 1e9));
    if (wants("f64")) row(f.name, "f64", pairs<double>(f, kF64, 1e7));
  }
  std::printf("\n## Complex\n\nIn units of the larger part.\n%s", kTable);
  for (const ComplexFunction& f : complex_functions()) {
    if (!asked(f.name)) continue;
    if (wants("c64")) row(f.name, "c64", complexes<float>(f, kF32, "c64"));
    if (wants("c128")) row(f.name, "c128", complexes<double>(f, kF64, "c128"));
  }
  std::printf("\n## Complex, of two operands\n\natan2 in units of 1 + the larger part, on the cut up to a turn.\n%s", kTable);
  for (const ComplexFunction2& f : complex_functions2()) {
    if (!asked(f.name)) continue;
    if (wants("c64")) row(f.name, "c64", complex_pairs<float>(f, kF32, "c64"));
    if (wants("c128")) row(f.name, "c128", complex_pairs<double>(f, kF64, "c128"));
  }
}

}  // namespace
}  // namespace hloom::measure

int main(int argc, char** argv) {
  CLI::App app("Measures the functions of compiled programs and prints a table of their errors");
  std::vector<std::string> names;
  app.add_option("FUNCTION", names, "Opcodes; all without");
  app.add_option("--types", hloom::measure::types, "f16, bf16, f32, f64, c64, c128; all without")->delimiter(',')->allow_extra_args(false);
  app.add_option("--share", hloom::measure::share, "Share of the inputs to take")->check(CLI::Range(0.0, 1.0));
  CLI11_PARSE(app, argc, argv);
  hloom::measure::measure({names.begin(), names.end()});
}
