// Cholesky factors and triangular solves of row-major matrices.
#pragma once

#include <cstdint>

#include "hloom/shape.h"
#include "library/routine.h"

namespace hloom::library {

/// Who does a matrix that is large enough for it to matter. LAPACK does where it is there.
enum class DenseWay : std::uint8_t { Best, Own };

struct CholeskyProblem {
  DType type = DType::F32;  ///< F32, F64, C64 or C128
  std::int64_t batch = 1, n = 0;
  bool lower = true;
};

/// a = L·Lᴴ, or Uᴴ·U, from one triangle of a; the other triangle of the result is zero, and all of a matrix that is not
/// positive definite NaN. Operand and result may be the same memory. A block is a matrix.
/// Errors: Unimplemented for other types.
Expected<RoutinePlan> plan_cholesky(const CholeskyProblem&, DenseWay = DenseWay::Best);

struct TriangularProblem {
  enum class Form : std::uint8_t { Plain, Transposed, Adjoint };
  DType type = DType::F32;
  std::int64_t batch = 1, rows = 0, columns = 0;  ///< of b
  bool left = true, lower = true, unit_diagonal = false;
  Form form = Form::Plain;

  std::int64_t order() const { return left ? rows : columns; }  ///< of a
};

/// op(a)·x = b, or x·op(a) = b, from one triangle of a. b and x may be the same memory. A block is some right-hand
/// sides of a matrix. What a zero on the diagonal gives is infinite or NaN.
/// Errors: Unimplemented for other types.
Expected<RoutinePlan> plan_triangular_solve(const TriangularProblem&, DenseWay = DenseWay::Best);

}  // namespace hloom::library
