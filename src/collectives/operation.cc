#include "collectives/operation.h"

#include <numeric>
#include <sstream>

namespace hloom::collectives {
namespace {

std::string text(const std::vector<std::vector<std::int64_t>>& groups) {
  std::string result = "{";
  for (const auto& group : groups) {
    result += result.size() > 1 ? ",{" : "{";
    for (std::size_t i = 0; i < group.size(); ++i) result.append(i > 0 ? "," : "").append(std::to_string(group[i]));
    result += "}";
  }
  return result + "}";
}

template <typename Value>
std::string both(const char* what, const Value& a, const Value& b) {
  std::ostringstream out;
  out << what << ' ' << a << " against " << b;
  return std::move(out).str();
}

std::int64_t bytes(const Array& array) { return array.rows * array.piece_bytes; }

// The one that stands for all that are joined with it.
std::size_t find(std::vector<std::size_t>& parent, std::size_t i) {
  while (parent[i] != i) i = parent[i] = parent[parent[i]];
  return i;
}

}  // namespace

std::int64_t Operation::num_operands() const {
  if (kind == Kind::Ragged) return 6;
  if (kind == Kind::Send || kind == Kind::Take) return 0;
  return static_cast<std::int64_t>(arrays.size()) + (root_is_data ? 1 : 0);
}

const std::vector<std::int64_t>& Operation::group_of(std::int64_t device) const {
  static const std::vector<std::int64_t> nobody;
  const Member& m = member(device);
  return m.group < 0 ? nobody : groups[static_cast<std::size_t>(m.group)];
}

void set_groups(Operation& operation, std::vector<std::vector<std::int64_t>> groups, std::int64_t num_devices) {
  operation.groups = std::move(groups);
  operation.members.assign(static_cast<std::size_t>(num_devices), {});
  for (std::size_t g = 0; g < operation.groups.size(); ++g)
    for (std::size_t r = 0; r < operation.groups[g].size(); ++r)
      operation.members[static_cast<std::size_t>(operation.groups[g][r])] = {static_cast<std::int32_t>(g),
                                                                             static_cast<std::int32_t>(r)};
}

void set_pairs(Operation& operation, const std::vector<std::pair<std::int64_t, std::int64_t>>& pairs,
               std::int64_t num_devices) {
  const auto n = static_cast<std::size_t>(num_devices);
  operation.sources.assign(n, -1);
  std::vector<std::size_t> parent(n);
  std::iota(parent.begin(), parent.end(), std::size_t{0});
  for (const auto& [source, target] : pairs) {
    operation.sources[static_cast<std::size_t>(target)] = source;
    const std::size_t a = find(parent, static_cast<std::size_t>(source)),
                      b = find(parent, static_cast<std::size_t>(target));
    parent[std::max(a, b)] = std::min(a, b);
  }
  std::vector<std::vector<std::int64_t>> joined(n);
  for (std::size_t k = 0; k < n; ++k) joined[find(parent, k)].push_back(static_cast<std::int64_t>(k));
  std::erase_if(joined, [](const auto& group) { return group.empty(); });
  set_groups(operation, std::move(joined), num_devices);
}

void set_transfer(Operation& operation, const std::vector<std::pair<std::int64_t, std::int64_t>>& pairs,
                  std::int64_t num_devices) {
  set_groups(operation, {}, num_devices);
  operation.sources.assign(static_cast<std::size_t>(num_devices), -1);
  operation.targets = operation.sources;
  for (const auto& [source, target] : pairs) {
    operation.sources[static_cast<std::size_t>(target)] = source;
    operation.targets[static_cast<std::size_t>(source)] = target;
  }
}

std::optional<std::string> difference(const Operation& a, const Operation& b) {
  if (&a == &b) return std::nullopt;
  if (a.name != b.name) return both("instruction", a.name, b.name);
  if (a.kind != b.kind) return both("kind of collective", static_cast<int>(a.kind), static_cast<int>(b.kind));
  if (a.groups != b.groups) return both("groups", text(a.groups), text(b.groups));
  if (a.sources != b.sources) return both("sources", text({a.sources}), text({b.sources}));
  if (a.arrays.size() != b.arrays.size()) return both("number of arrays", a.arrays.size(), b.arrays.size());
  for (std::size_t i = 0; i < a.arrays.size(); ++i) {
    const std::string array = "array " + std::to_string(i) + ": ";
    if (bytes(a.arrays[i]) != bytes(b.arrays[i])) return array + both("bytes", bytes(a.arrays[i]), bytes(b.arrays[i]));
    if (a.arrays[i].rows != b.arrays[i].rows) return array + both("rows", a.arrays[i].rows, b.arrays[i].rows);
  }
  if (a.root_is_data != b.root_is_data) return both("root given by data", a.root_is_data, b.root_is_data);
  if (a.row_bytes != b.row_bytes) return both("bytes of a row", a.row_bytes, b.row_bytes);
  if (a.ragged_entries != b.ragged_entries) return both("pieces for a member", a.ragged_entries, b.ragged_entries);
  return std::nullopt;
}

}  // namespace hloom::collectives
