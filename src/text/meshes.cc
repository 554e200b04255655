// Meshes, axes and iota lists: what named shardings and replica groups share.
#include <algorithm>
#include <numeric>

#include "text/print_words.h"
#include "text/shardings.h"

namespace hloom::text {

using hlo::IotaList;
using hlo::Mesh;
using hlo::MeshAxis;

namespace {

constexpr std::int64_t kMostDevices = std::int64_t{1} << 31;

// The product, or -1 where a factor is below 1 or the product above kMostDevices.
std::int64_t device_product(const std::vector<std::int64_t>& dims) {
  std::int64_t product = 1;
  for (const std::int64_t d : dims) {
    if (d < 1 || d > kMostDevices || product * d > kMostDevices) return -1;
    product *= d;
  }
  return product;
}

bool is_permutation(const std::vector<std::int64_t>& perm) {
  std::vector<bool> seen(perm.size());
  for (const std::int64_t p : perm) {
    if (p < 0 || p >= static_cast<std::int64_t>(perm.size()) || seen[static_cast<std::size_t>(p)]) return false;
    seen[static_cast<std::size_t>(p)] = true;
  }
  return true;
}

// Drops dimensions of size 1 and merges dimensions that stay neighbours in order.
IotaList canonical(const std::vector<std::int64_t>& dims, const std::vector<std::int64_t>& perm) {
  // For each dimension of size > 1, in the order of the result: its number, and whether it continues the one before.
  std::vector<std::int64_t> kept;
  for (const std::int64_t p : perm)
    if (dims[static_cast<std::size_t>(p)] != 1) kept.push_back(p);
  std::vector<std::int64_t> rank_of(dims.size());
  std::int64_t rank = 0;
  for (std::size_t d = 0; d < dims.size(); ++d)
    if (dims[d] != 1) rank_of[d] = rank++;
  struct Run {
    std::int64_t first, size;
  };
  std::vector<Run> runs;
  std::int64_t last = -2;
  for (const std::int64_t p : kept) {
    const std::int64_t at = rank_of[static_cast<std::size_t>(p)];
    if (at == last + 1 && !runs.empty())
      runs.back().size *= dims[static_cast<std::size_t>(p)];
    else
      runs.push_back({at, dims[static_cast<std::size_t>(p)]});
    last = at;
  }
  std::vector<std::size_t> order(runs.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&](std::size_t r) { return runs[r].first; });
  IotaList list;
  list.perm.resize(runs.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    list.dims.push_back(runs[order[i]].size);
    list.perm[order[i]] = static_cast<std::int64_t>(i);
  }
  if (list.dims.empty()) list.dims = {1};
  if (list.perm.size() <= 1) list.perm.clear();
  return list;
}

}  // namespace

IotaList read_iota(Cursor& c) {
  const char* at = c.at();
  const std::vector<std::int64_t> dims = c.integers('[', ']', "a dimension");
  if (c.ok() && (dims.empty() || device_product(dims) < 0))
    c.fail("H522", at, "an iota list needs positive dimensions with a product of at most 2^31");
  std::vector<std::int64_t> perm(dims.size());
  std::iota(perm.begin(), perm.end(), 0);
  const char* t = c.at();
  if (c.eat_word("T")) {
    perm = c.integers('(', ')', "a dimension");
    if (c.ok() && (perm.size() != dims.size() || !is_permutation(perm)))
      c.fail("H525", t, words("T(…) is no permutation of 0 … ", static_cast<std::int64_t>(dims.size()) - 1));
  } else if (c.ok() && dims.size() > 1) {
    c.fail("H525", t, "several dimensions need T(…) after them");
  }
  return c.ok() ? canonical(dims, perm) : IotaList{};
}

namespace {

std::string read_axis_name(Cursor& c) {
  if (c.at_string()) return c.string("an axis");
  return std::string(c.take_word("the name of an axis"));
}

void read_axes_of_mesh(Cursor& c, Mesh& mesh) {
  c.list('[', ']', [&] {
    const char* at = c.at();
    std::string axis = read_axis_name(c);
    c.expect('=');
    const std::int64_t size = c.integer_between("the size of an axis", 1, kMostDevices);
    const bool digits = !axis.empty() && std::ranges::all_of(axis, [](char d) { return chars::is(d, chars::kDigit); });
    if (axis.empty() || digits) c.fail("H520", at, words("'", axis, "' cannot name an axis"));
    if (std::ranges::any_of(mesh.axes, [&](const auto& a) { return a.first == axis; }))
      c.fail("H520", at, words("the axis '", axis, "' comes twice"));
    mesh.axes.emplace_back(std::move(axis), size);
  });
}

void read_device_ids(Cursor& c, Mesh& mesh, std::int64_t devices) {
  const char* at = c.at();
  c.expect('(');
  if (c.peek() == '[') {
    mesh.device_iota = read_iota(c);
    if (c.ok() && device_product(mesh.device_iota->dims) != devices)
      c.fail("H522", at, words("the mesh has ", devices, " devices, the list another number"));
    c.expect(')');
    if (c.ok() && mesh.device_iota->perm.empty()) mesh.device_iota.reset();  // 0, 1, 2, …
    return;
  }
  do mesh.device_ids.push_back(c.integer("a device"));
  while (c.eat(','));
  c.expect(')');
  if (!c.ok()) return;
  if (static_cast<std::int64_t>(mesh.device_ids.size()) != devices)
    return c.fail("H522", at, words("the mesh has ", devices, " devices, the list ", mesh.device_ids.size()));
  if (!is_permutation(mesh.device_ids))
    return c.fail("H523", at, words("the devices are no permutation of 0 … ", devices - 1));
  if (std::ranges::is_sorted(mesh.device_ids)) mesh.device_ids.clear();
}

}  // namespace

Mesh read_mesh(Cursor& c) {
  Mesh mesh;
  const char* at = c.at();
  if (!c.eat_word("mesh")) c.fail_expected("'mesh'");
  read_axes_of_mesh(c, mesh);
  if (!c.ok()) return mesh;
  std::vector<std::int64_t> sizes;
  for (const auto& axis : mesh.axes) sizes.push_back(axis.second);
  const std::int64_t devices = device_product(sizes);
  if (devices < 0) c.fail("H522", at, "the mesh has more than 2^31 devices");
  const char* comma = c.position();
  if (!c.eat(',')) return mesh;
  if (!c.eat_word("device_ids")) {
    c.set_position(comma);
    return mesh;
  }
  c.expect('=');
  read_device_ids(c, mesh, devices);
  return mesh;
}

MeshAxis read_axis(Cursor& c, const Mesh& mesh) {
  const char* at = c.at();
  MeshAxis axis;
  if (chars::is(c.peek(), chars::kDigit)) {  // by number
    const std::int64_t number = c.integer("an axis");
    if (number >= 0 && number < static_cast<std::int64_t>(mesh.axes.size()))
      axis.name = mesh.axes[static_cast<std::size_t>(number)].first;
    else
      c.fail("H520", at, words("the mesh has no axis ", number));
  } else {
    axis.name = read_axis_name(c);
  }
  const auto found = std::ranges::find_if(mesh.axes, [&](const auto& a) { return a.first == axis.name; });
  if (c.ok() && found == mesh.axes.end()) {
    std::vector<std::string_view> names;
    for (const auto& a : mesh.axes) names.push_back(a.first);
    c.fail("H520", at, words("the mesh has no axis '", axis.name, "'", did_you_mean(axis.name, names)));
  }
  if (!c.eat(':')) return axis;
  c.expect('(');
  axis.pre = c.integer_between("the factor before the part of an axis", 1, kMostDevices);
  c.expect(')');
  axis.size = c.integer_between("the size of the part of an axis", 2, kMostDevices);
  if (c.ok() && (found->second % (axis.pre * axis.size) != 0 || axis.size >= found->second))
    c.fail("H522", at,
           words("the axis '", axis.name, "' of size ", found->second, " has no part (", axis.pre, ")", axis.size));
  return axis;
}

void write_joined(std::string& out, const std::vector<std::int64_t>& values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i != 0) out += ',';
    write_integer(out, values[i]);
  }
}

void write_iota(std::string& out, const IotaList& list) {
  out += '[';
  write_joined(out, list.dims);
  out += ']';
  if (list.perm.empty()) return;
  out += "T(";
  write_joined(out, list.perm);
  out += ')';
}

namespace {

// Axis names stand in single quotes.
void write_axis_name(std::string& out, std::string_view axis) {
  std::string quoted;
  write_quoted(quoted, axis);
  out += '\'';
  out.append(quoted, 1, quoted.size() - 2);
  out += '\'';
}

}  // namespace

void write_mesh(std::string& out, const Mesh& mesh) {
  out += "mesh[";
  for (const auto& [axis, size] : mesh.axes) {
    if (out.back() != '[') out += ',';
    write_axis_name(out, axis);
    out += '=';
    write_integer(out, size);
  }
  out += ']';
  if (mesh.device_iota) {
    out += ", device_ids=(";
    write_iota(out, *mesh.device_iota);
    out += ')';
  } else if (!mesh.device_ids.empty()) {
    out += ", device_ids=(";
    write_joined(out, mesh.device_ids);
    out += ')';
  }
}

void write_axes(std::string& out, const std::vector<MeshAxis>& axes) {
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (i != 0) out += ", ";
    write_axis_name(out, axes[i].name);
    if (axes[i].pre == 0) continue;
    out += ":(";
    write_integer(out, axes[i].pre);
    out += ')';
    write_integer(out, axes[i].size);
  }
}

}  // namespace hloom::text
