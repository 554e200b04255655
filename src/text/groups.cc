// Replica groups: lists, iota lists, axes of a mesh.
#include <algorithm>
#include <unordered_set>

#include "text/print_words.h"
#include "text/shardings.h"

namespace hloom::text {

using hlo::ReplicaGroups;

namespace {

ReplicaGroups read_explicit(Cursor& c) {
  ReplicaGroups g;
  std::unordered_set<std::int64_t> seen;
  c.list('{', '}', [&] {
    std::vector<std::int64_t> group;
    c.list('{', '}', [&] {
      const char* at = c.at();
      group.push_back(c.integer_between("a participant", 0, INT64_MAX));
      if (c.ok() && !seen.insert(group.back()).second)
        c.fail("H540", at, words("participant ", group.back(), " is in the groups twice"));
    });
    g.groups.push_back(std::move(group));
  });
  return g;
}

ReplicaGroups read_iota_form(Cursor& c) {
  ReplicaGroups g;
  const char* at = c.at();
  g.form = ReplicaGroups::Form::Iota;
  c.expect('[');
  g.num_groups = c.integer_between("the number of groups", 1, INT32_MAX);
  c.expect(',');
  g.group_size = c.integer_between("the size of a group", 1, INT32_MAX);
  c.expect(']');
  if (!c.eat("<=")) c.fail_expected("'<='");
  g.iota = read_iota(c);
  std::int64_t product = 1;
  for (const std::int64_t d : g.iota.dims) product *= d;
  if (c.ok() && g.num_groups * g.group_size != product)
    c.fail("H522", at, words(g.num_groups, " groups of ", g.group_size, ", but the list has ", product));
  return g;
}

ReplicaGroups read_mesh_form(Cursor& c) {
  ReplicaGroups g;
  g.form = ReplicaGroups::Form::Mesh;
  g.mesh = read_mesh(c);
  c.expect('{');
  do g.axes.push_back(read_axis(c, g.mesh));
  while (c.eat(','));
  c.expect('}');
  return g;
}

}  // namespace

ReplicaGroups read_replica_groups(Cursor& c) {
  switch (c.peek()) {
    case '{': return read_explicit(c);
    case '[': return read_iota_form(c);
    default: return read_mesh_form(c);
  }
}

void check_no_gap(Cursor& c, const char* at, const ReplicaGroups& g) {
  std::int64_t count = 0, largest = -1;
  for (const auto& group : g.groups)
    for (const std::int64_t id : group) {
      ++count;
      largest = std::max(largest, id);
    }
  if (largest >= count)
    c.fail("H541", at, words("participant ", largest, " is in the groups, but not all below it: there are ", count));
}

void check_even(Cursor& c, const char* at, const ReplicaGroups& g) {
  for (const auto& group : g.groups)
    if (group.size() != g.groups.front().size())
      return c.fail("H542", at,
                    words("groups of ", g.groups.front().size(), " and of ", group.size(), " participants"));
}

void write_replica_groups(std::string& out, const ReplicaGroups& g) {
  switch (g.form) {
    case ReplicaGroups::Form::Explicit:
      out += '{';
      for (const auto& group : g.groups) {
        if (out.back() == '}') out += ',';
        write_braced(out, group);
      }
      out += '}';
      return;
    case ReplicaGroups::Form::Iota:
      out += '[';
      write_integer(out, g.num_groups);
      out += ',';
      write_integer(out, g.group_size);
      out += "]<=";
      write_iota(out, g.iota);
      return;
    case ReplicaGroups::Form::Mesh:
      write_mesh(out, g.mesh);
      out += " {";
      write_axes(out, g.axes);
      out += '}';
      return;
  }
}

}  // namespace hloom::text
