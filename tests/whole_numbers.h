// Arrays of small numbers, which every type holds and whose sums are exact, and what else a test puts into them.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "hlo/literal.h"
#include "hlo/narrow_float.h"

namespace hloom {

/// Makes element `n` x. Needs: a type that is not complex and has whole bytes; x is a number of it.
inline void put(hlo::Literal& literal, std::int64_t n, double x) {
  const DType type = literal.dtype();
  const auto width = static_cast<std::size_t>(byte_width(type));
  std::uint64_t bits = 0;
  if (is_integral(type) || type == DType::Pred)
    bits = static_cast<std::uint64_t>(static_cast<std::int64_t>(x));
  else if (type == DType::F64)
    bits = std::bit_cast<std::uint64_t>(x);
  else if (type == DType::F32)
    bits = std::bit_cast<std::uint32_t>(static_cast<float>(x));
  else
    bits = hlo::encode_float(hlo::float_format(type), x);
  std::memcpy(literal.mutable_bytes().data() + static_cast<std::size_t>(n) * width, &bits, width);
}

/// Equal numbers with equal signs; any NaN is as good as any other.
inline void expect_equal(const hlo::Literal& got, const hlo::Literal& want) {
  ASSERT_EQ(got.num_elements(), want.num_elements());
  std::int64_t different = 0;
  for (std::int64_t n = 0; n < got.num_elements(); ++n) {
    const double a = element_as_double(got, n), b = element_as_double(want, n);
    different += !((a == b && std::signbit(a) == std::signbit(b)) || (std::isnan(a) && std::isnan(b)));
  }
  EXPECT_EQ(different, 0) << "of " << got.num_elements();
}

}  // namespace hloom
