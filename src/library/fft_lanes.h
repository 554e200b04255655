// Vectors of lanes, and moving lines between memory and lanes. Included once for each vector width, in a namespace of its
// own and with no template of the standard library, so that no code for a wide vector escapes into the rest.

template <typename T, int kBytes>
struct Vector {
  typedef T Type __attribute__((vector_size(kBytes)));
};

// Point j of all lanes of a group: real parts, then imaginary parts.
template <typename T>
constexpr int kLanes = static_cast<int>(64 / sizeof(T));
template <typename T>
constexpr int kPoint = 2 * kLanes<T>;
template <typename T>
constexpr int kStep = static_cast<int>(kVectorBytes / sizeof(T));

template <typename T>
using V = typename Vector<T, kVectorBytes>::Type;

template <typename T>
inline __attribute__((always_inline)) V<T> load(const T* from) {
  V<T> v;
  __builtin_memcpy(&v, from, sizeof(v));
  return v;
}
template <typename T>
inline __attribute__((always_inline)) void store(T* to, const V<T>& v) {
  __builtin_memcpy(to, &v, sizeof(v));
}

template <int... I>
struct Numbers {};
template <int N, int... I>
struct MakeNumbers : MakeNumbers<N - 1, N - 1, I...> {};
template <int... I>
struct MakeNumbers<0, I...> {
  using Type = Numbers<I...>;
};

// kStep pairs in memory as real and imaginary parts, and back.
template <typename T, int... I>
inline __attribute__((always_inline)) void split(const T* from, V<T>& re, V<T>& im, Numbers<I...>) {
  const V<T> a = load(from), b = load(from + kStep<T>);
  re = __builtin_shufflevector(a, b, (2 * I)...);
  im = __builtin_shufflevector(a, b, (2 * I + 1)...);
}
template <typename T, int... I>
inline __attribute__((always_inline)) void join(T* to, const V<T>& re, const V<T>& im, Numbers<I...>) {
  constexpr int n = kStep<T>;
  const V<T> a = __builtin_shufflevector(re, im, (I % 2 * n + I / 2)...);
  const V<T> b = __builtin_shufflevector(re, im, (I % 2 * n + (I + n) / 2)...);
  store(to, a);
  store(to + n, b);
}
template <typename T>
using Steps = typename MakeNumbers<kStep<T>>::Type;

// The lines of one group. Lanes beyond `count` repeat the first line and are not stored.
template <typename T>
struct Group {
  int count = 0;
  std::int64_t in[kLanes<T>], out[kLanes<T>], b[kLanes<T>];
  bool in_adjacent = true, out_adjacent = true, b_same = true, b_adjacent = true;
};

template <typename T>
void place_group(const FftPass& p, std::int64_t number, Group<T>& g) {
  std::int64_t first, end;
  if (p.groups_in_a > 0) {
    const std::int64_t in_a = p.count_b * p.count_i, a = number / p.groups_in_a;
    first = a * in_a + number % p.groups_in_a * kLanes<T>;
    end = (a + 1) * in_a;
  } else {
    first = number * kLanes<T>;
    end = p.num_lines();
  }
  g.count = static_cast<int>(end - first < kLanes<T> ? end - first : kLanes<T>);
  g.in_adjacent = g.out_adjacent = g.b_adjacent = g.count == kLanes<T>;
  g.b_same = true;
  for (int l = 0; l < kLanes<T>; ++l) {
    const std::int64_t line = first + (l < g.count ? l : 0);
    const std::int64_t i = line % p.count_i, b = line / p.count_i % p.count_b, a = line / p.count_i / p.count_b;
    g.in[l] = a * p.in.by_a + b * p.in.by_b + i * p.in.by_i;
    g.out[l] = a * p.out.by_a + b * p.out.by_b + i * p.out.by_i;
    g.b[l] = b;
    if (l == 0) continue;
    g.in_adjacent &= g.in[l] == g.in[l - 1] + 1;
    g.out_adjacent &= g.out[l] == g.out[l - 1] + 1;
    g.b_adjacent &= g.b[l] == g.b[l - 1] + 1;
    g.b_same &= g.b[l] == g.b[l - 1];
  }
}

constexpr std::int64_t kTile = 16;  // points of a line taken at once where lines are turned into lanes

inline std::int64_t smaller(std::int64_t a, std::int64_t b) { return a < b ? a : b; }

template <typename T>
void load_complex(const FftPass& p, const Group<T>& g, const T* from, T* to) {
  const std::int64_t n = p.loads.count, step = p.in.by_e;
  if (g.in_adjacent) {
    for (std::int64_t e = 0; e < n; ++e)
      for (int l = 0; l < kLanes<T>; l += kStep<T>) {
        V<T> re, im;
        split(from + 2 * (g.in[l] + e * step), re, im, Steps<T>());
        store(to + e * kPoint<T> + l, re);
        store(to + e * kPoint<T> + kLanes<T> + l, im);
      }
    return;
  }
  for (std::int64_t tile = 0; tile < n; tile += kTile)
    for (int l = 0; l < kLanes<T>; ++l) {
      const T* line = from + 2 * g.in[l];
      for (std::int64_t e = tile; e < smaller(tile + kTile, n); ++e) {
        to[e * kPoint<T> + l] = line[2 * e * step];
        to[e * kPoint<T> + kLanes<T> + l] = line[2 * e * step + 1];
      }
    }
}

template <typename T>
void load_real(const FftPass& p, const Group<T>& g, const T* from, T* to) {
  const std::int64_t n = p.loads.count, step = p.in.by_e;
  for (std::int64_t tile = 0; tile < n; tile += kTile)
    for (int l = 0; l < kLanes<T>; ++l)
      for (std::int64_t e = tile; e < smaller(tile + kTile, n); ++e) {
        to[e * kPoint<T> + l] = from[g.in[l] + e * step];
        to[e * kPoint<T> + kLanes<T> + l] = 0;
      }
}

// Element j of a symmetric line from its first half. Imaginary parts that the symmetry forbids do not count.
template <typename T>
void load_hermitian(const FftPass& p, const Group<T>& g, const T* from, T* to) {
  const std::int64_t n = p.hermitian_points;
  for (std::int64_t e = 0; e < p.loads.count; ++e)
    for (int l = 0; l < kLanes<T>; ++l) {
      const std::int64_t j = e * p.loads.by_e + g.b[l] * p.loads.by_b;
      if (j >= n) continue;
      const bool mirrored = j > n / 2;
      const T* x = from + 2 * (g.in[l] + (mirrored ? n - j : j));
      to[e * kPoint<T> + l] = x[0];
      to[e * kPoint<T> + kLanes<T> + l] = j == 0 || 2 * j == n ? T(0) : mirrored ? -x[1] : x[1];
    }
}

template <typename T>
void clear_point(T* point) {
  for (int l = 0; l < kPoint<T>; ++l) point[l] = 0;
}

// Lines whose lanes end at different points: the tail is zeros.
template <typename T>
void load_bounded(const FftPass& p, const Group<T>& g, const T* from, T* to) {
  const bool real = p.load == FftLoad::Real;
  for (std::int64_t e = 0; e < p.loads.count; ++e) {
    T* point = to + e * kPoint<T>;
    for (int l = 0; l < kLanes<T>; ++l) {
      const bool there = e * p.loads.by_e + g.b[l] * p.loads.by_b < p.loads.limit;
      const std::int64_t at = g.in[l] + e * p.in.by_e;
      point[l] = !there ? T(0) : real ? from[at] : from[2 * at];
      point[kLanes<T> + l] = !there || real ? T(0) : from[2 * at + 1];
    }
  }
}

template <typename T>
void load_group(const FftPass& p, const Group<T>& g, const T* from, T* to) {
  if (p.load == FftLoad::Hermitian) {
    for (std::int64_t e = 0; p.loads.by_b != 0 && e < p.loads.count; ++e) clear_point(to + e * kPoint<T>);
    return load_hermitian(p, g, from, to);
  }
  if (p.loads.by_b != 0) return load_bounded(p, g, from, to);
  return p.load == FftLoad::Real ? load_real(p, g, from, to) : load_complex(p, g, from, to);
}

template <typename T>
void store_group(const FftPass& p, const Group<T>& g, const T* from, T* to) {
  const std::int64_t n = p.stores.count, step = p.out.by_e;
  const T scale = static_cast<T>(p.scale);
  const bool bounded = p.stores.by_b != 0, real = p.store == FftStore::Real;
  if (g.out_adjacent && !bounded && !real) {
    for (std::int64_t e = 0; e < n; ++e)
      for (int l = 0; l < kLanes<T>; l += kStep<T>)
        join(to + 2 * (g.out[l] + e * step), load(from + e * kPoint<T> + l) * scale,
             load(from + e * kPoint<T> + kLanes<T> + l) * scale, Steps<T>());
    return;
  }
  for (std::int64_t tile = 0; tile < n; tile += kTile)
    for (int l = 0; l < g.count; ++l)
      for (std::int64_t e = tile; e < smaller(tile + kTile, n); ++e) {
        if (bounded && e * p.stores.by_e + g.b[l] * p.stores.by_b >= p.stores.limit) continue;
        const std::int64_t at = g.out[l] + e * step;
        const T re = from[e * kPoint<T> + l] * scale;
        if (real) {
          to[at] = re;
          continue;
        }
        to[2 * at] = re;
        to[2 * at + 1] = from[e * kPoint<T> + kLanes<T> + l] * scale;
      }
}
