#include "kernels/squares.h"

#include <algorithm>
#include <bit>

namespace hloom::kernels {
namespace {

constexpr std::int64_t kSmallest = 4;       // squares smaller than that gain nothing
constexpr std::int64_t kLargest = 64;       // a register full of bytes
constexpr std::int64_t kWidestRest = 16;    // lanes of what is too small for squares
constexpr std::int64_t kMaxLines = 900;     // in the body of a loop: machine code is made in more than linear time
constexpr std::int64_t kVectorBytes = 64;
constexpr double kTurned = 2.5;             // memory operations that an access costs which is turned over
constexpr double kUniform = 0.5;

std::int64_t largest_square(std::int64_t rows, std::int64_t lanes) {
  return static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(std::min(rows, lanes))));
}

bool is_dense(std::int64_t stride) { return stride >= -1 && stride <= 1; }

// Of one element, in the units of the single loop by lanes; huge where squares change nothing.
double cost_of(const LoopStrides& rows, const LoopStrides& lanes, const Findings& findings, std::int64_t size) {
  double cost = 0.25;
  bool turns = false;
  for (std::size_t x = 0; x < findings.accesses.size(); ++x) {
    const Findings::Access& access = findings.accesses[x];
    const std::int64_t along_rows = rows.strides[x], along_lanes = lanes.strides[x];
    if (is_dense(along_lanes)) {
      cost += along_lanes == 0 ? kUniform : 1.0;
    } else if (along_rows == 1 && along_lanes != kAnywhere && !access.masked) {
      cost += kTurned;
      turns = true;
    } else {
      cost += static_cast<double>(size) * (access.is_store ? 2 : 1);
    }
  }
  if (!turns) return 1e30;
  return (cost + static_cast<double>(findings.num_lines)) / static_cast<double>(size);
}

std::int64_t widest_turned(const LoopStrides& rows, const LoopStrides& lanes, const Findings& findings) {
  std::int64_t widest = 1;
  for (std::size_t x = 0; x < findings.accesses.size(); ++x)
    if (!is_dense(lanes.strides[x]) && lanes.strides[x] != kAnywhere && rows.strides[x] == 1)
      widest = std::max(widest, findings.accesses[x].element_bytes);
  return widest;
}

// Squares beside each other that together are as long as four cache lines, if they divide the rest evenly.
std::int64_t side_by_side(std::int64_t squares, std::int64_t square_bytes) {
  std::int64_t wanted = std::max<std::int64_t>(1, 4 * kVectorBytes / square_bytes);
  while (squares % wanted != 0) --wanted;
  return wanted;
}

void cut(const SquareChoice& choice, Walk rows, Walk lanes, std::vector<SquarePart>& parts) {
  if (rows.count <= 0 || lanes.count <= 0) return;
  const std::int64_t size = std::min(choice.size, largest_square(rows.count, lanes.count));
  if (size < kSmallest) {
    lanes.lanes = static_cast<int>(
        std::clamp<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(lanes.count)), 2, kWidestRest));
    parts.push_back({0, {rows, lanes}});
    return;
  }
  const std::int64_t down = rows.count / size, across = lanes.count / size;
  const std::int64_t line = side_by_side(across, size * choice.line);
  parts.push_back({size,
                   {{1, lanes.from, across / line, size * line, 0},
                    {0, rows.from, down, size, 0},
                    {1, 0, line, size, 0},
                    {1, 0, size, 1, static_cast<int>(size)}}});
  cut(choice, rows, {1, lanes.from + across * size, lanes.count - across * size, 1, 0}, parts);
  cut(choice, {0, rows.from + down * size, rows.count - down * size, 1, 0}, {1, lanes.from, across * size, 1, 0}, parts);
}

}  // namespace

SquareChoice choose_square(const std::vector<LoopStrides>& loops, const Findings& findings, double cost) {
  SquareChoice best;
  if (findings.num_loops > 0) return best;
  for (std::size_t lanes = loops.size(); lanes-- > 0;)
    for (std::size_t rows = loops.size(); rows-- > 0;) {
      if (rows == lanes) continue;
      const std::int64_t bytes = widest_turned(loops[rows], loops[lanes], findings);
      std::int64_t size = std::min({kLargest, std::max(kSmallest, kVectorBytes / bytes),
                                    largest_square(loops[rows].extent, loops[lanes].extent)});
      while (size >= kSmallest && size * findings.num_lines > kMaxLines) size /= 2;
      if (size < kSmallest) continue;
      const double own = cost_of(loops[rows], loops[lanes], findings, size);
      if (own >= cost * 0.99) continue;
      cost = own;
      best = {rows, lanes, size, bytes};
    }
  return best;
}

std::vector<SquarePart> square_parts(const SquareChoice& choice, std::int64_t rows, std::int64_t lanes) {
  std::vector<SquarePart> parts;
  cut(choice, {0, 0, rows, 1, 0}, {1, 0, lanes, 1, 0}, parts);
  return parts;
}

}  // namespace hloom::kernels
