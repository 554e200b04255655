// Sorting (hlo-ops 7.6, 7.7), always stable. The merge sort is our own because it must end, and stay inside its arrays,
// for every comparator, also one that contradicts itself.

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/try.h"
#include "interp/index.h"
#include "interp/ops.h"
#include "interp/scalar_function.h"
#include "interp/sums.h"
#include "interp/total_order.h"

namespace hloom::interp {
namespace {

using hlo::Literal;
using Order = std::vector<std::int64_t>;

// Sorts order[begin, end) by before(a, b); where neither is before the other, the left one stays left.
template <typename Before>
void merge_sort(Order& order, Order& spare, std::size_t begin, std::size_t end, const Before& before) {
  if (end - begin < 2) return;
  const std::size_t middle = begin + (end - begin) / 2;
  merge_sort(order, spare, begin, middle, before);
  merge_sort(order, spare, middle, end, before);
  std::size_t a = begin, b = middle;
  for (std::size_t to = begin; to < end; ++to) {
    const bool right = a == middle || (b < end && before(order[b], order[a]));
    spare[to] = order[right ? b++ : a++];
  }
  std::copy(spare.begin() + static_cast<std::ptrdiff_t>(begin), spare.begin() + static_cast<std::ptrdiff_t>(end),
            order.begin() + static_cast<std::ptrdiff_t>(begin));
}

template <typename Before>
Order sorted(std::int64_t n, const Before& before) {
  Order order(static_cast<std::size_t>(n)), spare(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  merge_sort(order, spare, 0, order.size(), before);
  return order;
}

// One line along the sorted dimension of each operand, as it starts at `at` with this stride.
struct Lines {
  const std::vector<const std::byte*>& from;
  const std::vector<std::int64_t>& widths;
  std::int64_t at, stride;
  const std::byte* element(std::size_t k, std::int64_t i) const { return from[k] + (at + i * stride) * widths[k]; }
};

Expected<Order> sort_line(ScalarFunction& comparator, const Lines& lines, std::int64_t n) {
  std::vector<const std::byte*> in(2 * lines.from.size());
  Expected<> good;
  Order order = sorted(n, [&](std::int64_t a, std::int64_t b) {
    for (std::size_t k = 0; k < lines.from.size(); ++k) {
      in[2 * k] = lines.element(k, a);
      in[2 * k + 1] = lines.element(k, b);
    }
    std::byte is_before{0};
    std::byte* out[] = {&is_before};
    if (good) good = comparator(out, in.data(), 1);
    return is_before != std::byte{0};
  });
  TRY(std::move(good));
  return order;
}

// An integer in the order of the elements: totalOrder for floats.
std::int64_t order_key(const Literal& literal, std::int64_t i) {
  if (is_floating(literal.dtype())) return TotalOrder(literal.dtype()).load(literal.bytes().data(), i);
  const std::int64_t value = hlo::element_as_int64(literal, i);
  return literal.dtype() == DType::U64 ? static_cast<std::int64_t>(static_cast<std::uint64_t>(value) ^ (1ull << 63))
                                       : value;
}

}  // namespace

Expected<std::vector<Literal>> sort_arrays(ScalarFunction& comparator, std::span<const Value> arrays,
                                           std::int64_t dimension) {
  const Dims& dims = arrays[0].array().shape().dims();
  const Strided whole{0, row_major(dims)};
  std::vector<Literal> results;
  std::vector<const std::byte*> from;
  std::vector<std::byte*> to;
  std::vector<std::int64_t> widths;
  for (const Value& operand : arrays) {
    results.emplace_back(operand.array().shape());
    from.push_back(operand.array().bytes().data());
    widths.push_back(byte_width(operand.array().dtype()));
  }
  for (Literal& result : results) to.push_back(result.mutable_bytes().data());
  const auto d = static_cast<std::size_t>(dimension);
  Dims lines = dims;
  const std::int64_t n = lines[d], stride = whole.strides[d];
  lines[d] = n == 0 ? 0 : 1;
  Expected<> good;
  walk<1>(lines, {whole}, [&](const std::array<std::int64_t, 1>& at) {
    if (!good) return;
    auto order = sort_line(comparator, {from, widths, at[0], stride}, n);
    if (!order) {
      good = std::move(order).error();
      return;
    }
    for (std::size_t k = 0; k < to.size(); ++k)
      for (std::int64_t i = 0; i < n; ++i)
        std::memcpy(to[k] + (at[0] + i * stride) * widths[k],
                    from[k] + (at[0] + (*order)[static_cast<std::size_t>(i)] * stride) * widths[k],
                    static_cast<std::size_t>(widths[k]));
  });
  TRY(std::move(good));
  return results;
}

Expected<Value> sort(const Call& call) {
  ScalarFunction& comparator = call.machine.scalar_function(*call.instruction.to_apply());
  std::vector<Literal> results = TRY(sort_arrays(comparator, call.operands, call.instruction.dimension(0)));
  return tuple_unless_one(std::move(results));
}

Value top_k(const Literal& operand, std::int64_t k, bool largest, const Shape& shape) {
  const std::int64_t n = operand.shape().dims().back(), width = byte_width(operand.dtype());
  Literal values(shape.element(0)), indices(shape.element(1));
  const std::int64_t lines = n == 0 ? 0 : operand.num_elements() / n;
  std::vector<std::int64_t> keys(static_cast<std::size_t>(n));
  const auto indices_out = indices.mutable_data<std::int32_t>();
  for (std::int64_t line = 0; line < lines; ++line) {
    for (std::int64_t i = 0; i < n; ++i) keys[static_cast<std::size_t>(i)] = order_key(operand, line * n + i);
    const Order order = sorted(n, [&](std::int64_t a, std::int64_t b) {
      const std::int64_t x = keys[static_cast<std::size_t>(a)], y = keys[static_cast<std::size_t>(b)];
      return largest ? x > y : x < y;
    });
    for (std::int64_t i = 0; i < k; ++i) {
      const std::int64_t chosen = order[static_cast<std::size_t>(i)];
      std::memcpy(values.mutable_bytes().data() + (line * k + i) * width,
                  operand.bytes().data() + (line * n + chosen) * width, static_cast<std::size_t>(width));
      indices_out[static_cast<std::size_t>(line * k + i)] = static_cast<std::int32_t>(chosen);
    }
  }
  std::vector<Literal> results{std::move(values), std::move(indices)};
  return tuple_unless_one(std::move(results));
}

Expected<Value> topk(const Call& call) {
  const auto& attr = call.instruction.attr<hlo::TopKAttr>();
  return top_k(call.array(0), attr.k, attr.largest, call.shape);
}

}  // namespace hloom::interp
