// How a transform is cut into passes.
//
// A line of n points whose prime factors are small goes through a block's scratch in one pass. One that is too long for the
// cache, or stands alone so that lanes would be empty, is cut as n = n1·n2: with j = j1·n2 + j2 and k = k1 + n1·k2,
//
//     X[k1 + n1·k2] = Σ_j2 exp(-2πi·j2·k2/n2)·exp(-2πi·j2·k1/n)·Σ_j1 x[j1·n2 + j2]·exp(-2πi·j1·k1/n1)
//
// which is a pass over columns with twiddles behind, into the workspace, and one over rows. Columns are neighbours in
// memory, and so are the rows' results. A length with a large prime factor is Bluestein's convolution with a chirp,
// whose length m is any smooth one from 2n - 1 on: in one pass, or cut in three: columns, rows there and back, columns.
// Between the two middle transforms the order of points does not matter, so nothing is put in order there.
#include "library/fft.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "library/fft_pass.h"
#include "library/roots.h"

namespace hloom::library {
namespace {

using Kind = Argument::Kind;

constexpr std::int64_t kLargestFactor = 61;   // beyond, a convolution is quicker
constexpr std::int64_t kLongestLine = 4096;   // a block's scratch is 256 bytes a point: what a second-level cache holds
constexpr std::int64_t kShortestCut = 64;     // shorter lines are done before two passes have begun

bool is_smooth(std::int64_t n) { return n == 1 || prime_factors(n).back() <= kLargestFactor; }

// The smallest m >= least whose prime factors are 2, 3 and 5.
std::int64_t smooth_from(std::int64_t least) {
  std::int64_t best = 1;
  while (best < least) best *= 2;
  for (std::int64_t five = 1; five < best; five *= 5)
    for (std::int64_t three = five; three < best; three *= 3) {
      std::int64_t m = three;
      while (m < least) m *= 2;
      best = std::min(best, m);
    }
  return best;
}

// The divisor of n nearest below its root.
std::int64_t cut_of(std::int64_t n) {
  std::int64_t best = 1;
  for (std::int64_t d = 1; d * d <= n; ++d)
    if (n % d == 0) best = d;
  return best;
}

// Fours first, a two that is left, then odd factors.
std::vector<std::int64_t> stages_of(std::int64_t n) {
  std::vector<std::int64_t> stages;
  for (; n % 4 == 0; n /= 4) stages.push_back(4);
  for (const std::int64_t p : prime_factors(n)) stages.push_back(p);
  return stages;
}

// A pass and the tables behind it.
class PassBuilder {
 public:
  explicit PassBuilder(bool is_double) : bytes_(sizeof(FftPass)) { pass.is_double = is_double ? 1 : 0; }

  FftPass pass;

  void set_core(std::int64_t n) {
    pass.core = n;
    std::int64_t left = n;
    for (const std::int64_t r : stages_of(n)) {
      const auto f = static_cast<std::size_t>(pass.num_factors++);
      HLOOM_CHECK(f < FftPass::kMaxFactors);
      pass.factors[f] = static_cast<std::int32_t>(r);
      pass.twiddle_offset_bytes[f] = begin_table();
      for (std::int64_t i = 0; i < left / r; ++i)
        for (std::int64_t u = 1; u < r; ++u) add(root_of_unity(u * i, left));
      left /= r;
      pass.root_offset_bytes[f] = begin_table();
      for (std::int64_t k = 0; r % 2 == 1 && k < r; ++k) add(root_of_unity(k, r));
    }
  }

  std::int64_t begin_table() {
    bytes_.resize((bytes_.size() + 63) / 64 * 64);
    return static_cast<std::int64_t>(bytes_.size());
  }
  void add(WideComplex x) {
    if (pass.is_double != 0) {
      append(static_cast<double>(x.real()));
      append(static_cast<double>(x.imag()));
    } else {
      append(static_cast<float>(x.real()));
      append(static_cast<float>(x.imag()));
    }
  }

  Routine finish(Argument from, Argument to) {
    const std::int64_t lanes = fft_lanes(pass.is_double != 0 ? 8 : 4);
    const std::int64_t inner = pass.count_b * pass.count_i;
    // Groups that stay within one `a` have tables whose entries are neighbours too.
    if (inner >= 4 * lanes) pass.groups_in_a = (inner + lanes - 1) / lanes;
    Routine r;
    r.function = run_fft;
    r.arguments = {{Kind::Descriptor}, from, to};
    r.blocks = pass.groups_in_a > 0 ? pass.count_a * pass.groups_in_a : (pass.num_lines() + lanes - 1) / lanes;
    const auto points = static_cast<double>(std::max(pass.core, pass.points));
    r.block_cost = static_cast<std::int64_t>(points * (64 + 8 * std::log2(points + 1)));
    r.scratch_bytes = fft_scratch_bytes(pass);
    bytes_.resize((bytes_.size() + 63) / 64 * 64);
    std::memcpy(bytes_.data(), &pass, sizeof(pass));
    r.descriptor = base::AlignedBytes(bytes_);
    return r;
  }

 private:
  template <typename T>
  void append(T x) {
    const auto* from = reinterpret_cast<const std::byte*>(&x);
    bytes_.insert(bytes_.end(), from, from + sizeof(x));
  }

  std::vector<std::byte> bytes_;
};

// Lines along one dimension: element e of line (a, i) at a·by_a + i + e·by_e, in elements of their own type.
struct Lines {
  std::int64_t n = 1;              // points
  std::int64_t count_a = 1, count_i = 1;
  std::int64_t in_a = 0, out_a = 0;
  bool inverse = false;
  FftLoad load = FftLoad::Complex;
  FftStore store = FftStore::Complex;
  std::int64_t stored = 1;         // points that the result has
  double scale = 1;
};

class Planner {
 public:
  Planner(const FftProblem& problem, bool with_tables) : problem_(problem), with_tables_(with_tables) {}

  RoutinePlan plan() {
    if (is_empty()) return {};
    const auto rank = static_cast<std::int64_t>(problem_.dims.size()), count = std::ssize(problem_.lengths);
    double points = 1;
    for (const std::int64_t n : problem_.lengths) points *= static_cast<double>(n);
    const bool inverse = problem_.kind == FftKind::Inverse || problem_.kind == FftKind::RealInverse;
    scale_ = inverse ? 1 / points : 1;
    dims_ = problem_.dims;
    from_ = {Kind::Operand};
    if (problem_.kind == FftKind::RealInverse) {
      // The others first, in memory of our own, for the operand is another's.
      spectrum_bytes_ = count > 1 ? round_up(bytes_of(dims_)) : 0;
      for (std::int64_t k = 1; k < count; ++k) dimension(rank - 1 - k, inverse, {Kind::Workspace});
      real_inverse(rank - 1);
    } else {
      if (problem_.kind == FftKind::RealForward)
        real_forward(rank - 1);
      else
        dimension(rank - 1, inverse, {Kind::Result});
      for (std::int64_t k = 1; k < count; ++k) dimension(rank - 1 - k, inverse, {Kind::Result});
    }
    plan_.workspace_bytes = spectrum_bytes_ + cut_bytes_;
    return std::move(plan_);
  }

 private:
  bool is_empty() const {
    return std::ranges::any_of(problem_.lengths, [](std::int64_t n) { return n == 0; }) ||
           std::ranges::any_of(problem_.dims, [](std::int64_t n) { return n == 0; });
  }
  std::int64_t lanes() const { return fft_lanes(problem_.is_double ? 8 : 4); }
  static std::int64_t round_up(std::int64_t bytes) { return (bytes + 63) / 64 * 64; }
  std::int64_t bytes_of(const std::vector<std::int64_t>& dims) const {
    std::int64_t bytes = problem_.is_double ? 16 : 8;
    for (const std::int64_t d : dims) bytes *= d;
    return bytes;
  }

  Lines lines_of(std::int64_t d, bool inverse) {
    Lines lines;
    lines.n = lines.stored = dims_[static_cast<std::size_t>(d)];
    for (std::int64_t k = 0; k < std::ssize(dims_); ++k)
      (k < d ? lines.count_a : lines.count_i) *= k == d ? 1 : dims_[static_cast<std::size_t>(k)];
    lines.in_a = lines.out_a = lines.n * lines.count_i;
    lines.inverse = inverse;
    return lines;
  }

  // The first pass that writes scales.
  double take_scale() { return std::exchange(scale_, 1.0); }

  void dimension(std::int64_t d, bool inverse, Argument to) {
    Lines lines = lines_of(d, inverse);
    lines.scale = take_scale();
    run_lines(lines, to);
    from_ = to;
  }

  void real_forward(std::int64_t d) {
    Lines lines = lines_of(d, false);
    const std::int64_t n = lines.n, half = n / 2 + 1;
    lines.stored = lines.out_a = half;
    if (n % 2 == 0 && fits_one_pass(n / 2, lines.count_a)) {
      lines.n = n / 2;
      lines.in_a = n / 2;
      lines.store = FftStore::UnpackHalf;
    } else {
      lines.load = FftLoad::Real;
    }
    run_lines(lines, {Kind::Result});
    dims_.back() = half;
    from_ = {Kind::Result};
  }

  void real_inverse(std::int64_t d) {
    Lines lines = lines_of(d, true);
    const std::int64_t n = problem_.lengths.back();
    lines.scale = take_scale();
    if (n % 2 == 0 && fits_one_pass(n / 2, lines.count_a)) {
      lines.n = lines.stored = lines.out_a = n / 2;
      lines.load = FftLoad::PackHalf;
    } else {
      lines.n = lines.stored = lines.out_a = n;
      lines.load = FftLoad::Hermitian;
      lines.store = FftStore::Real;
    }
    run_lines(lines, {Kind::Result});
  }

  // What is transformed for n points: n itself, or the convolution.
  static std::int64_t core_of(std::int64_t n) { return is_smooth(n) ? n : smooth_from(2 * n - 1); }

  bool fits_one_pass(std::int64_t n, std::int64_t num_lines) const {
    const std::int64_t core = core_of(n);
    return core < kShortestCut || cut_of(core) < 4 || (core <= kLongestLine && 2 * num_lines >= lanes());
  }

  void run_lines(const Lines& lines, Argument to) {
    if (fits_one_pass(lines.n, lines.count_a * lines.count_i)) return one_pass(lines, to);
    const std::int64_t core = core_of(lines.n);
    cut_bytes_ = std::max(cut_bytes_, bytes_of({lines.count_a, core, lines.count_i}));
    if (core == lines.n) return two_passes(lines, to);
    three_passes(lines, to);
  }

  // Where lines come from and go to, and which of their elements are there.
  void describe_input(const Lines& lines, FftPass& p) const {
    p.load = lines.load;
    p.hermitian_points = lines.n;
    p.in = {lines.in_a, 0, 1, lines.count_i};
  }
  void describe_output(const Lines& lines, FftPass& p) const {
    p.store = lines.store;
    p.scale = lines.scale;
    p.out = {lines.out_a, 0, 1, lines.count_i};
  }

  PassBuilder begin(const Lines& lines) const {
    PassBuilder b(problem_.is_double);
    b.pass.count_a = lines.count_a;
    b.pass.count_i = lines.count_i;
    return b;
  }

  void add(PassBuilder& b, Argument from, Argument to) { plan_.calls.push_back(b.finish(from, to)); }

  void one_pass(const Lines& lines, Argument to) {
    if (!with_tables_) return;
    PassBuilder b = begin(lines);
    FftPass& p = b.pass;
    describe_input(lines, p);
    describe_output(lines, p);
    p.points = lines.n;
    p.loads.count = lines.n + (lines.load == FftLoad::PackHalf ? 1 : 0);
    p.stores.count = lines.stored;
    b.set_core(core_of(lines.n));
    p.inverse = lines.inverse ? 1 : 0;
    if (p.core != lines.n) add_convolution(lines, b);
    if (lines.load == FftLoad::PackHalf || lines.store == FftStore::UnpackHalf) {
      p.half_offset_bytes = b.begin_table();
      for (std::int64_t k = 0; k <= lines.n / 2; ++k) b.add(root_of_unity(k, 2 * lines.n));
    }
    add(b, from_, to);
  }

  static WideComplex turned(WideComplex x, bool inverse) { return inverse ? std::conj(x) : x; }

  void add_convolution(const Lines& lines, PassBuilder& b) {
    FftPass& p = b.pass;
    p.inverse = 0;
    p.pre = p.post = {add_chirp(lines, b), 1, 0};
    p.mid = {b.begin_table(), 1, 0};
    for (const WideComplex x : chirp_spectrum(lines)) b.add(x);
  }

  std::int64_t add_chirp(const Lines& lines, PassBuilder& b) const {
    const std::int64_t at = b.begin_table();
    for (std::int64_t k = 0; k < lines.n; ++k) b.add(turned(chirp(k, lines.n), lines.inverse));
    return at;
  }

  // The transform of what a chirped line is convolved with, over the number of points, for the way back does not divide.
  static std::vector<WideComplex> chirp_spectrum(const Lines& lines) {
    const std::int64_t n = lines.n, m = core_of(n);
    std::vector<WideComplex> x(static_cast<std::size_t>(m));
    for (std::int64_t k = 0; k < n; ++k) {
      const WideComplex value = turned(chirp(k, n), !lines.inverse) / static_cast<long double>(m);
      x[static_cast<std::size_t>(k)] = value;
      if (k > 0) x[static_cast<std::size_t>(m - k)] = value;
    }
    return wide_transform(x);
  }

  Argument cut_space() const { return {Kind::Workspace, spectrum_bytes_}; }

  void two_passes(const Lines& lines, Argument to) {
    if (!with_tables_) return;
    const std::int64_t n = lines.n, n1 = cut_of(n), n2 = n / n1, inner = lines.count_i;
    {
      PassBuilder b = begin(lines);
      FftPass& p = b.pass;
      columns(n1, n2, p);
      describe_input(lines, p);
      p.in = column_input(lines, n2);
      if (lines.load == FftLoad::Hermitian) p.loads = {n1, n2, 1, n};
      p.out = {n * inner, inner, 1, n2 * inner};
      p.inverse = lines.inverse ? 1 : 0;
      b.set_core(n1);
      p.post = {add_twiddles(n1, n2, lines.inverse, b), n2, 1};
      add(b, from_, cut_space());
    }
    PassBuilder b = begin(lines);
    FftPass& p = b.pass;
    p.count_b = n1;
    p.in = {n * inner, n2 * inner, 1, inner};
    p.points = p.loads.count = p.stores.count = n2;
    describe_output(lines, p);
    p.out = {lines.out_a, inner, 1, n1 * inner};
    if (lines.stored < n) p.stores = {n2, n1, 1, lines.stored};
    p.inverse = lines.inverse ? 1 : 0;
    b.set_core(n2);
    add(b, cut_space(), to);
  }

  // The load of a symmetric line finds its elements by their numbers.
  static FftAddress column_input(const Lines& lines, std::int64_t n2) {
    const bool by_number = lines.load == FftLoad::Hermitian;
    return {lines.in_a, by_number ? 0 : lines.count_i, 1, n2 * lines.count_i};
  }

  static void columns(std::int64_t n1, std::int64_t n2, FftPass& p) {
    p.count_b = n2;
    p.points = p.loads.count = p.stores.count = n1;
  }

  static std::int64_t add_twiddles(std::int64_t n1, std::int64_t n2, bool inverse, PassBuilder& b) {
    const std::int64_t at = b.begin_table();
    for (std::int64_t k1 = 0; k1 < n1; ++k1)
      for (std::int64_t j2 = 0; j2 < n2; ++j2) b.add(turned(root_of_unity(k1 * j2, n1 * n2), inverse));
    return at;
  }

  void three_passes(const Lines& lines, Argument to) {
    if (!with_tables_) return;
    const std::int64_t m = core_of(lines.n), n1 = cut_of(m), n2 = m / n1, inner = lines.count_i;
    const FftAddress column = {m * inner, inner, 1, n2 * inner}, row = {m * inner, n2 * inner, 1, inner};
    {
      PassBuilder b = begin(lines);
      FftPass& p = b.pass;
      columns(n1, n2, p);
      describe_input(lines, p);
      p.in = column_input(lines, n2);
      p.loads = {n1, n2, 1, lines.n};
      p.out = column;
      // Beyond the line there are zeros to be multiplied by whatever stands there.
      p.pre = {add_padded_chirp(lines, m, b), n2, 1};
      b.set_core(n1);
      p.post = {add_twiddles(n1, n2, false, b), n2, 1};
      add(b, from_, cut_space());
    }
    {
      PassBuilder b = begin(lines);
      FftPass& p = b.pass;
      p.count_b = n1;
      p.points = p.loads.count = p.stores.count = n2;
      p.in = p.out = row;
      b.set_core(n2);
      p.mid = {b.begin_table(), n1, 1};
      for (const WideComplex x : chirp_spectrum(lines)) b.add(x);
      add(b, cut_space(), cut_space());
    }
    PassBuilder b = begin(lines);
    FftPass& p = b.pass;
    columns(n1, n2, p);
    p.in = column;
    p.pre = {add_twiddles(n1, n2, true, b), n2, 1};
    p.inverse = 1;
    b.set_core(n1);
    p.post = {add_padded_chirp(lines, m, b), n2, 1};
    describe_output(lines, p);
    p.out = {lines.out_a, inner, 1, n2 * inner};
    p.stores = {n1, n2, 1, lines.stored};
    add(b, cut_space(), to);
  }

  std::int64_t add_padded_chirp(const Lines& lines, std::int64_t m, PassBuilder& b) const {
    const std::int64_t at = add_chirp(lines, b);
    for (std::int64_t k = lines.n; k < m; ++k) b.add(0);
    return at;
  }

  const FftProblem& problem_;
  const bool with_tables_;
  RoutinePlan plan_;
  std::vector<std::int64_t> dims_;
  Argument from_;
  double scale_ = 1;
  std::int64_t spectrum_bytes_ = 0;  // in front of the workspace
  std::int64_t cut_bytes_ = 0;       // behind it: a dimension between its passes
};

}  // namespace

std::int64_t fft_workspace_bytes(const FftProblem& problem) { return Planner(problem, false).plan().workspace_bytes; }

RoutinePlan plan_fft(const FftProblem& problem) { return Planner(problem, true).plan(); }

}  // namespace hloom::library
