// Values that share memory: what must come together, and what may.
//
// A node is a value, or a leaf of the entry's result. An edge says that the memory of one node should be that of
// another: what enters a loop and what comes back, a branch's result and the conditional's, the base of a window update
// and its result, what the entry returns. Where an edge is not kept, a copy has to stand.
#pragma once

#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "buffers/donations.h"
#include "buffers/in_place.h"
#include "buffers/timeline.h"
#include "buffers/values.h"

namespace hloom::buffers {

using NodeId = std::int32_t;

struct Edge {
  enum class Kind : std::uint8_t { Init, Back, Branch, InPlace, Result, Part };
  Kind kind = Kind::InPlace;
  const hlo::Instruction* at = nullptr;  ///< while, conditional, in-place instruction; for results the entry's root
  std::int64_t leaf = 0;  ///< of its shape
  std::int64_t input = 0;  ///< branch number, or operand of the in-place instruction
  std::int64_t input_leaf = 0;  ///< leaf of that operand
  NodeId from = 0, to = 0;
  std::int64_t bytes = 0;
  int depth = 0;  ///< loops around the place of the copy
  bool same_storage = true;  ///< else the copy changes the layout
  double runs = 1;           ///< how often a copy would be made in a run of the program
  std::int64_t offset = 0;   ///< Part: byte of `to` at which `from` lies, or less than 0: `to` begins inside of `from`
};

/// Where a node's memory has to be.
struct Pin {
  enum class Kind : std::uint8_t { None, Parameter, Result, Constant };
  Kind kind = Kind::None;
  std::int64_t number = 0;  ///< leaf of parameters or results; node of the constant
  bool operator==(const Pin&) const = default;
};

/// A scheduled module's values, times, edges and live ranges.
class Flow {
 public:
  /// Needs: unshare_steps() has seen the module.
  explicit Flow(const hlo::Module&);

  const hlo::Module& module() const { return module_; }
  const Values& values() const { return values_; }
  const Timeline& timeline() const { return timeline_; }
  const std::vector<Edge>& edges() const { return edges_; }

  NodeId num_nodes() const { return static_cast<NodeId>(live_.size()); }
  bool is_result(NodeId n) const { return n >= static_cast<NodeId>(values_.size()); }
  NodeId result_node(std::int64_t leaf) const { return static_cast<NodeId>(values_.size() + leaf); }
  const Intervals& live(NodeId n) const { return live_[static_cast<std::size_t>(n)]; }
  std::int64_t bytes(NodeId n) const { return bytes_[static_cast<std::size_t>(n)]; }
  Pin pin(NodeId n) const { return pins_[static_cast<std::size_t>(n)]; }
  std::string name(NodeId n) const;
  const std::vector<Use>& uses(ValueId v) const { return uses_[static_cast<std::size_t>(v)]; }
  /// Whether `a` and `b` may share memory although both are alive at the point at which an instruction works: one is
  /// its operand, which it reads element by element, the other its result.
  bool may_meet(NodeId a, NodeId b, Point at) const;

  /// Leaves of the entry's parameters and result, numbered depth first.
  std::int64_t num_parameter_leaves() const { return static_cast<std::int64_t>(donations_.donated.size()); }
  bool is_donated(std::int64_t parameter_leaf) const { return donations_.donated[static_cast<std::size_t>(parameter_leaf)]; }
  /// The result leaf whose memory is the parameter leaf's, or -1.
  std::int64_t aliased_result(std::int64_t parameter_leaf) const {
    return donations_.aliased_result[static_cast<std::size_t>(parameter_leaf)];
  }

 private:
  void collect(const hlo::Computation&);
  void collect_uses(const hlo::Instruction&);
  void use_until_done(const hlo::Instruction& start, const hlo::Computation&, Point done);
  void collect_in_place(const hlo::Instruction&);
  void collect_parts(const hlo::Instruction&);
  void collect_meetings(const hlo::Instruction&);
  void collect_predicates();
  std::vector<bool> needed_phis() const;
  const Timeline::Span& often_run_like(const hlo::Computation&, bool is_rare_branch) const;
  void collect_phi_edges();
  void collect_results();
  void use(ValueId, const hlo::Computation&, Point);
  Intervals live_of(ValueId);
  void compute_live();

  const hlo::Module& module_;
  Values values_;
  Timeline timeline_;
  Donations donations_;
  std::vector<Edge> edges_;
  std::vector<std::vector<Use>> uses_;
  std::unordered_set<std::uint64_t> meetings_;  ///< pairs of operand and result that may meet
  std::vector<bool> in_place_;  ///< values made in place: they live from the copies before their instruction
  std::vector<std::int64_t> bytes_;
  std::vector<Intervals> live_;
  std::vector<Pin> pins_;
};

/// Sets of nodes that share memory, with the union of their lives. A result that is aliased with a donated parameter
/// shares its memory from the start. A node may lie inside of another: then the set has more bytes than some of its nodes.
class Webs {
 public:
  explicit Webs(const Flow&);

  NodeId find(NodeId) const;
  /// Of the web that the node is in.
  std::int64_t bytes(NodeId n) const { return bytes_[static_cast<std::size_t>(find(n))]; }
  /// Byte of its web at which the node lies.
  std::int64_t offset(NodeId n) const { return offsets_[static_cast<std::size_t>(n)]; }
  const Intervals& live(NodeId n) const { return live_[static_cast<std::size_t>(find(n))]; }
  Pin pin(NodeId n) const { return pins_[static_cast<std::size_t>(find(n))]; }
  const std::vector<NodeId>& members(NodeId n) const { return members_[static_cast<std::size_t>(find(n))]; }

  /// Why the two may not share memory: sizes, places, memory that may not be written, or lives.
  enum class Conflict : std::uint8_t { None, Size, Pin, ReadOnly, Life };
  Conflict conflict(NodeId, NodeId) const;
  void join(NodeId, NodeId);
  /// Two members, one of each web, that are alive together and may not meet. Needs: conflict() == Life.
  std::pair<NodeId, NodeId> clash(NodeId, NodeId) const;

  /// Makes each part a stretch of the whole, where no life forbids it: `edges` are those of one instruction (Edge::Part).
  /// None, or why not, and nothing has changed.
  Conflict join_parts(std::span<const Edge> edges);

 private:
  // A stretch of a value that is one of another value.
  struct Same {
    std::int64_t at = 0, bytes = 0;
    NodeId base = 0;
    std::int64_t base_at = 0;
  };
  std::vector<Same> same(NodeId) const;
  void note_parts(std::span<const Edge>);
  bool hold_the_same(NodeId, std::int64_t at, NodeId, std::int64_t other_at) const;
  Conflict conflict_at(NodeId a, NodeId b, std::int64_t offset_in_b, bool may_read) const;
  void join_at(NodeId a, NodeId b, std::int64_t offset_in_b);
  void restore(const Webs&);
  bool is_read_only(NodeId) const;
  bool lives_conflict(NodeId, NodeId, std::int64_t shift) const;
  bool may_all_meet(NodeId, NodeId, Point) const;
  bool clash_at(NodeId, std::int64_t at, NodeId, std::int64_t other_at) const;

  const Flow& flow_;
  mutable std::vector<NodeId> parent_;
  std::vector<Intervals> live_;
  std::vector<Pin> pins_;
  std::vector<std::vector<NodeId>> members_;
  std::vector<std::int64_t> bytes_, offsets_;
  std::unordered_map<NodeId, std::vector<Same>> same_;
};

}  // namespace hloom::buffers
