#include "buffers/webs.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"

namespace hloom::buffers {

Webs::Webs(const Flow& flow) : flow_(flow), parent_(static_cast<std::size_t>(flow.num_nodes())) {
  std::iota(parent_.begin(), parent_.end(), 0);
  for (NodeId n = 0; n < flow.num_nodes(); ++n) {
    live_.push_back(flow.live(n));
    pins_.push_back(flow.pin(n));
    members_.push_back({n});
    bytes_.push_back(flow.bytes(n));
  }
  offsets_.resize(members_.size());
  // A donated parameter is read for the last time before the results are written.
  for (NodeId n = 0; n < static_cast<NodeId>(flow.values().size()); ++n) {
    const Pin p = flow.pin(n);
    if (p.kind == Pin::Kind::Parameter && flow.aliased_result(p.number) >= 0)
      join(n, flow.result_node(flow.aliased_result(p.number)));
  }
}

NodeId Webs::find(NodeId n) const {
  while (parent_[static_cast<std::size_t>(n)] != n) {
    NodeId& up = parent_[static_cast<std::size_t>(n)];
    up = parent_[static_cast<std::size_t>(up)];
    n = up;
  }
  return n;
}

Webs::Conflict Webs::conflict(NodeId a, NodeId b) const {
  if (find(a) == find(b)) return offset(a) == offset(b) ? Conflict::None : Conflict::Size;
  if (flow_.bytes(a) != flow_.bytes(b)) return Conflict::Size;
  return conflict_at(a, b, 0, false);
}

// With `a` at byte `offset` of `b`. `may_read`: nobody writes there.
Webs::Conflict Webs::conflict_at(NodeId a, NodeId b, std::int64_t offset_in_b, bool may_read) const {
  const std::int64_t shift = offset_in_b + offset(b) - offset(a);  // of a's web in b's
  if (find(a) == find(b)) return shift == 0 ? Conflict::None : Conflict::Size;
  const Pin p = pin(a), q = pin(b);
  if (p.kind != Pin::Kind::None && q.kind != Pin::Kind::None && p != q) return Conflict::Pin;
  const bool sticks_out = shift < 0 || shift + bytes(a) > bytes(b), holds = shift <= 0 && shift + bytes(a) >= bytes(b);
  if ((p.kind != Pin::Kind::None && !holds) || (q.kind != Pin::Kind::None && sticks_out)) return Conflict::Pin;
  if (!may_read && (is_read_only(a) || is_read_only(b))) return Conflict::ReadOnly;
  return lives_conflict(a, b, shift) ? Conflict::Life : Conflict::None;
}

bool Webs::is_read_only(NodeId n) const {
  const Pin p = pin(n);
  return p.kind == Pin::Kind::Constant || (p.kind == Pin::Kind::Parameter && !flow_.is_donated(p.number));
}

// Lives may share single points at which one is read element by element for the other.
bool Webs::lives_conflict(NodeId a, NodeId b, std::int64_t shift) const {
  if (!same_.empty()) {
    const auto clashes = [&](NodeId x, NodeId y) { return clash_at(x, offset(x) + shift, y, offset(y)); };
    return overlap(live(a), live(b)) && std::ranges::any_of(members(a), [&](NodeId x) {
             return std::ranges::any_of(members(b), [&](NodeId y) { return clashes(x, y); });
           });
  }
  for (const Interval& shared : intersection(live(a), live(b)))
    if (shared.end - shared.begin > 1 || !may_all_meet(a, b, shared.begin)) return true;
  return false;
}

bool Webs::may_all_meet(NodeId a, NodeId b, Point at) const {
  for (const NodeId x : members(a)) {
    if (!flow_.live(x).contains(at)) continue;
    for (const NodeId y : members(b))
      if (flow_.live(y).contains(at) && !flow_.may_meet(x, y, at)) return false;
  }
  return true;
}

// Alive together where they overlap, and neither the same nor read for each other.
bool Webs::clash_at(NodeId x, std::int64_t at, NodeId y, std::int64_t other_at) const {
  if (at >= other_at + flow_.bytes(y) || other_at >= at + flow_.bytes(x)) return false;
  for (const Interval& shared : intersection(flow_.live(x), flow_.live(y))) {
    const bool meet = at == other_at && shared.end - shared.begin == 1 && flow_.may_meet(x, y, shared.begin);
    if (!meet) return !hold_the_same(x, at, y, other_at);
  }
  return false;
}

// --- Parts ---------------------------------------------------------------------------------------------------------

std::vector<Webs::Same> Webs::same(NodeId n) const {
  const auto found = same_.find(n);
  return found != same_.end() ? found->second : std::vector<Same>{{0, flow_.bytes(n), n, 0}};
}

bool Webs::hold_the_same(NodeId x, std::int64_t at, NodeId y, std::int64_t other_at) const {
  if (!same_.contains(x) && !same_.contains(y)) return false;
  for (const Same& s : same(x))
    for (const Same& t : same(y)) {
      const std::int64_t begin = at + s.at, other = other_at + t.at;
      if (begin >= other + t.bytes || other >= begin + s.bytes) continue;
      if (s.base != t.base || s.base_at - begin != t.base_at - other) return false;
    }
  return true;
}

// Of a concatenate the whole is all of its parts; a slice is what lies there in its operand.
void Webs::note_parts(std::span<const Edge> edges) {
  const NodeId made = edges.front().to;
  std::vector<Same> stretches;
  for (const Edge& edge : edges)
    for (const Same& s : same(edge.from)) {
      const std::int64_t begin = std::max<std::int64_t>(s.at + edge.offset, 0);
      const std::int64_t end = std::min(s.at + s.bytes + edge.offset, flow_.bytes(made));
      if (begin < end) stretches.push_back({begin, end - begin, s.base, s.base_at + begin - s.at - edge.offset});
    }
  same_[made] = std::move(stretches);
}

Webs::Conflict Webs::join_parts(std::span<const Edge> edges) {
  const Webs before = *this;
  note_parts(edges);
  for (const Edge& edge : edges) {
    const bool is_slice = edge.offset < 0 || flow_.bytes(edge.from) > flow_.bytes(edge.to);
    Conflict found = conflict_at(edge.from, edge.to, edge.offset, is_slice && members(edge.to).size() == 1);
    if (found == Conflict::None && is_slice && members(edge.to).size() > 1) found = Conflict::Life;
    if (found != Conflict::None) {
      restore(before);
      return found;
    }
    join_at(edge.from, edge.to, edge.offset);
  }
  return Conflict::None;
}

void Webs::restore(const Webs& before) {
  parent_ = before.parent_;
  live_ = before.live_;
  pins_ = before.pins_;
  members_ = before.members_;
  bytes_ = before.bytes_;
  offsets_ = before.offsets_;
  same_ = before.same_;
}

void Webs::join(NodeId a, NodeId b) { join_at(a, b, 0); }

void Webs::join_at(NodeId a, NodeId b, std::int64_t offset_in_b) {
  const std::int64_t shift = offset_in_b + offset(b) - offset(a);
  a = find(a);
  b = find(b);
  if (a == b) return;
  const std::int64_t begin = std::min<std::int64_t>(shift, 0), end = std::max(bytes(b), shift + bytes(a));
  for (const NodeId n : members(a)) offsets_[static_cast<std::size_t>(n)] += shift - begin;
  for (const NodeId n : members(b)) offsets_[static_cast<std::size_t>(n)] -= begin;
  if (members_[static_cast<std::size_t>(a)].size() < members_[static_cast<std::size_t>(b)].size()) std::swap(a, b);
  parent_[static_cast<std::size_t>(b)] = a;
  bytes_[static_cast<std::size_t>(a)] = end - begin;
  auto& members = members_[static_cast<std::size_t>(a)];
  auto& moved = members_[static_cast<std::size_t>(b)];
  members.insert(members.end(), moved.begin(), moved.end());
  moved.clear();
  live_[static_cast<std::size_t>(a)] = united(live_[static_cast<std::size_t>(a)], live_[static_cast<std::size_t>(b)]);
  live_[static_cast<std::size_t>(b)] = Intervals();
  if (pins_[static_cast<std::size_t>(a)].kind == Pin::Kind::None)
    pins_[static_cast<std::size_t>(a)] = pins_[static_cast<std::size_t>(b)];
}

std::pair<NodeId, NodeId> Webs::clash(NodeId a, NodeId b) const {
  const std::int64_t shift = offset(b) - offset(a);
  for (const NodeId x : members(a))
    for (const NodeId y : members(b))
      if (clash_at(x, offset(x) + shift, y, offset(y))) return {x, y};
  HLOOM_CHECK(false);
  return {a, b};
}

}  // namespace hloom::buffers
