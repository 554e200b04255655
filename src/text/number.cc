#include "text/number.h"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <string>

namespace hloom::text {
namespace {

double round_slowly(const std::string& text, double) { return std::strtod(text.c_str(), nullptr); }
float round_slowly(const std::string& text, float) { return std::strtof(text.c_str(), nullptr); }

}  // namespace

template <typename T>
WrittenDecimal<T> scan_decimal(const char* p, const char* end) {
  WrittenDecimal<T> result;
  result.end = p;
  const char* first = p < end && *p == '-' ? p + 1 : p;
  // from_chars also reads words as "inf".
  if (first >= end || !((*first >= '0' && *first <= '9') || *first == '.')) return result;
  const auto [stop, error] = std::from_chars(p, end, result.value);
  if (error == std::errc::invalid_argument) return result;
  result.end = stop;
  if (error == std::errc::result_out_of_range) {
    result.value = round_slowly(std::string(p, stop), T());  // tells too small from too large
    result.overflow = std::isinf(result.value);
  }
  return result;
}

template WrittenDecimal<float> scan_decimal(const char*, const char*);
template WrittenDecimal<double> scan_decimal(const char*, const char*);

}  // namespace hloom::text
