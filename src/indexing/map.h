// From an element to the elements of an operand that it reads.
//
//   (d0, d1)[s0]{rt0} -> (d0 + rt0, s0), domain: d0 in [0, 3], d1 in [0, 7], s0 in [0, 4], rt0 in [0, 2], d1 + s0 in
//   [0, 9]
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hloom/error.h"
#include "indexing/expr.h"

namespace hloom::indexing {

/// `expr` lies in `in`: what the intervals of the variables alone cannot say.
struct Constraint {
  Expr expr;
  Interval in;
  bool operator==(const Constraint&) const = default;
};

/// Where a value that only a run knows comes from: element `element` of operand `operand` of the instruction mapped, an
/// integer clamped into the variable's interval.
struct RuntimeSource {
  std::int64_t operand = 0;
  std::vector<Expr> element;
  bool operator==(const RuntimeSource&) const = default;
};

/// Results, one for each dimension mapped to, as expressions of dimensions, ranges and runtime values over a domain.
/// A point of all of them that satisfies the constraints is one element read. A value.
class IndexMap {
 public:
  IndexMap() = default;
  IndexMap(Domain domain, std::vector<Expr> results, std::vector<Constraint> constraints = {},
           std::vector<RuntimeSource> sources = {});
  /// d_i in [0, sizes[i] - 1], each its own result.
  static IndexMap identity(const std::vector<std::int64_t>& sizes);

  const Domain& domain() const { return domain_; }
  const std::vector<Expr>& results() const { return results_; }
  const std::vector<Constraint>& constraints() const { return constraints_; }
  /// One for each runtime value, or none at all.
  const std::vector<RuntimeSource>& sources() const { return sources_; }
  /// Some interval is empty: nothing is read.
  bool is_known_empty() const;

  /// Whether the point lies in the domain.
  bool contains(const Point&) const;
  std::vector<std::int64_t> evaluate(const Point&) const;

  /// Fewer atoms, narrower intervals, no constraint that is always true. At most `budget` steps: beyond them the map
  /// stays right, only longer.
  IndexMap simplified(std::int64_t budget = 10'000) const;
  /// Without ranges that neither results nor constraints name, and runtime values likewise; dimensions stay.
  IndexMap without_unused() const;

  bool operator==(const IndexMap&) const;

 private:
  Domain domain_;
  std::vector<Expr> results_;
  std::vector<Constraint> constraints_;
  std::vector<RuntimeSource> sources_;
};

/// a's results into b's dimensions: ranges of b come first, then those of a; so do runtime values. That a's result i
/// lies in b's interval i becomes a constraint. Simplified. Needs: as many results of a as dimensions of b.
IndexMap compose(const IndexMap& a, const IndexMap& b, std::int64_t budget = 10'000);

std::string to_string(const IndexMap&);
/// Reads what to_string wrote; variables may have any names. Runtime values have no source then.
/// Errors: InvalidArgument, saying where.
Expected<IndexMap> parse_map(std::string_view);

/// Coordinates of linear index `linear`, which lies in [0, Π sizes), most major first: without a remainder for the
/// first dimension of more than one element, 0 for those of one.
std::vector<Expr> delinearize(const Expr& linear, const std::vector<std::int64_t>& sizes);
/// The row-major linear index of coordinates.
Expr linearize(const std::vector<Expr>& coordinates, const std::vector<std::int64_t>& sizes);

}  // namespace hloom::indexing
