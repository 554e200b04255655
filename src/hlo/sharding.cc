#include "hlo/sharding.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"

namespace hloom::hlo {
namespace {

// Row-major coordinates of `linear` in `dims`.
std::vector<std::int64_t> coordinates(std::int64_t linear, const std::vector<std::int64_t>& dims) {
  std::vector<std::int64_t> at(dims.size());
  for (std::size_t d = dims.size(); d-- > 0;) {
    at[d] = linear % dims[d];
    linear /= dims[d];
  }
  return at;
}

std::int64_t product(const std::vector<std::int64_t>& dims) {
  return std::accumulate(dims.begin(), dims.end(), std::int64_t{1}, std::multiplies<>());
}

std::int64_t linear_index(const std::vector<std::int64_t>& at, const std::vector<std::int64_t>& dims) {
  std::int64_t linear = 0;
  for (std::size_t d = 0; d < dims.size(); ++d) linear = linear * dims[d] + at[d];
  return linear;
}

std::vector<std::vector<std::int64_t>> cut(const std::vector<std::int64_t>& ids, std::int64_t size) {
  std::vector<std::vector<std::int64_t>> groups;
  for (auto at = ids.begin(); at != ids.end(); at += size) groups.emplace_back(at, at + size);
  return groups;
}

// Where an axis stands among the mesh's axes after each split one is cut into (pre, size, rest).
struct Factor {
  std::size_t axis;
  std::int64_t pre, size;
};

std::vector<std::vector<std::int64_t>> expand_mesh(const Mesh& mesh, const std::vector<MeshAxis>& axes) {
  std::vector<std::int64_t> dims;
  for (const auto& [name, size] : mesh.axes) dims.push_back(size);
  std::vector<std::int64_t> ids = mesh.device_ids;
  if (mesh.device_iota) ids = mesh.device_iota->expand();
  if (ids.empty()) {
    ids.resize(static_cast<std::size_t>(product(dims)));
    std::iota(ids.begin(), ids.end(), 0);
  }
  std::vector<Factor> factors;
  for (const MeshAxis& axis : axes) {
    const auto found = std::ranges::find(mesh.axes, axis.name, &std::pair<std::string, std::int64_t>::first);
    HLOOM_CHECK(found != mesh.axes.end());
    const auto number = static_cast<std::size_t>(found - mesh.axes.begin());
    factors.push_back({number, axis.pre == 0 ? 1 : axis.pre, axis.pre == 0 ? found->second : axis.size});
  }
  // Digit of a coordinate along a factor, and the coordinate with that digit taken out.
  const auto digit = [&](const std::vector<std::int64_t>& at, const Factor& f) {
    return at[f.axis] / (dims[f.axis] / (f.pre * f.size)) % f.size;
  };
  std::vector<std::pair<std::pair<std::int64_t, std::int64_t>, std::int64_t>> keyed;  // ((group, rank), id)
  for (std::int64_t linear = 0; linear < product(dims); ++linear) {
    std::vector<std::int64_t> at = coordinates(linear, dims);
    std::int64_t rank = 0;
    for (const Factor& f : factors) rank = rank * f.size + digit(at, f);
    for (const Factor& f : factors) at[f.axis] -= digit(at, f) * (dims[f.axis] / (f.pre * f.size));
    keyed.push_back({{linear_index(at, dims), rank}, ids[static_cast<std::size_t>(linear)]});
  }
  std::ranges::sort(keyed);
  std::vector<std::int64_t> ordered;
  for (const auto& [key, id] : keyed) ordered.push_back(id);
  std::int64_t size = 1;
  for (const Factor& f : factors) size *= f.size;
  return cut(ordered, size);
}

}  // namespace

std::vector<std::int64_t> IotaList::expand() const {
  std::vector<std::int64_t> order = perm;
  if (order.empty()) {
    order.resize(dims.size());
    std::iota(order.begin(), order.end(), 0);
  }
  std::vector<std::int64_t> transposed;
  for (const std::int64_t d : order) transposed.push_back(dims[static_cast<std::size_t>(d)]);
  std::vector<std::int64_t> ids;
  for (std::int64_t linear = 0; linear < product(dims); ++linear) {
    const std::vector<std::int64_t> to = coordinates(linear, transposed);
    std::vector<std::int64_t> from(dims.size());
    for (std::size_t d = 0; d < order.size(); ++d) from[static_cast<std::size_t>(order[d])] = to[d];
    ids.push_back(linear_index(from, dims));
  }
  return ids;
}

std::vector<std::vector<std::int64_t>> ReplicaGroups::expand() const {
  switch (form) {
    case Form::Explicit: return groups;
    case Form::Iota: return cut(iota.expand(), group_size);
    case Form::Mesh: return expand_mesh(mesh, axes);
  }
  return {};
}

}  // namespace hloom::hlo
