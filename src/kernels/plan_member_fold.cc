#include "kernels/plan_member_fold.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "base/check.h"
#include "base/try.h"
#include "hlo/reduce_order.h"
#include "kernels/elements.h"
#include "kernels/follow_split.h"

namespace hloom::kernels {
namespace {

constexpr std::int64_t kBlockBytes = 16 * 1024;  // of a result; below this a member does it all alone
constexpr std::int64_t kMostBlocks = 256;

using hlo::Opcode;

class Planner {
 public:
  Planner(const MemberFold& fold, std::string name) : f_(fold), b_(std::move(name)) {
    const bool narrow = is_floating(f_.type) && bit_width(f_.type) < 32;
    wide_ = narrow && hlo::reducer_op(*f_.reducer) != Opcode::Tuple;
  }

  Expected<Kernel> plan() {
    const std::int64_t width = byte_width(f_.type);
    add_arguments("x", f_.members, f_.rows == 0 ? 0 : (f_.rows - 1) * f_.pitch + f_.columns, false);
    add_arguments("y", f_.results, f_.rows * f_.columns, true);
    const std::int64_t bytes = f_.rows * f_.columns * width;
    const std::int64_t blocks = std::clamp<std::int64_t>(bytes / kBlockBytes, 1, kMostBlocks);
    if (bytes > 0) TRY(loops(blocks));
    Kernel kernel = std::move(b_).finish();
    kernel.blocks = bytes > 0 ? blocks : 0;
    even_blocks(kernel);
    kernel.block_cost = bytes * (f_.members + f_.results) / std::max<std::int64_t>(kernel.blocks, 1);
    return kernel;
  }

 private:
  void add_arguments(const char* letter, std::int64_t count, std::int64_t elements, bool written) {
    for (std::int64_t k = 0; k < count; ++k)
      b_.kernel().arguments.push_back(
          {letter + std::to_string(k), f_.type, elements, written, byte_width(f_.type), false});
  }

  // The longer of rows and columns is what blocks are parts of; columns go by lanes.
  Expected<> loops(std::int64_t blocks) {
    const auto lanes = static_cast<int>(
        std::clamp<std::int64_t>(static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(f_.columns))), 2,
                                 64 / std::max<std::int64_t>(4, byte_width(f_.type))));
    const auto part = [&](std::int64_t extent, std::int64_t step) {
      if (blocks == 1) return std::int64_t{0};
      return ((extent + blocks - 1) / blocks + step - 1) / step * step;
    };
    Value row, column;
    if (f_.columns >= f_.rows) {
      column = b_.begin_loop(0, f_.columns, lanes, part(f_.columns, lanes));
      row = b_.begin_loop(0, f_.rows);
    } else {
      row = b_.begin_loop(0, f_.rows, 0, part(f_.rows, 1));
      column = b_.begin_loop(0, f_.columns, lanes);
    }
    const auto done = element(index_of(row), index_of(column));
    b_.end_loop();
    b_.end_loop();
    return done;
  }

  Expected<> element(const Index& row, const Index& column) {
    Elements elements(b_, [](std::int64_t, const ShapeIndex&, const Point&, Value) -> Expected<Value> {
      return Error(Code::Internal, "a fold has no parameters");
    });
    std::vector<Value> pair(2);
    for (std::int64_t m = 0; m < f_.members; ++m) {
      Value x = b_.load_linear(static_cast<int>(m), row * f_.pitch + column, f_.type);
      if (wide_) x = b_.line(Opcode::Convert, DType::F32, {x});
      if (m == 0) {
        pair[0] = x;
        continue;
      }
      pair[1] = x;
      pair[0] = wide_ ? b_.line(hlo::reducer_op(*f_.reducer), DType::F32, pair)
                      : TRY(elements.apply(*f_.reducer, pair))[0];
    }
    const Value result = wide_ ? b_.line(Opcode::Convert, f_.type, {pair[0]}) : pair[0];
    for (std::int64_t k = 0; k < f_.results; ++k)
      b_.store_linear(static_cast<int>(f_.members + k), row * f_.columns + column, result);
    return {};
  }

  const MemberFold& f_;
  Builder b_;
  bool wide_ = false;
};

}  // namespace

Expected<Kernel> plan_member_fold(const MemberFold& fold, std::string name) {
  HLOOM_CHECK(fold.members >= 1 && fold.results >= 1 && fold.pitch >= fold.columns);
  return Planner(fold, std::move(name)).plan();
}

}  // namespace hloom::kernels
