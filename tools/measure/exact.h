// Functions to as many bits as it takes, by GNU MPFR and MPC.
#pragma once

#include <complex>
#include <string_view>

#include "format.h"

namespace hloom::measure {

/// How far `got` is from function(x), in last places. Needs: a name of functions.h.
double exact_distance(std::string_view function, const Format&, double x, double got);
double exact_distance(std::string_view function, const Format&, double x, double y, double got);
/// Counted in last places of the larger part.
double exact_distance(std::string_view function, const Format&, std::complex<double> x, std::complex<double> got);
/// Of power; of atan2 (y, x) in places of 1 + the larger part, and results a turn apart are the same.
double exact_distance(std::string_view function, const Format&, std::complex<double> x, std::complex<double> y, std::complex<double> got);

}  // namespace hloom::measure
