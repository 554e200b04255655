#include "buffers/webs.h"

#include <numeric>

#include "base/check.h"

namespace hloom::buffers {

Webs::Webs(const Flow& flow) : flow_(flow), parent_(static_cast<std::size_t>(flow.num_nodes())) {
  std::iota(parent_.begin(), parent_.end(), 0);
  for (NodeId n = 0; n < flow.num_nodes(); ++n) {
    live_.push_back(flow.live(n));
    pins_.push_back(flow.pin(n));
    members_.push_back({n});
  }
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
  if (find(a) == find(b)) return Conflict::None;
  if (flow_.bytes(a) != flow_.bytes(b)) return Conflict::Size;
  const Pin p = pin(a), q = pin(b);
  if (p.kind != Pin::Kind::None && q.kind != Pin::Kind::None && p != q) return Conflict::Pin;
  if (is_read_only(a) || is_read_only(b)) return Conflict::ReadOnly;
  return lives_conflict(a, b) ? Conflict::Life : Conflict::None;
}

bool Webs::is_read_only(NodeId n) const {
  const Pin p = pin(n);
  return p.kind == Pin::Kind::Constant || (p.kind == Pin::Kind::Parameter && !flow_.is_donated(p.number));
}

// Lives may share single points at which one is read element by element for the other.
bool Webs::lives_conflict(NodeId a, NodeId b) const {
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

void Webs::join(NodeId a, NodeId b) {
  a = find(a);
  b = find(b);
  if (a == b) return;
  if (members_[static_cast<std::size_t>(a)].size() < members_[static_cast<std::size_t>(b)].size()) std::swap(a, b);
  parent_[static_cast<std::size_t>(b)] = a;
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
  for (const NodeId x : members(a))
    for (const NodeId y : members(b))
      for (const Interval& shared : intersection(flow_.live(x), flow_.live(y)))
        if (shared.end - shared.begin > 1 || !flow_.may_meet(x, y, shared.begin)) return {x, y};
  HLOOM_CHECK(false);
  return {a, b};
}

}  // namespace hloom::buffers
