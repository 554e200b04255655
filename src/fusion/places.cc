#include "fusion/places.h"

#include <algorithm>
#include <functional>

#include "fusion/cost.h"
#include "hlo/opcode.h"

namespace hloom::fusion {
namespace {

using hlo::Instruction;
using hlo::Opcode;

constexpr std::uint64_t kOwn = 0;  // where the result is written

// The finaliser of SplitMix64, which spreads each bit (Steele, Lea and Flood 2014).
std::uint64_t spread(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// How `user` goes from a place to where it reads operand k. Slices that are written twice lead to one place.
std::uint64_t way(const Instruction& user, std::int64_t k) {
  if (user.opcode() != Opcode::Slice) return spread(std::hash<const Instruction*>()(&user) ^ spread(static_cast<std::uint64_t>(k)));
  const auto& slice = user.attr<hlo::SliceAttr>();
  std::uint64_t h = 1;
  for (const auto* numbers : {&slice.starts, &slice.strides})
    for (const std::int64_t n : *numbers) h = spread(h ^ static_cast<std::uint64_t>(n));
  return h;
}

// The share of a user's elements that operand k has.
double share(const Instruction& user, std::int64_t k) {
  if (!is_of_pieces(user) || user.shape().num_elements() == 0) return 1;
  return std::min(1.0, static_cast<double>(user.operand(k)->shape().num_elements()) / static_cast<double>(user.shape().num_elements()));
}

}  // namespace

bool spreads(const Instruction& i) {
  return i.opcode() == Opcode::Pad && std::ranges::any_of(i.attr<hlo::PadAttr>().dims, [](const hlo::PadDim& d) { return d.interior > 0; });
}

Places::Weights Places::of_users(const Instruction& i) const {
  Weights weights;
  for (const Instruction* user : i.users()) {
    const auto found = places_.find(user);
    if (found == places_.end()) continue;
    for (std::int64_t k = 0; k < user->num_operands(); ++k) {
      if (user->operand(k) != &i) continue;
      const bool stays = hlo::is_elementwise(user->opcode());
      for (const auto& [place, weight] : found->second) {
        double& own = weights[stays ? place : spread(place ^ way(*user, k))];
        own = std::max(own, weight * share(*user, k));
      }
    }
  }
  return weights;
}

bool Places::is_read_spread(const Instruction& i) const {
  return std::ranges::any_of(i.users(), [&](const Instruction* user) {
    return spread_.contains(user) || (places_.contains(user) && spreads(*user));
  });
}

void Places::set(const Instruction& i, Weights weights) {
  if (is_read_spread(i)) spread_.insert(&i);
  Weights& own = places_[&i];
  total_ += weights.size() - own.size();
  own = std::move(weights);
}

void Places::add(const Instruction& i) { set(i, of_users(i)); }

void Places::add_root(const Instruction& i) {
  Weights weights = of_users(i);
  weights[kOwn] = 1;
  set(i, std::move(weights));
}

Places::Count Places::count(const Instruction& i) const {
  Count count{.spread = is_read_spread(i)};
  for (const auto& [place, weight] : of_users(i)) {
    ++count.places;
    count.elements += weight;
  }
  return count;
}

}  // namespace hloom::fusion
