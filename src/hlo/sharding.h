// Shardings, meshes and replica groups: kept, printed, checked; only collectives act on groups.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hloom::hlo {

/// iota(∏dims) reshaped to dims, transposed by perm, flattened: `<=[dims]T(perm)`. Empty perm = identity.
struct IotaList {
  std::vector<std::int64_t> dims;
  std::vector<std::int64_t> perm;
  bool operator==(const IotaList&) const = default;
  /// The numbers in order. Needs: dims whose product fits, perm a permutation or empty.
  std::vector<std::int64_t> expand() const;
};

/// A named mesh of devices: `mesh['x'=2,'y'=4], device_ids=(…)`.
struct Mesh {
  std::vector<std::pair<std::string, std::int64_t>> axes;
  std::vector<std::int64_t> device_ids;    ///< explicit, or empty
  std::optional<IotaList> device_iota;     ///< iota form, or none: 0 … n-1
  bool operator==(const Mesh&) const = default;
};

/// An axis of a mesh, or the middle factor of one split as (pre, size, rest).
struct MeshAxis {
  std::string name;
  std::int64_t pre = 0;   ///< 0 = the whole axis
  std::int64_t size = 0;
  bool operator==(const MeshAxis&) const = default;
};

struct Metadata;

/// How a value is spread over devices (hlo-text 10.1, 10.2). A tuple's sharding has one element per leaf.
struct Sharding {
  enum class Kind : std::uint8_t { Replicated, Maximal, Manual, Unknown, Unreduced, Tiled, Tuple, Named, NamedMaximal };
  struct Dim {  ///< named form: axes of one tensor dimension
    std::vector<MeshAxis> axes;
    bool open = false;
    bool operator==(const Dim&) const = default;
  };

  Kind kind = Kind::Replicated;
  std::int64_t device = -1;               ///< Maximal, NamedMaximal
  std::vector<std::int64_t> tile_dims;    ///< Tiled
  std::vector<std::int64_t> devices;      ///< Tiled, explicit
  std::optional<IotaList> iota;           ///< Tiled, iota form
  bool last_tile_dim_replicate = false;
  std::vector<Kind> last_tile_dims;       ///< kinds of the last grid dimensions
  enum class Group : std::uint8_t { None, As, Like } group = Group::None;
  std::int64_t group_id = 0;
  std::vector<Sharding> elements;         ///< Tuple
  // Named form:
  Mesh mesh;
  enum class Whole : std::uint8_t { Dims, Replicated, Unreduced, Manual } whole = Whole::Dims;
  bool has_dims = false;
  std::vector<Dim> dims;
  std::vector<MeshAxis> replicated_axes, manual_axes, unreduced_axes;
  std::string unreduced_kind;             ///< "", "max" or "min"
  bool has_unreduced = false;
  std::vector<std::string> metadata;      ///< each entry's canonical text between its braces
  bool operator==(const Sharding&) const = default;
};

/// Groups of participants of a collective, in the notation they came in.
struct ReplicaGroups {
  enum class Form : std::uint8_t { Explicit, Iota, Mesh } form = Form::Explicit;
  std::vector<std::vector<std::int64_t>> groups;  ///< Explicit
  std::int64_t num_groups = 0, group_size = 0;    ///< Iota
  IotaList iota;                                  ///< Iota
  Mesh mesh;                                      ///< Mesh
  std::vector<MeshAxis> axes;                     ///< Mesh
  bool operator==(const ReplicaGroups&) const = default;
  /// The groups as lists of ids, whatever the form. Needs: a verified form.
  std::vector<std::vector<std::int64_t>> expand() const;
  bool empty() const { return form == Form::Explicit && groups.empty(); }
};

}  // namespace hloom::hlo
