// The functions that are measured, and the C library's for a wider type, which find the inputs that are worth more bits.
#pragma once

#include <complex>
#include <span>

namespace hloom::measure {

using Wide = std::complex<long double>;

struct Function {
  const char* name;  ///< the opcode
  double (*of_double)(double);
  long double (*of_long_double)(long double);
};
struct Function2 {
  const char* name;
  double (*of_double)(double, double);
  long double (*of_long_double)(long double, long double);
};
struct ComplexFunction {
  const char* name;
  Wide (*of)(Wide);
};
struct ComplexFunction2 {
  const char* name;
  Wide (*of)(Wide, Wide);
  bool of_angles;  ///< errors count in places of 1 + the larger part, and results a turn apart are the same
};

std::span<const Function> functions();
std::span<const Function2> functions2();
std::span<const ComplexFunction> complex_functions();
std::span<const ComplexFunction2> complex_functions2();

}  // namespace hloom::measure
