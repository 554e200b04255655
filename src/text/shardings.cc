#include "text/shardings.h"

#include <algorithm>

#include "text/annotations.h"

namespace hloom::text {

using hlo::MeshAxis;
using hlo::Sharding;
using Kind = Sharding::Kind;

namespace {

std::optional<Kind> kind_named(std::string_view word) {
  for (const Kind kind : {Kind::Replicated, Kind::Maximal, Kind::Manual, Kind::Unknown, Kind::Unreduced})
    if (word_of(kind) == word) return kind;
  return std::nullopt;
}

std::vector<MeshAxis> read_axes(Cursor& c, const hlo::Mesh& mesh) {
  std::vector<MeshAxis> axes;
  c.list('{', '}', [&] { axes.push_back(read_axis(c, mesh)); });
  return axes;
}

// The items of the tiled form, `{devices=[2,2]0,1,2,3 last_tile_dim_replicate}`.
class TiledReader {
 public:
  TiledReader(Cursor& c, Sharding& sharding) : c_(c), s_(sharding) {}

  void read() {
    const char* start = c_.at();
    while (c_.ok() && c_.peek() != '}') {
      read_item();
      c_.eat(',');
    }
    if (c_.ok()) check(start);
  }

 private:
  void read_item() {
    const char* at = c_.at();
    const std::string_view word = c_.take_word("a part of a sharding");
    if (!c_.ok()) return;
    if (const auto kind = kind_named(word)) return set_kind(at, *kind);
    if (word == "device") {
      c_.expect('=');
      s_.device = c_.integer_between("a device", 0, INT64_MAX);
    } else if (word == "devices") {
      read_devices(at);
    } else if (word == "last_tile_dim_replicate") {
      s_.last_tile_dim_replicate = true;
    } else if (word == "last_tile_dims") {
      c_.expect('=');
      c_.list('{', '}', [&] { read_last_dim(); });
    } else if (word == "shard_as" || word == "shard_like") {
      s_.group = word == "shard_as" ? Sharding::Group::As : Sharding::Group::Like;
      s_.group_id = c_.integer("the number of a group");
    } else if (word == "metadata") {
      c_.expect('=');
      s_.metadata = read_metadata_list(c_);
    } else {
      c_.fail("H503", at,
              words("'", word, "' is no part of a sharding; accepted: ", kAccepted,
                    did_you_mean(word,
                                 {"replicated", "maximal", "manual", "unknown", "unreduced", "device", "devices",
                                  "last_tile_dim_replicate", "last_tile_dims", "shard_as", "shard_like", "metadata"})));
    }
  }

  void set_kind(const char* at, Kind kind) {
    if (kind_ && *kind_ != kind)
      return c_.fail("H520", at, words("'", word_of(kind), "' in a sharding that is already of another kind"));
    kind_ = kind;
  }

  void read_devices(const char* at) {
    set_kind(at, Kind::Tiled);
    c_.expect('=');
    const char* dims = c_.at();
    s_.tile_dims = c_.integers('[', ']', "the number of tiles of a dimension");
    std::int64_t tiles = 1;
    for (const std::int64_t t : s_.tile_dims) {
      if (t < 1 || t > INT32_MAX || tiles * t > INT32_MAX)
        return c_.fail("H522", dims, "the numbers of tiles need a positive product of at most 2^31");
      tiles *= t;
    }
    std::size_t count = 0;
    if (c_.eat("<=")) {
      s_.iota = read_iota(c_);
      std::int64_t product = 1;
      for (const std::int64_t d : s_.iota->dims) product *= d;
      count = static_cast<std::size_t>(product);
    } else {
      do s_.devices.push_back(c_.integer("a device"));
      while (c_.ok() && c_.eat(','));
      count = s_.devices.size();
      check_devices(dims);
    }
    if (c_.ok() && count != static_cast<std::size_t>(tiles))
      c_.fail("H522", dims, words("the tiles are ", tiles, ", the devices ", count));
  }

  void check_devices(const char* at) {
    std::vector<std::int64_t> sorted = s_.devices;
    std::ranges::sort(sorted);
    if (c_.ok() && sorted.front() < 0) c_.fail("H523", at, words("there is no device ", sorted.front()));
    const auto twice = std::ranges::adjacent_find(sorted);
    if (twice != sorted.end()) c_.fail("H523", at, words("device ", *twice, " comes twice"));
  }

  void read_last_dim() {
    const char* at = c_.at();
    const std::string_view word = c_.take_word("the kind of a dimension");
    const auto kind = kind_named(word);
    if (c_.ok() && (!kind || *kind == Kind::Unknown))
      return c_.fail("H507", at,
                     words("'", word, "' is no kind of a dimension: replicated, manual, unreduced, maximal"));
    s_.last_tile_dims.push_back(kind.value_or(Kind::Replicated));
  }

  void check(const char* at) {
    if (!kind_ && s_.device >= 0) kind_ = Kind::Maximal;
    if (!kind_) return c_.fail("H521", at, "a sharding needs a kind: replicated, maximal, manual, devices=[…] …");
    s_.kind = *kind_;
    if (s_.kind == Kind::Maximal && s_.device < 0) return c_.fail("H521", at, "'maximal' needs device=N");
    if (s_.kind != Kind::Maximal && s_.device >= 0)
      return c_.fail("H521", at, words("device=", s_.device, " belongs to 'maximal' alone"));
    if (s_.kind != Kind::Tiled && (s_.last_tile_dim_replicate || !s_.last_tile_dims.empty()))
      return c_.fail("H520", at, "only a sharding of devices=[…] has last tile dimensions");
    if (s_.last_tile_dim_replicate && !s_.last_tile_dims.empty())
      return c_.fail("H520", at, "last_tile_dim_replicate and last_tile_dims exclude each other");
    if (s_.last_tile_dims.size() + (s_.last_tile_dim_replicate ? 1 : 0) > s_.tile_dims.size())
      c_.fail("H522", at, "more last tile dimensions than dimensions");
  }

  static constexpr std::string_view kAccepted =
      "replicated, maximal, manual, unknown, unreduced, device, devices, last_tile_dim_replicate, last_tile_dims, "
      "shard_as, shard_like, metadata";

  Cursor& c_;
  Sharding& s_;
  std::optional<Kind> kind_;
};

// The named form, `{mesh['x'=4], [{'x'}, {}], replicated={'y'}}`, after its opening brace.
class NamedReader {
 public:
  NamedReader(Cursor& c, Sharding& sharding) : c_(c), s_(sharding) {}

  void read() {
    if (c_.eat_word("maximal_mesh")) return read_maximal();
    s_.kind = Kind::Named;
    s_.mesh = read_mesh(c_);
    while (c_.ok() && c_.eat(',')) {
      if (c_.peek() == '[')
        read_dims();
      else
        read_word();
    }
  }

 private:
  void read_maximal() {
    s_.kind = Kind::NamedMaximal;
    c_.expect('[');
    if (!c_.eat_word("device_id")) c_.fail_expected("'device_id'");
    c_.expect('=');
    s_.device = c_.integer_between("a device", 0, INT64_MAX);
    c_.expect(']');
  }

  void read_dims() {
    const char* at = c_.at();
    if (s_.has_dims || s_.whole != Sharding::Whole::Dims) c_.fail("H520", at, "the dimensions come twice");
    s_.has_dims = true;
    c_.list('[', ']', [&] {
      Sharding::Dim dim;
      c_.list('{', '}', [&] {
        if (dim.open) c_.fail("H520", c_.at(), "'?' stands last");
        if (c_.eat('?'))
          dim.open = true;
        else
          dim.axes.push_back(read_axis(c_, s_.mesh));
      });
      s_.dims.push_back(std::move(dim));
    });
  }

  void read_word() {
    const char* at = c_.at();
    const std::string_view word = c_.take_word("a part of a sharding");
    const bool valued = c_.eat('=');
    if (valued && word == "metadata")
      s_.metadata = read_metadata_list(c_);
    else if (valued && word == "replicated")
      s_.replicated_axes = read_axes(c_, s_.mesh);
    else if (valued && word == "manual")
      s_.manual_axes = read_axes(c_, s_.mesh);
    else if (valued && word == "unreduced")
      read_unreduced();
    else if (word == "replicated" || word == "manual" || word == "unreduced")
      read_whole(at, word);
    else if (c_.ok())
      c_.fail("H503", at,
              words("'", word, "' is no part of a named sharding; accepted: replicated, manual, unreduced, metadata"));
  }

  void read_whole(const char* at, std::string_view word) {
    if (s_.has_dims || s_.whole != Sharding::Whole::Dims) return c_.fail("H520", at, "a second kind of sharding");
    s_.whole = word == "replicated" ? Sharding::Whole::Replicated
               : word == "manual"   ? Sharding::Whole::Manual
                                    : Sharding::Whole::Unreduced;
  }

  void read_unreduced() {
    s_.has_unreduced = true;
    if (c_.eat_word("max")) s_.unreduced_kind = "max";
    if (c_.eat_word("min")) s_.unreduced_kind = "min";
    s_.unreduced_axes = read_axes(c_, s_.mesh);
  }

  Cursor& c_;
  Sharding& s_;
};

}  // namespace

Sharding read_sharding(Cursor& c) {
  const Cursor::Depth depth(c);
  Sharding s;
  c.expect('{');
  if (c.peek() == '{' || c.peek() == '}') {
    s.kind = Kind::Tuple;
    if (c.peek() != '}') {
      do s.elements.push_back(read_sharding(c));
      while (c.eat(','));
    }
    c.expect('}');
    return s;
  }
  const std::string_view word = c.peek_word();
  if (word == "mesh" || word == "maximal_mesh")
    NamedReader(c, s).read();
  else
    TiledReader(c, s).read();
  c.expect('}');
  return s;
}

}  // namespace hloom::text
