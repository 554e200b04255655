#include "text/print_words.h"
#include "text/shardings.h"

namespace hloom::text {

using hlo::MeshAxis;
using hlo::Sharding;
using Kind = Sharding::Kind;

std::string_view word_of(Kind kind) {
  switch (kind) {
    case Kind::Replicated: return "replicated";
    case Kind::Maximal: return "maximal";
    case Kind::Manual: return "manual";
    case Kind::Unknown: return "unknown";
    case Kind::Unreduced: return "unreduced";
    case Kind::Tiled:
    case Kind::Tuple:
    case Kind::Named:
    case Kind::NamedMaximal: break;
  }
  return {};
}

namespace {

void write_metadata(std::string& out, const std::vector<std::string>& entries) {
  if (entries.empty()) return;
  out += " metadata={";
  if (entries.size() == 1) {
    out += entries[0];
  } else {
    for (const std::string& e : entries) {
      if (out.back() != '{') out += ", ";
      out.append("{").append(e).append("}");
    }
  }
  out += '}';
}

void write_tiled(std::string& out, const Sharding& s) {
  out += '{';
  if (s.kind == Kind::Tiled) {
    out += "devices=[";
    write_joined(out, s.tile_dims);
    out += ']';
    if (s.iota) {
      out += "<=";
      write_iota(out, *s.iota);
    } else {
      write_joined(out, s.devices);
    }
  } else {
    out += word_of(s.kind);
    if (s.kind == Kind::Maximal) {
      out += " device=";
      write_integer(out, s.device);
    }
  }
  if (s.last_tile_dim_replicate) out += " last_tile_dim_replicate";
  if (!s.last_tile_dims.empty()) {
    out += " last_tile_dims={";
    for (const Kind kind : s.last_tile_dims) out.append(out.back() == '{' ? "" : ", ").append(word_of(kind));
    out += '}';
  }
  if (s.group != Sharding::Group::None) {
    out += s.group == Sharding::Group::As ? " shard_as " : " shard_like ";
    write_integer(out, s.group_id);
  }
  write_metadata(out, s.metadata);
  out += '}';
}

void write_axes_part(std::string& out, std::string_view part, const std::vector<MeshAxis>& axes) {
  out.append(", ").append(part).append("{");
  write_axes(out, axes);
  out += '}';
}

void write_dims(std::string& out, const std::vector<Sharding::Dim>& dims) {
  out += ", [";
  for (const Sharding::Dim& dim : dims) {
    out += out.back() == '[' ? "{" : ", {";
    write_axes(out, dim.axes);
    if (dim.open) out += dim.axes.empty() ? "?" : ", ?";
    out += '}';
  }
  out += ']';
}

void write_named(std::string& out, const Sharding& s) {
  out += '{';
  write_mesh(out, s.mesh);
  switch (s.whole) {
    case Sharding::Whole::Dims: break;
    case Sharding::Whole::Replicated: out += ", replicated"; break;
    case Sharding::Whole::Unreduced: out += ", unreduced"; break;
    case Sharding::Whole::Manual: out += ", manual"; break;
  }
  if (s.has_dims) write_dims(out, s.dims);
  if (!s.replicated_axes.empty()) write_axes_part(out, "replicated=", s.replicated_axes);
  if (!s.manual_axes.empty()) write_axes_part(out, "manual=", s.manual_axes);
  if (s.has_unreduced) write_axes_part(out, "unreduced=" + s.unreduced_kind, s.unreduced_axes);
  if (!s.metadata.empty()) {
    out += ", metadata={";
    for (const std::string& e : s.metadata) out.append(out.back() == '{' ? "{" : ", {").append(e).append("}");
    out += '}';
  }
  out += '}';
}

}  // namespace

void write_sharding(std::string& out, const Sharding& s) {
  switch (s.kind) {
    case Kind::Tuple:
      out += '{';
      for (std::size_t i = 0; i < s.elements.size(); ++i) {
        if (i != 0) out += ", ";
        write_index_comment(out, i);
        write_sharding(out, s.elements[i]);
      }
      out += '}';
      return;
    case Kind::Named: return write_named(out, s);
    case Kind::NamedMaximal:
      out += "{maximal_mesh[device_id=";
      write_integer(out, s.device);
      out += "]}";
      return;
    default: return write_tiled(out, s);
  }
}

}  // namespace hloom::text
