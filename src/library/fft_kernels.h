// The arithmetic of a pass. Included after fft_lanes.h, once for each vector width.

// x·(wr + i·wi).
template <typename W, typename X>
inline __attribute__((always_inline)) void turn(X& re, X& im, const W& wr, const W& wi) {
  const X r = re * wr - im * wi;
  im = re * wi + im * wr;
  re = r;
}

// A factor r of the transform, in Stockham's way: with l points done and s to do (l·r·s in all),
//     b_u = Σ_m x[i + s·(m + r·k)]·ω_r^(u·m),   y[i + s·(k + l·u)] = b_u·exp(-2πi·u·i/(r·s)).
// The places of input and output differ, so that the last factor leaves the points in order.
struct Stage {
  std::int64_t l, s;
  int re, im;  // where the real parts stand in a point, and the imaginary ones; exchanged, it is the inverse transform
};

template <typename T>
inline __attribute__((always_inline)) void put(T* y, const Stage& g, const T* twiddle, V<T> re, V<T> im) {
  if (g.s > 1) turn(re, im, twiddle[0], twiddle[1]);
  store(y + g.re, re);
  store(y + g.im, im);
}

template <typename T>
void stage2(const Stage& g, const T* x, T* y, const T* twiddles) {
  for (std::int64_t k = 0; k < g.l; ++k)
    for (std::int64_t i = 0; i < g.s; ++i)
      for (int v = 0; v < kLanes<T>; v += kStep<T>) {
        const T *a = x + (i + g.s * 2 * k) * kPoint<T> + v, *b = a + g.s * kPoint<T>;
        T* to = y + (i + g.s * k) * kPoint<T> + v;
        const V<T> ar = load(a + g.re), ai = load(a + g.im), br = load(b + g.re), bi = load(b + g.im);
        store(to + g.re, V<T>(ar + br));
        store(to + g.im, V<T>(ai + bi));
        put<T>(to + g.s * g.l * kPoint<T>, g, twiddles + 2 * i, ar - br, ai - bi);
      }
}

template <typename T>
void stage4(const Stage& g, const T* x, T* y, const T* twiddles) {
  const std::int64_t in = g.s * kPoint<T>, out = g.s * g.l * kPoint<T>;
  for (std::int64_t k = 0; k < g.l; ++k)
    for (std::int64_t i = 0; i < g.s; ++i) {
      const T* w = twiddles + 6 * i;
      for (int v = 0; v < kLanes<T>; v += kStep<T>) {
        const T* from = x + (i + g.s * 4 * k) * kPoint<T> + v;
        T* to = y + (i + g.s * k) * kPoint<T> + v;
        const V<T> ar = load(from + g.re), ai = load(from + g.im);
        const V<T> br = load(from + in + g.re), bi = load(from + in + g.im);
        const V<T> cr = load(from + 2 * in + g.re), ci = load(from + 2 * in + g.im);
        const V<T> dr = load(from + 3 * in + g.re), di = load(from + 3 * in + g.im);
        const V<T> sr = ar + cr, si = ai + ci, tr = ar - cr, ti = ai - ci;
        const V<T> ur = br + dr, ui = bi + di, vr = br - dr, vi = bi - di;
        store(to + g.re, V<T>(sr + ur));
        store(to + g.im, V<T>(si + ui));
        put<T>(to + out, g, w, tr + vi, ti - vr);  // t - i·v
        put<T>(to + 2 * out, g, w + 2, sr - ur, si - ui);
        put<T>(to + 3 * out, g, w + 4, tr - vi, ti + vr);
      }
    }
}

// An odd factor. With t_m = x_m + x_(r-m) and d_m = x_m - x_(r-m), outputs u and r-u are
//     x_0 + Σ_m t_m·cos(2πum/r)  ∓  i·Σ_m d_m·sin(2πum/r),   m = 1 … (r-1)/2.
// kFixed: the factor where the compiler is to unroll, else 0. `roots`: (cos, -sin) of 2πk/r.
template <typename T, int kFixed>
void stage_odd(const Stage& g, int factor, const T* x, T* y, const T* twiddles, const T* roots) {
  const int r = kFixed != 0 ? kFixed : factor, half = (r - 1) / 2;
  constexpr int kHalf = kFixed != 0 ? (kFixed - 1) / 2 : 30;
  const std::int64_t in = g.s * kPoint<T>, out = g.s * g.l * kPoint<T>;
  for (std::int64_t k = 0; k < g.l; ++k)
    for (std::int64_t i = 0; i < g.s; ++i) {
      const T* w = twiddles + 2 * (r - 1) * i;
      for (int v = 0; v < kLanes<T>; v += kStep<T>) {
        const T* from = x + (i + g.s * r * k) * kPoint<T> + v;
        T* to = y + (i + g.s * k) * kPoint<T> + v;
        const V<T> xr = load(from + g.re), xi = load(from + g.im);
        V<T> tr[kHalf], ti[kHalf], dr[kHalf], di[kHalf];
        V<T> sr = xr, si = xi;
        for (int m = 1; m <= half; ++m) {
          const T *a = from + m * in, *b = from + (r - m) * in;
          const V<T> ar = load(a + g.re), ai = load(a + g.im), br = load(b + g.re), bi = load(b + g.im);
          tr[m - 1] = ar + br, ti[m - 1] = ai + bi, dr[m - 1] = ar - br, di[m - 1] = ai - bi;
          sr += tr[m - 1], si += ti[m - 1];
        }
        store(to + g.re, sr);
        store(to + g.im, si);
        for (int u = 1; u <= half; ++u) {
          V<T> cr = xr, ci = xi, er{}, ei{};
          int at = 0;
          for (int m = 0; m < half; ++m) {
            at = at + u < r ? at + u : at + u - r;
            const T c = roots[2 * at], s = roots[2 * at + 1];
            cr += tr[m] * c, ci += ti[m] * c, er += dr[m] * s, ei += di[m] * s;
          }
          put<T>(to + u * out, g, w + 2 * (u - 1), cr - ei, ci + er);
          put<T>(to + (r - u) * out, g, w + 2 * (r - u - 1), cr + ei, ci - er);
        }
      }
    }
}

template <typename T>
void stage(const FftPass& p, int f, const Stage& g, const T* x, T* y) {
  const char* base = reinterpret_cast<const char*>(&p);
  const T* twiddles = reinterpret_cast<const T*>(base + p.twiddle_offset_bytes[f]);
  const T* roots = reinterpret_cast<const T*>(base + p.root_offset_bytes[f]);
  switch (p.factors[f]) {
    case 2: return stage2(g, x, y, twiddles);
    case 3: return stage_odd<T, 3>(g, 3, x, y, twiddles, roots);
    case 4: return stage4(g, x, y, twiddles);
    case 5: return stage_odd<T, 5>(g, 5, x, y, twiddles, roots);
    case 7: return stage_odd<T, 7>(g, 7, x, y, twiddles, roots);
    default: return stage_odd<T, 0>(g, p.factors[f], x, y, twiddles, roots);
  }
}

// The transform of `core` points; gives the one of the two buffers that it ends in and makes it `x`.
template <typename T>
void transform(const FftPass& p, bool inverse, T*& x, T*& other) {
  Stage g{1, p.core, inverse ? kLanes<T> : 0, inverse ? 0 : kLanes<T>};
  for (int f = 0; f < p.num_factors; ++f) {
    g.s /= p.factors[f];
    stage(p, f, g, x, other);
    g.l *= p.factors[f];
    T* done = other;
    other = x;
    x = done;
  }
}

template <typename T>
void multiply(const FftPass& p, const FftTable& table, const Group<T>& g, std::int64_t count, T* x) {
  const T* w = reinterpret_cast<const T*>(reinterpret_cast<const char*>(&p) + table.offset_bytes);
  const T sign = table.conjugate != 0 ? T(-1) : T(1);
  const bool one = g.b_same || table.line_stride == 0;
  const bool adjacent = g.b_adjacent && table.line_stride == 1;
  for (std::int64_t e = 0; e < count; ++e) {
    const T* at = w + 2 * e * table.element_stride;
    T wr[kLanes<T>], wi[kLanes<T>];
    if (!one && !adjacent)
      for (int l = 0; l < kLanes<T>; ++l) {
        wr[l] = at[2 * g.b[l] * table.line_stride];
        wi[l] = at[2 * g.b[l] * table.line_stride + 1];
      }
    const T* first = at + 2 * g.b[0] * table.line_stride;
    for (int l = 0; l < kLanes<T>; l += kStep<T>) {
      T* point = x + e * kPoint<T> + l;
      V<T> re = load(point), im = load(point + kLanes<T>), fr, fi;
      if (one) {
        turn(re, im, first[0], sign * first[1]);
      } else {
        if (adjacent) {
          split(first + 2 * l, fr, fi, Steps<T>());
        } else {
          fr = load(wr + l);
          fi = load(wi + l);
        }
        turn(re, im, fr, V<T>(fi * sign));
      }
      store(point, re);
      store(point + kLanes<T>, im);
    }
  }
}

// The points a and b of a line and its mirror image become s + t and conj(s - t).
template <typename T>
inline __attribute__((always_inline)) void put_pair(T* a, T* b, const V<T>& sr, const V<T>& si, const V<T>& tr, const V<T>& ti) {
  const V<T> br = sr - tr, bi = ti - si, ar = sr + tr, ai = si + ti;
  store(b, br);
  store(b + kLanes<T>, bi);
  store(a, ar);
  store(a + kLanes<T>, ai);
}

// A symmetric line X of 2h points, of which x holds 0 … h, as the h points whose inverse transform is the real line in
// pairs: with w = exp(-2πi·k/2h), s = X_k + conj(X_(h-k)) and t = i·conj(w)·(X_k - conj(X_(h-k))) they are s + t at k,
// conj(s - t) at h-k.
template <typename T>
void pack_half(const FftPass& p, T* x) {
  const std::int64_t h = p.points;
  const T* w = reinterpret_cast<const T*>(reinterpret_cast<const char*>(&p) + p.half_offset_bytes);
  for (int l = 0; l < kLanes<T>; ++l) x[kLanes<T> + l] = x[h * kPoint<T> + kLanes<T> + l] = 0;
  for (std::int64_t k = 0; k <= h / 2; ++k, w += 2)
    for (int l = 0; l < kLanes<T>; l += kStep<T>) {
      T *a = x + k * kPoint<T> + l, *b = x + (h - k) * kPoint<T> + l;
      const V<T> ar = load(a), ai = load(a + kLanes<T>), br = load(b), bi = load(b + kLanes<T>);
      V<T> dr = ar - br, di = ai + bi;
      turn(dr, di, w[0], -w[1]);
      put_pair<T>(a, b, ar + br, ai - bi, -di, dr);
    }
}

// And back for the transform Z of a real line in pairs: with s = (Z_k + conj(Z_(h-k)))/2 and
// t = -i·w·(Z_k - conj(Z_(h-k)))/2 the line's transform is s + t at k, conj(s - t) at h-k; Z_h is Z_0.
template <typename T>
void unpack_half(const FftPass& p, T* x) {
  const std::int64_t h = p.points;
  const T* w = reinterpret_cast<const T*>(reinterpret_cast<const char*>(&p) + p.half_offset_bytes);
  for (int l = 0; l < kPoint<T>; ++l) x[h * kPoint<T> + l] = x[l];
  for (std::int64_t k = 0; k <= h / 2; ++k, w += 2)
    for (int l = 0; l < kLanes<T>; l += kStep<T>) {
      T *a = x + k * kPoint<T> + l, *b = x + (h - k) * kPoint<T> + l;
      const V<T> ar = load(a), ai = load(a + kLanes<T>), br = load(b), bi = load(b + kLanes<T>);
      V<T> dr = (ar - br) * T(0.5), di = (ai + bi) * T(0.5);
      turn(dr, di, w[0], w[1]);
      put_pair<T>(a, b, (ar + br) * T(0.5), (ai - bi) * T(0.5), di, -dr);
    }
}

template <typename T>
void run_group(const FftPass& p, const Group<T>& g, const T* in, T* out, T* x, T* other) {
  load_group(p, g, in, x);
  if (p.load == FftLoad::PackHalf) pack_half(p, x);
  if (p.pre.offset_bytes != 0) multiply(p, p.pre, g, p.points, x);
  for (std::int64_t e = p.points; e < p.core; ++e) clear_point(x + e * kPoint<T>);
  transform(p, p.inverse != 0, x, other);
  if (p.mid.offset_bytes != 0) {
    multiply(p, p.mid, g, p.core, x);
    transform(p, p.inverse == 0, x, other);
  }
  if (p.post.offset_bytes != 0) multiply(p, p.post, g, p.points, x);
  if (p.store == FftStore::UnpackHalf) unpack_half(p, x);
  store_group(p, g, x, out);
}

template <typename T>
void run_groups(const FftPass& p, void* const* buffers, std::int64_t begin, std::int64_t end, T* scratch) {
  const std::int64_t room = (p.core > p.points ? p.core : p.points) + 1;
  Group<T> group;
  for (std::int64_t number = begin; number < end; ++number) {
    place_group(p, number, group);
    run_group(p, group, static_cast<const T*>(buffers[1]), static_cast<T*>(buffers[2]), scratch,
              scratch + room * kPoint<T>);
  }
}

void run(void* const* buffers, std::int64_t begin, std::int64_t end, void* scratch) {
  const FftPass& p = *static_cast<const FftPass*>(buffers[0]);
  if (p.is_double != 0) return run_groups(p, buffers, begin, end, static_cast<double*>(scratch));
  return run_groups(p, buffers, begin, end, static_cast<float*>(scratch));
}
