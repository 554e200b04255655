#include "kernels/follow_split.h"

#include <algorithm>

namespace hloom::kernels {
namespace {

// The loop that shares out the grid, or null.
const Loop* shared_loop(const Kernel& kernel) {
  for (const Statement& s : kernel.body)
    if (const auto* loop = std::get_if<Loop>(&s.of); loop != nullptr && loop->block > 0) return loop;
  return nullptr;
}

// The longest dimension from the outside in that has more than one index.
std::int64_t outermost(const Shape& shape) {
  const auto& order = shape.layout().minor_to_major;
  const auto found = std::find_if(order.rbegin(), order.rend(), [&](std::int64_t d) { return shape.dim(d) > 1; });
  return found == order.rend() ? -1 : *found;
}

std::int64_t blocks_of(const Loop& loop) { return (loop.to - loop.from + loop.block - 1) / loop.block; }

// About how many statements a loop runs.
double work_of(const Loop* loop) {
  double body = 0;
  for (const Statement& s : loop->body) {
    const auto* inner = std::get_if<Loop>(&s.of);
    body += inner == nullptr ? 1 : work_of(inner);
  }
  return body * static_cast<double>(loop->to - loop->from) / std::max(loop->lanes, 1);
}

}  // namespace

std::int64_t parts_of(const Shape& result) {
  const auto& splits = result.layout().parts().splits;
  if (splits.empty() || splits[0].dimension != outermost(result)) return 1;
  const auto parts = static_cast<std::int64_t>(splits[0].indices.size()) + 1;
  return parts > kMaxParts ? 1 : parts;
}

void even_blocks(Kernel& kernel) {
  std::vector<Loop*> shared;
  for (Statement& s : kernel.body)
    if (auto* loop = std::get_if<Loop>(&s.of); loop != nullptr && loop->block > 0) shared.push_back(loop);
  if (shared.empty() || std::ranges::any_of(shared, [](const Loop* l) { return l->first_block > 0; })) return;
  const Loop* longest = *std::ranges::max_element(shared, {}, work_of);
  const std::int64_t blocks = blocks_of(*longest);
  if (blocks == 0) return;
  kernel.blocks = blocks;
  for (Loop* loop : shared) {
    if (blocks_of(*loop) <= blocks) continue;
    const std::int64_t block = (loop->to - loop->from + blocks - 1) / blocks, step = std::max(loop->lanes, 1);
    loop->block = (block + step - 1) / step * step;
  }
}

void follow_split(Kernel& kernel, const Shape& result) {
  const std::int64_t parts = parts_of(result);
  const Loop* loop = shared_loop(kernel);
  if (parts == 1 || loop == nullptr || parts > kernel.blocks) return;
  const Layout::Split& split = result.layout().parts().splits[0];
  const std::int64_t count = loop->to - loop->from, extent = result.dim(split.dimension);
  for (std::int64_t p = 1; p < parts; ++p) {
    const std::int64_t step = split.indices[static_cast<std::size_t>(p - 1)] * count / extent;
    const std::int64_t nearest = (step + loop->block / 2) / loop->block;
    const std::int64_t before = kernel.cuts.empty() ? 0 : kernel.cuts.back();
    kernel.cuts.push_back(std::clamp(nearest, before + 1, kernel.blocks - parts + p));
  }
}

}  // namespace hloom::kernels
