// The distribution's BLAS and LAPACK, loaded when first needed: programs without matrices pay nothing for it.
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <string>

#include "hloom/error.h"

namespace hloom::library {

enum class Fortran : std::uint8_t {
  Potrf, Trsm, Getrf, Geqrf, Geqp3, Orgqr, Ormqr, Syevd, Geev, Gesdd, Gesvd, Gees, Gehrd, Sytrd, Gtsv
};
inline constexpr std::size_t kNumFortran = 15;

/// Nothing if the library is there, and single-threaded from now on: our threads share the matrices of a batch.
/// Errors: Unimplemented if hloom was built without it, or the system lacks it or one of its functions. Thread-safe.
Expected<> want_lapack();

/// One line for `hloom --version`: the library that this build asks for, or that there is none. Does not load it.
std::string lapack_version();

/// The address of a function for elements of the type, s, d, c or z. Needs: want_lapack().
void* fortran_function(Fortran, std::size_t type);

template <typename T>
struct ElementOf;
template <>
struct ElementOf<float> {
  using Real = float;
  static constexpr std::size_t kNumber = 0;
  static constexpr bool kComplex = false;
};
template <>
struct ElementOf<double> {
  using Real = double;
  static constexpr std::size_t kNumber = 1;
  static constexpr bool kComplex = false;
};
template <>
struct ElementOf<std::complex<float>> {
  using Real = float;
  static constexpr std::size_t kNumber = 2;
  static constexpr bool kComplex = true;
};
template <>
struct ElementOf<std::complex<double>> {
  using Real = double;
  static constexpr std::size_t kNumber = 3;
  static constexpr bool kComplex = true;
};
template <typename T>
using RealOf = typename ElementOf<T>::Real;

/// Calls a function with these addresses. Fortran's hidden lengths of character arguments come behind them; where there
/// are fewer, nobody reads the rest.
template <typename T, typename... Args>
void fortran(Fortran f, Args*... args) {
  using Function = void (*)(Args*..., std::size_t, std::size_t, std::size_t, std::size_t);
  reinterpret_cast<Function>(fortran_function(f, ElementOf<T>::kNumber))(args..., 1, 1, 1, 1);
}

}  // namespace hloom::library
