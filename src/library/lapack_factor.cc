// Factors of matrices and solutions with them.
#include "library/lapack_call.h"

namespace hloom::library {
namespace {

struct Potrf {
  template <typename T>
  static void query(LapackCall&) {}
  template <typename T>
  static void run(const LapackItem<T>& x) {
    const std::int32_t n = x.c.n, ld = leading(n);
    std::int32_t info = 0;
    x.copy(0, 1);
    fortran<T>(Fortran::Potrf, &x.c.uplo, &n, x.at(1), &ld, &info);
    x.finish(info);
  }
};

struct Getrf {
  template <typename T>
  static void query(LapackCall&) {}
  template <typename T>
  static void run(const LapackItem<T>& x) {
    const std::int32_t ld = leading(x.c.m);
    std::int32_t info = 0;
    x.copy(0, 1);
    fortran<T>(Fortran::Getrf, &x.c.m, &x.c.n, x.at(1), &ld, x.template at<std::int32_t>(2), &info);
    x.finish(info);
  }
};

struct Geqrf {
  template <typename T>
  static void call(const LapackCall& c, T* a, T* tau, T* work, std::int32_t lwork, std::int32_t& info) {
    const std::int32_t ld = leading(c.m);
    fortran<T>(Fortran::Geqrf, &c.m, &c.n, a, &ld, tau, work, &lwork, &info);
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
    call<T>(x.c, x.at(1), x.at(2), x.work(), x.c.lwork, info);
    x.finish(info);
  }
};

struct Geqp3 {
  template <typename T>
  static void call(const LapackCall& c, T* a, std::int32_t* pivots, T* tau, T* work, std::int32_t lwork, RealOf<T>* rwork,
                   std::int32_t& info) {
    const std::int32_t ld = leading(c.m);
    if constexpr (ElementOf<T>::kComplex)
      fortran<T>(Fortran::Geqp3, &c.m, &c.n, a, &ld, pivots, tau, work, &lwork, rwork, &info);
    else
      fortran<T>(Fortran::Geqp3, &c.m, &c.n, a, &ld, pivots, tau, work, &lwork, &info);
  }
  template <typename T>
  static void query(LapackCall& c) {
    T none{}, best{};
    RealOf<T> no{};
    std::int32_t pivot = 0, info = 0;
    call<T>(c, &none, &pivot, &none, &best, -1, &no, info);
    c.lwork = count_of(best);
    c.lrwork = ElementOf<T>::kComplex ? 2 * c.n : 0;
  }
  template <typename T>
  static void run(const LapackItem<T>& x) {
    std::int32_t info = 0;
    x.copy(0, 2);
    x.copy(1, 3);
    call<T>(x.c, x.at(2), x.template at<std::int32_t>(3), x.at(4), x.work(), x.c.lwork, x.rwork(), info);
    x.finish(info);
  }
};

struct Orgqr {
  template <typename T>
  static void call(const LapackCall& c, T* a, T* tau, T* work, std::int32_t lwork, std::int32_t& info) {
    const std::int32_t ld = leading(c.m);
    fortran<T>(Fortran::Orgqr, &c.m, &c.n, &c.k, a, &ld, tau, work, &lwork, &info);
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
    x.copy(0, 2);
    call<T>(x.c, x.at(2), x.at(1), x.work(), x.c.lwork, info);
    x.finish(info);
  }
};

struct Ormqr {
  template <typename T>
  static void call(const LapackCall& c, T* a, T* tau, T* to, T* work, std::int32_t lwork, std::int32_t& info) {
    const std::int32_t lda = leading(c.a), ldc = leading(c.m);
    fortran<T>(Fortran::Ormqr, &c.side, &c.trans, &c.m, &c.n, &c.k, a, &lda, tau, to, &ldc, work, &lwork, &info);
  }
  template <typename T>
  static void query(LapackCall& c) {
    T none{}, best{};
    std::int32_t info = 0;
    // So few reflectors go one by one, whatever there is room for, and that takes a line of the other operand.
    constexpr std::int32_t kOneByOne = 32;
    call<T>(c, &none, &none, &none, &best, -1, info);
    c.lwork = c.k <= kOneByOne ? std::max(1, c.side == 'L' ? c.n : c.m) : count_of(best);
  }
  template <typename T>
  static void run(const LapackItem<T>& x) {
    std::int32_t info = 0;
    x.copy(2, 3);
    call<T>(x.c, x.at(0), x.at(1), x.at(3), x.work(), x.c.lwork, info);
    x.finish(info);
  }
};

// Operands are the triangle, the right-hand sides, and in the older form what these are multiplied by.
struct Trsm {
  template <typename T>
  static void query(LapackCall&) {}
  template <typename T>
  static void run(const LapackItem<T>& x) {
    const std::int32_t lda = leading(x.c.a), ldb = leading(x.c.m);
    const T one(1), *alpha = x.c.has_alpha ? static_cast<const T*>(x.buffers[x.c.pointer[3]]) : &one;
    x.copy(1, 2);
    if (x.c.m > 0 && x.c.n > 0)
      fortran<T>(Fortran::Trsm, &x.c.side, &x.c.uplo, &x.c.trans, &x.c.diag, &x.c.m, &x.c.n, alpha, x.at(0), &lda, x.at(2), &ldb);
  }
};

// A lower diagonal as long as the main one begins with an element that is not there.
struct Gtsv {
  template <typename T>
  static void query(LapackCall&) {}
  template <typename T>
  static void run(const LapackItem<T>& x) {
    const std::int32_t ld = leading(x.c.n);
    std::int32_t info = 0;
    for (int i = 0; i < 4; ++i) x.copy(i, i + 4);
    fortran<T>(Fortran::Gtsv, &x.c.n, &x.c.rhs, x.at(4) + (x.c.e == x.c.n && x.c.n > 0 ? 1 : 0), x.at(5), x.at(6), x.at(7),
               &ld, &info);
    x.finish(info);
  }
};

}  // namespace

const LapackRoutine kPotrf = lapack_routine<Potrf>();
const LapackRoutine kGetrf = lapack_routine<Getrf>();
const LapackRoutine kGeqrf = lapack_routine<Geqrf>();
const LapackRoutine kGeqp3 = lapack_routine<Geqp3>();
const LapackRoutine kOrgqr = lapack_routine<Orgqr>();
const LapackRoutine kOrmqr = lapack_routine<Ormqr>();
const LapackRoutine kTrsm = lapack_routine<Trsm>();
const LapackRoutine kGtsv = lapack_routine<Gtsv>();

}  // namespace hloom::library
