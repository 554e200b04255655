// Loops over the places of elements: each is the sum of what its indices along the axes add.
#include "kernels/panel_order.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/check.h"

namespace hloom::kernels {
namespace {

std::int64_t count(const std::vector<PanelOrder::Axis>& axes) {
  std::int64_t n = 1;
  for (const auto& a : axes) n *= a.extent;
  return n;
}

// Elements from the first in memory, for each index along the axes, innermost fastest.
std::vector<std::int64_t> places(const std::vector<PanelOrder::Axis>& axes) {
  std::vector<std::int64_t> all = {0};
  for (const auto& a : axes) {
    std::vector<std::int64_t> next;
    next.reserve(all.size() * static_cast<std::size_t>(a.extent));
    const std::int64_t first = a.stride < 0 ? -a.stride * (a.extent - 1) : 0;
    for (const std::int64_t before : all)
      for (std::int64_t n = 0; n < a.extent; ++n) next.push_back(before + first + n * a.stride);
    all = std::move(next);
  }
  return all;
}

template <std::size_t kBytes>
void pack(const PanelOrder& o, const std::byte* from, std::byte* to) {
  const auto outer = places(o.outer), free = places({o.free}), steps = places(o.sums);
  const auto count = static_cast<std::int64_t>(free.size()), num_steps = static_cast<std::int64_t>(steps.size());
  for (const std::int64_t base : outer)
    for (std::int64_t first = 0; first < count; first += o.lanes) {
      const std::int64_t lanes = std::min(o.lanes, count - first);
      for (std::int64_t s = 0; s < num_steps; ++s) {
        std::byte* step = to + static_cast<std::size_t>((s / o.together * o.lanes) * o.together + s % o.together) * kBytes;
        const std::int64_t at = base + steps[static_cast<std::size_t>(s)];
        if (o.together == 1 && o.free.stride == 1) {
          std::memcpy(step, from + static_cast<std::size_t>(at + first) * kBytes, static_cast<std::size_t>(lanes) * kBytes);
          continue;
        }
        for (std::int64_t l = 0; l < lanes; ++l)
          std::memcpy(step + static_cast<std::size_t>(l * o.together) * kBytes,
                      from + static_cast<std::size_t>(at + free[static_cast<std::size_t>(first + l)]) * kBytes, kBytes);
      }
      to += static_cast<std::size_t>(o.pitch * o.lanes * o.together) * kBytes;
    }
}

}  // namespace

std::int64_t PanelOrder::num_outer() const { return count(outer); }
std::int64_t PanelOrder::num_steps() const { return count(sums); }

hlo::Dims PanelOrder::dims() const {
  hlo::Dims d = {num_outer(), num_panels(), pitch, lanes};
  if (together > 1) d.push_back(together);
  return d;
}

std::string to_string(const PanelOrder& o) {
  std::string s = std::to_string(o.lanes) + "x" + std::to_string(o.together) + " pitch " + std::to_string(o.pitch);
  const auto add = [&](const char* name, const std::vector<PanelOrder::Axis>& axes) {
    s += name;
    for (const auto& a : axes) s += " " + std::to_string(a.extent) + "*" + std::to_string(a.stride);
  };
  add(", outer", o.outer);
  add(", free", {o.free});
  add(", steps", o.sums);
  return s;
}

// Rows go side by side: no multiple of a large power of two, which would put all into the same cache sets.
std::int64_t panel_pitch(std::int64_t steps, bool by_lanes) { return by_lanes ? steps : (steps + 15) / 16 * 16 + 16; }

std::vector<std::byte> packed(const PanelOrder& order, std::span<const std::byte> array, std::int64_t element_bytes) {
  std::int64_t elements = 1;
  for (const std::int64_t d : order.dims()) elements *= d;
  std::vector<std::byte> panels(static_cast<std::size_t>(elements * element_bytes));
  switch (element_bytes) {
    case 1: pack<1>(order, array.data(), panels.data()); break;
    case 2: pack<2>(order, array.data(), panels.data()); break;
    case 4: pack<4>(order, array.data(), panels.data()); break;
    case 8: pack<8>(order, array.data(), panels.data()); break;
    default: HLOOM_CHECK(element_bytes == 16); pack<16>(order, array.data(), panels.data());
  }
  return panels;
}

}  // namespace hloom::kernels
