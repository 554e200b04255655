// Tridiagonal systems that may be singular, as inverse iteration meets them on purpose.
//
// Source: LAPACK's documentation of xLAGTF and xLAGTS. The matrix becomes P·L·U with rows exchanged by size against their
// own scale; L is applied to the right-hand sides on the way. Going back, a pivot that is so small that a solution would
// overflow is moved away from zero by eps·max|U|, twice as far each time, or scaled together with its row.
#include <cmath>
#include <limits>

#include "library/lapack_call.h"

namespace hloom::library {
namespace {

template <typename T>
class PerturbedSolver {
 public:
  using Real = RealOf<T>;

  // x: n rows, `columns` of them, column by column; `u`: room for 3·n elements.
  PerturbedSolver(std::int64_t n, std::int64_t columns, const T* lower, const T* diagonal, const T* upper, T* x, T* u)
      : n_(n), columns_(columns), lower_(lower), diagonal_(diagonal), upper_(upper), x_(x), u_(u), v_(u + n), w_(u + 2 * n) {}

  void solve() {
    if (n_ == 0) return;
    factor();
    Real largest = 0;
    for (std::int64_t i = 0; i < 3 * n_; ++i) largest = std::max(largest, std::abs(u_[i]));
    for (std::int64_t k = n_ - 1; k >= 0; --k) {
      for (std::int64_t c = 0; c < columns_; ++c) {
        T* x = x_ + c * n_;
        if (k + 1 < n_) x[k] -= v_[k] * x[k + 1];
        if (k + 2 < n_) x[k] -= w_[k] * x[k + 2];
      }
      divide_row(k, std::numeric_limits<Real>::epsilon() * largest);
    }
  }

 private:
  // U in u (diagonal), v and w (beside it).
  void factor() {
    std::fill_n(u_, 3 * n_, T(0));
    u_[0] = diagonal_[0];
    v_[0] = n_ > 1 ? upper_[0] : T(0);
    Real scale = std::abs(u_[0]) + std::abs(v_[0]);
    for (std::int64_t k = 0; k + 1 < n_; ++k) {
      const bool last = k + 2 == n_;
      const T below = lower_[k + 1], d = diagonal_[k + 1], beside = last ? T(0) : upper_[k + 1];
      const Real next_scale = std::abs(below) + std::abs(d) + std::abs(beside);
      const Real own = u_[k] == T(0) ? Real(0) : std::abs(u_[k]) / scale;
      const Real others = below == T(0) ? Real(0) : std::abs(below) / next_scale;
      u_[k + 1] = d;
      v_[k + 1] = beside;
      if (below == T(0)) {
        scale = next_scale;
      } else if (others <= own) {
        const T factor = below / u_[k];
        u_[k + 1] -= factor * v_[k];
        for (std::int64_t c = 0; c < columns_; ++c) x_[c * n_ + k + 1] -= factor * x_[c * n_ + k];
        scale = next_scale;
      } else {
        exchange(k, below, d, beside);
        scale = std::abs(u_[k + 1]) + std::abs(v_[k + 1]);
      }
    }
  }

  // Row k+1 becomes row k, and what row k leaves under it row k+1.
  void exchange(std::int64_t k, T below, T d, T beside) {
    const T factor = u_[k] / below, moved = v_[k];
    u_[k] = below;
    v_[k] = d;
    w_[k] = beside;
    u_[k + 1] = moved - factor * d;
    v_[k + 1] = -factor * beside;
    for (std::int64_t c = 0; c < columns_; ++c) {
      T* x = x_ + c * n_;
      const T own = x[k];
      x[k] = x[k + 1];
      x[k + 1] = own - factor * x[k];
    }
  }

  void divide_row(std::int64_t k, Real perturbation) {
    constexpr Real smallest = std::numeric_limits<Real>::min(), largest = 1 / smallest;
    Real right = 0;
    for (std::int64_t c = 0; c < columns_; ++c) right = std::max(right, std::abs(x_[c * n_ + k]));
    T pivot = u_[k];
    Real step = std::copysign(std::max(perturbation, smallest), std::real(pivot)), factor = 1;
    while (std::abs(pivot) < 1) {
      const Real size = std::abs(pivot);
      const bool overflows = size < smallest ? size == 0 || right * smallest > size : right > size * largest;
      if (!overflows) {
        if (size < smallest) factor = largest;
        break;
      }
      pivot += step;
      step *= 2;
    }
    for (std::int64_t c = 0; c < columns_; ++c) x_[c * n_ + k] = x_[c * n_ + k] * factor / (pivot * factor);
  }

  const std::int64_t n_, columns_;
  const T *lower_, *diagonal_, *upper_;
  T *x_, *u_, *v_, *w_;
};

struct SolvePerturbed {
  template <typename T>
  static void query(LapackCall& c) {
    c.more_bytes = 3 * static_cast<std::int64_t>(c.n) * static_cast<std::int64_t>(sizeof(T));
  }
  template <typename T>
  static void run(const LapackItem<T>& x) {
    x.copy(3, 4);
    PerturbedSolver<T>(x.c.n, x.c.rhs, x.at(0), x.at(1), x.at(2), x.at(4), x.more()).solve();
  }
};

}  // namespace

const LapackRoutine kSolvePerturbed = lapack_routine<SolvePerturbed>();

}  // namespace hloom::library
