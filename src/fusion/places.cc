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

// Whether along a dimension there is something between elements of the operand, or between lines of several operands.
bool is_broken(const Instruction& i, std::int64_t d) {
  return i.opcode() == Opcode::Pad ? i.attr<hlo::PadAttr>().dims[static_cast<std::size_t>(d)].interior > 0 : i.dimensions()[0] == d;
}

// The shortest stretch of a concatenation's operand there.
std::int64_t piece(const Instruction& i, std::int64_t d) {
  std::int64_t shortest = i.shape().dim(d);
  for (const Instruction* o : i.operands()) shortest = std::min(shortest, o->shape().dim(d));
  return shortest;
}

}  // namespace

bool spreads(const Instruction& i) {
  constexpr std::int64_t kShortRun = 16;
  if (!is_of_pieces(i)) return false;
  std::int64_t inner = 1;
  for (const std::int64_t d : i.shape().layout().minor_to_major) {
    // Padding inside doubles the parts that a kernel's loops fall into, however long its runs are.
    if (is_broken(i, d)) return i.opcode() == Opcode::Pad || (inner * piece(i, d) < kShortRun && inner * i.shape().dim(d) < i.shape().num_elements());
    inner *= i.shape().dim(d);
  }
  return false;
}

Places::Weights Places::of_users(const Instruction& i) const {
  Weights weights;
  for (const Instruction* user : i.users()) {
    const auto found = places_.find(user);
    if (found == places_.end()) continue;
    for (std::int64_t k = 0; k < user->num_operands(); ++k) {
      if (user->operand(k) != &i) continue;
      const bool stays = hlo::is_elementwise(user->opcode());
      for (const auto& [place, weight] : found->second.weights) {
        double& own = weights[stays ? place : spread(place ^ way(*user, k))];
        own = std::max(own, weight * share(*user, k));
      }
    }
  }
  return weights;
}

int Places::spread_by_users(const Instruction& i) const {
  int most = 0;
  for (const Instruction* user : i.users())
    if (const auto found = places_.find(user); found != places_.end()) most = std::max(most, found->second.spread + (spreads(*user) ? 1 : 0));
  return most;
}

void Places::set(const Instruction& i, Weights weights) {
  Member& own = places_[&i];
  total_ += weights.size() - own.weights.size();
  own = {std::move(weights), spread_by_users(i)};
}

void Places::add(const Instruction& i) { set(i, of_users(i)); }

void Places::add_root(const Instruction& i) {
  Weights weights = of_users(i);
  weights[kOwn] = 1;
  set(i, std::move(weights));
}

Places::Count Places::count(const Instruction& i) const {
  Count count{.spread = spread_by_users(i)};
  for (const auto& [place, weight] : of_users(i)) {
    ++count.places;
    count.elements += weight;
  }
  return count;
}

}  // namespace hloom::fusion
