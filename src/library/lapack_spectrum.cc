// Eigenvalues, singular values, and the reductions on the way to them.
#include <cmath>

#include "library/lapack_call.h"

namespace hloom::library {
namespace {

struct Syevd {
  template <typename T>
  static void call(const LapackCall& c, T* a, RealOf<T>* values, T* work, std::int32_t lwork, RealOf<T>* rwork,
                   std::int32_t lrwork, std::int32_t* iwork, std::int32_t liwork, std::int32_t& info) {
    const std::int32_t ld = leading(c.n);
    if constexpr (ElementOf<T>::kComplex)
      fortran<T>(Fortran::Syevd, &c.mode, &c.uplo, &c.n, a, &ld, values, work, &lwork, rwork, &lrwork, iwork, &liwork, &info);
    else
      fortran<T>(Fortran::Syevd, &c.mode, &c.uplo, &c.n, a, &ld, values, work, &lwork, iwork, &liwork, &info);
  }
  template <typename T>
  static void query(LapackCall& c) {
    T none{}, best{};
    RealOf<T> no{}, best_real{};
    std::int32_t best_integer = 0, info = 0;
    call<T>(c, &none, &no, &best, -1, &best_real, -1, &best_integer, -1, info);
    c.lwork = count_of(best);
    c.lrwork = ElementOf<T>::kComplex ? count_of(best_real) : 0;
    c.liwork = std::max(best_integer, 1);
  }
  template <typename T>
  static void run(const LapackItem<T>& x) {
    std::int32_t info = 0;
    x.copy(0, 1);
    call<T>(x.c, x.at(1), x.template at<RealOf<T>>(2), x.work(), x.c.lwork, x.rwork(), x.c.lrwork, x.iwork(), x.c.liwork, info);
    x.finish(info);
  }
};

template <typename T>
bool is_finite(const T* x, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i)
    if (!std::isfinite(std::real(x[i])) || !std::isfinite(std::imag(x[i]))) return false;
  return true;
}

// Real matrices have eigenvalues in two real arrays and complex vectors; LAPACK gives a conjugate pair's vectors as one
// column of real parts and one of imaginary parts.
struct Geev {
  template <typename T>
  static void call(const LapackCall& c, T* a, T* re, T* im, T* left, T* right, T* work, std::int32_t lwork,
                   RealOf<T>* rwork, std::int32_t& info) {
    const std::int32_t ld = leading(c.n);
    if constexpr (ElementOf<T>::kComplex)
      fortran<T>(Fortran::Geev, &c.left_vectors, &c.right_vectors, &c.n, a, &ld, re, left, &ld, right, &ld, work, &lwork, rwork, &info);
    else
      fortran<T>(Fortran::Geev, &c.left_vectors, &c.right_vectors, &c.n, a, &ld, re, im, left, &ld, right, &ld, work, &lwork, &info);
  }
  template <typename T>
  static void query(LapackCall& c) {
    T none{}, best{};
    RealOf<T> no{};
    std::int32_t info = 0;
    call<T>(c, &none, &none, &none, &none, &none, &best, -1, &no, info);
    c.lwork = count_of(best);
    c.lrwork = ElementOf<T>::kComplex ? 2 * c.n : 0;
    // The matrix that is destroyed, and for real ones the vectors in pairs.
    const auto square = static_cast<std::int64_t>(c.n) * c.n * static_cast<std::int64_t>(sizeof(T));
    c.more_bytes = ElementOf<T>::kComplex ? square : 3 * square;
  }
  // LAPACK may not come to an end on what is not finite: its fourth argument is refused, as it would be by a caller.
  template <typename T>
  static void run(const LapackItem<T>& x) {
    constexpr bool complex = ElementOf<T>::kComplex;
    constexpr int left = complex ? 2 : 3;
    const std::int64_t n = x.c.n, square = n * n;
    std::int32_t info = -4;
    for (int i = 1; i <= left + 1; ++i) x.clear(i);
    if (is_finite(x.at(0), square)) {
      T* a = x.more();
      std::copy_n(x.at(0), square, a);
      if constexpr (complex)
        call<T>(x.c, a, x.at(1), nullptr, x.at(2), x.at(3), x.work(), x.c.lwork, x.rwork(), info);
      else
        call<T>(x.c, a, x.at(1), x.at(2), a + square, a + 2 * square, x.work(), x.c.lwork, nullptr, info);
      if constexpr (!complex) {
        if (x.c.left_vectors == 'V') unpack(n, x.at(2), a + square, x.template at<std::complex<T>>(left));
        if (x.c.right_vectors == 'V') unpack(n, x.at(2), a + 2 * square, x.template at<std::complex<T>>(left + 1));
      }
    }
    x.finish(info);
  }
  template <typename T>
  static void unpack(std::int64_t n, const T* im, const T* pairs, std::complex<T>* vectors) {
    for (std::int64_t j = 0; j < n; ++j) {
      const bool pair = im[j] != 0 && j + 1 < n;
      for (std::int64_t i = 0; i < n; ++i) {
        const T re = pairs[j * n + i];
        vectors[j * n + i] = {re, pair ? pairs[(j + 1) * n + i] : T(0)};
        if (pair) vectors[(j + 1) * n + i] = {re, -pairs[(j + 1) * n + i]};
      }
      if (pair) ++j;
    }
  }
};

// An empty matrix has singular vectors all the same: any basis.
template <typename T>
void set_identity(T* to, std::int64_t rows, std::int64_t columns) {
  for (std::int64_t j = 0; j < columns; ++j)
    for (std::int64_t i = 0; i < rows; ++i) to[j * rows + i] = i == j ? T(1) : T(0);
}

template <typename Body, typename T>
void run_svd(const LapackItem<T>& x) {
  std::int32_t info = 0;
  x.copy(0, 1);
  if (x.c.mode == 'N') {
    x.clear(3);
    x.clear(4);
  }
  if (x.c.m == 0 || x.c.n == 0) {
    set_identity(x.at(3), x.c.m, x.c.u);
    set_identity(x.at(4), x.c.v, x.c.n);
  } else {
    Body::template call<T>(x.c, x.at(1), x.template at<RealOf<T>>(2), x.at(3), x.at(4), x.work(), x.c.lwork, x.rwork(),
                           x.iwork(), info);
  }
  x.finish(info);
}

template <typename Body, typename T>
void query_svd(LapackCall& c) {
  T none{}, best{};
  RealOf<T> no{};
  std::int32_t nothing = 0, info = 0;
  if (c.m > 0 && c.n > 0) Body::template call<T>(c, &none, &no, &none, &none, &best, -1, &no, &nothing, info);
  c.lwork = count_of(best);
}

struct Gesdd {
  template <typename T>
  static void call(const LapackCall& c, T* a, RealOf<T>* values, T* u, T* vt, T* work, std::int32_t lwork, RealOf<T>* rwork,
                   std::int32_t* iwork, std::int32_t& info) {
    const std::int32_t lda = leading(c.m), ldv = leading(c.v);
    if constexpr (ElementOf<T>::kComplex)
      fortran<T>(Fortran::Gesdd, &c.mode, &c.m, &c.n, a, &lda, values, u, &lda, vt, &ldv, work, &lwork, rwork, iwork, &info);
    else
      fortran<T>(Fortran::Gesdd, &c.mode, &c.m, &c.n, a, &lda, values, u, &lda, vt, &ldv, work, &lwork, iwork, &info);
  }
  // The real work memory of the complex form is documented by a formula, not answered to a query.
  template <typename T>
  static void query(LapackCall& c) {
    query_svd<Gesdd, T>(c);
    const std::int64_t least = std::min(c.m, c.n), most = std::max(c.m, c.n);
    const std::int64_t vectors = std::max(5 * least * least + 5 * least, 2 * most * least + 2 * least * least + least);
    c.lrwork = !ElementOf<T>::kComplex ? 0 : static_cast<std::int32_t>(c.mode == 'N' ? 7 * least : vectors);
    c.liwork = static_cast<std::int32_t>(8 * least);
  }
  template <typename T>
  static void run(const LapackItem<T>& x) {
    run_svd<Gesdd>(x);
  }
};

struct Gesvd {
  template <typename T>
  static void call(const LapackCall& c, T* a, RealOf<T>* values, T* u, T* vt, T* work, std::int32_t lwork, RealOf<T>* rwork,
                   std::int32_t*, std::int32_t& info) {
    const std::int32_t lda = leading(c.m), ldv = leading(c.v);
    if constexpr (ElementOf<T>::kComplex)
      fortran<T>(Fortran::Gesvd, &c.mode, &c.mode, &c.m, &c.n, a, &lda, values, u, &lda, vt, &ldv, work, &lwork, rwork, &info);
    else
      fortran<T>(Fortran::Gesvd, &c.mode, &c.mode, &c.m, &c.n, a, &lda, values, u, &lda, vt, &ldv, work, &lwork, &info);
  }
  template <typename T>
  static void query(LapackCall& c) {
    query_svd<Gesvd, T>(c);
    c.lrwork = ElementOf<T>::kComplex ? 5 * std::min(c.m, c.n) : 0;
  }
  template <typename T>
  static void run(const LapackItem<T>& x) {
    run_svd<Gesvd>(x);
  }
};

struct Gees {
  template <typename T>
  static void call(const LapackCall& c, T* a, T* re, T* im, T* vectors, std::int32_t* sorted, T* work, std::int32_t lwork,
                   RealOf<T>* rwork, std::int32_t& info) {
    const std::int32_t ld = leading(c.n);
    const char unsorted = 'N';
    void* select = nullptr;
    std::int32_t* marks = nullptr;  // read where values are sorted only
    // A procedure argument is passed by its address, not by the address of a variable with it.
    if constexpr (ElementOf<T>::kComplex)
      fortran<T>(Fortran::Gees, &c.mode, &unsorted, static_cast<char*>(select), &c.n, a, &ld, sorted, re, vectors, &ld, work,
                 &lwork, rwork, marks, &info);
    else
      fortran<T>(Fortran::Gees, &c.mode, &unsorted, static_cast<char*>(select), &c.n, a, &ld, sorted, re, im, vectors, &ld,
                 work, &lwork, marks, &info);
  }
  template <typename T>
  static void query(LapackCall& c) {
    T none{}, best{};
    RealOf<T> no{};
    std::int32_t sorted = 0, info = 0;
    call<T>(c, &none, &none, &none, &none, &sorted, &best, -1, &no, info);
    c.lwork = count_of(best);
    c.lrwork = ElementOf<T>::kComplex ? c.n : 0;
  }
  template <typename T>
  static void run(const LapackItem<T>& x) {
    constexpr bool complex = ElementOf<T>::kComplex;
    std::int32_t info = -4;
    const bool finite = is_finite(x.at(0), static_cast<std::int64_t>(x.c.n) * x.c.n);
    x.copy(0, 1);
    for (int i = 2; i <= (complex ? 4 : 5); ++i) x.clear(i);
    if (finite)
      call<T>(x.c, x.at(1), x.at(3), complex ? nullptr : x.at(4), x.at(2), x.template at<std::int32_t>(complex ? 4 : 5),
              x.work(), x.c.lwork, x.rwork(), info);
    x.finish(info);
  }
};

struct Gehrd {
  template <typename T>
  static void call(const LapackCall& c, T* a, T* tau, T* work, std::int32_t lwork, std::int32_t& info) {
    const std::int32_t ld = leading(c.n);
    fortran<T>(Fortran::Gehrd, &c.n, &c.low, &c.high, a, &ld, tau, work, &lwork, &info);
  }
  template <typename T>
  static void query(LapackCall& c) {
    T none{}, best{};
    std::int32_t info = 0;
    call<T>(c, &none, &none, &best, -1, info);
    c.lwork = count_of(best);
  }
  template <typename T>
  static void run(const LapackItem<T>& x) {
    std::int32_t info = 0;
    x.copy(0, 1);
    if (x.c.n > 0) call<T>(x.c, x.at(1), x.at(2), x.work(), x.c.lwork, info);
    x.finish(info);
  }
};

struct Sytrd {
  template <typename T>
  static void call(const LapackCall& c, T* a, RealOf<T>* d, RealOf<T>* e, T* tau, T* work, std::int32_t lwork, std::int32_t& info) {
    const std::int32_t ld = leading(c.n);
    fortran<T>(Fortran::Sytrd, &c.uplo, &c.n, a, &ld, d, e, tau, work, &lwork, &info);
  }
  template <typename T>
  static void query(LapackCall& c) {
    T none{}, best{};
    RealOf<T> no{};
    std::int32_t info = 0;
    call<T>(c, &none, &no, &no, &none, &best, -1, info);
    c.lwork = count_of(best);
  }
  template <typename T>
  static void run(const LapackItem<T>& x) {
    std::int32_t info = 0;
    x.copy(0, 1);
    call<T>(x.c, x.at(1), x.template at<RealOf<T>>(2), x.template at<RealOf<T>>(3), x.at(4), x.work(), x.c.lwork, info);
    x.finish(info);
  }
};

}  // namespace

const LapackRoutine kSyevd = lapack_routine<Syevd>();
const LapackRoutine kGeev = lapack_routine<Geev>();
const LapackRoutine kGesdd = lapack_routine<Gesdd>();
const LapackRoutine kGesvd = lapack_routine<Gesvd>();
const LapackRoutine kGees = lapack_routine<Gees>();
const LapackRoutine kGehrd = lapack_routine<Gehrd>();
const LapackRoutine kSytrd = lapack_routine<Sytrd>();

}  // namespace hloom::library
