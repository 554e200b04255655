// Integer expressions that are sums of multiples of variables, floor divisions and remainders.
//
//   Expr i = Expr::dimension(0), j = Expr::dimension(1);
//   Expr linear = i * 20 + j;
//   to_string(linear.floor_div(20)) == "(d0*20 + d1) floordiv 20", which is d0 once d1 is known to be in [0, 19]
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace hloom::indexing {

/// A closed interval; empty if low > high. The ends stay within ±2^62.
struct Interval {
  std::int64_t low = 0, high = 0;

  bool is_empty() const { return low > high; }
  bool is_point() const { return low == high; }
  bool contains(std::int64_t x) const { return low <= x && x <= high; }
  bool contains(const Interval& other) const { return other.is_empty() || (low <= other.low && other.high <= high); }
  std::int64_t size() const { return is_empty() ? 0 : high - low + 1; }
  bool operator==(const Interval&) const = default;
};
Interval intersection(const Interval&, const Interval&);

/// Toward minus infinity, also for negative dividends. Needs: d > 0.
std::int64_t floor_div(std::int64_t a, std::int64_t d);
/// a - d·floor_div(a, d): in [0, d).
std::int64_t floor_mod(std::int64_t a, std::int64_t d);

/// What a variable stands for: a dimension of the tensor mapped from, one of many (a reduced dimension, a window), or a
/// value that only a run knows (a dynamic-slice's start).
enum class VariableKind : std::uint8_t { Dimension, Range, Runtime };

class Expr;

/// What a term multiplies. Immutable and shared; compared by structure.
struct Atom {
  enum class Kind : std::uint8_t { Variable, FloorDiv, Mod };
  Kind kind = Kind::Variable;
  VariableKind variable = VariableKind::Dimension;
  std::int64_t number = 0;  ///< of a variable; of the others the divisor, > 1
  std::shared_ptr<const Expr> operand;  ///< of the others
  std::int64_t size = 1;  ///< atoms in it, itself included
};

/// constant + Σ coefficient·atom, terms in one order and none twice: equal sums are equal expressions. A value.
class Expr {
 public:
  struct Term {
    std::int64_t coefficient;
    std::shared_ptr<const Atom> atom;
  };

  Expr() = default;
  Expr(std::int64_t constant) : constant_(constant) {}
  static Expr variable(VariableKind, std::int64_t number);
  static Expr dimension(std::int64_t n) { return variable(VariableKind::Dimension, n); }
  static Expr range(std::int64_t n) { return variable(VariableKind::Range, n); }
  static Expr runtime(std::int64_t n) { return variable(VariableKind::Runtime, n); }

  static Expr term(std::int64_t coefficient, std::shared_ptr<const Atom>);

  std::int64_t constant() const { return constant_; }
  const std::vector<Term>& terms() const { return terms_; }
  bool is_constant() const { return terms_.empty(); }
  /// One variable, as it is.
  bool is_variable() const;
  /// Atoms in it.
  std::int64_t size() const;

  friend Expr operator+(const Expr&, const Expr&);
  friend Expr operator-(const Expr& a, const Expr& b) { return a + b * -1; }
  friend Expr operator*(const Expr&, std::int64_t);
  /// With what can be said without knowing intervals: multiples of the divisor come out, common factors cancel, one
  /// inner division is folded. Needs: d > 0.
  Expr floor_div(std::int64_t d) const;
  Expr mod(std::int64_t d) const;

  friend std::strong_ordering operator<=>(const Expr&, const Expr&);
  friend bool operator==(const Expr& a, const Expr& b) { return (a <=> b) == 0; }

 private:
  static Expr of_atom(Atom);
  void add_term(std::int64_t coefficient, const std::shared_ptr<const Atom>&);

  std::int64_t constant_ = 0;
  std::vector<Term> terms_;
};

std::strong_ordering operator<=>(const Atom&, const Atom&);

/// "d0*20 + s1 floordiv 4 - rt0 mod 3": dimensions are d, ranges s, runtime values rt.
std::string to_string(const Expr&);

/// The values, or the intervals, of all variables.
template <typename T>
struct Assignment {
  std::vector<T> dimensions, ranges, runtime;

  const T& of(VariableKind kind, std::int64_t number) const {
    const auto n = static_cast<std::size_t>(number);
    return kind == VariableKind::Dimension ? dimensions[n] : kind == VariableKind::Range ? ranges[n] : runtime[n];
  }
};
using Point = Assignment<std::int64_t>;
using Domain = Assignment<Interval>;

/// The value at a point. Needs: a value for each variable of the expression.
std::int64_t evaluate(const Expr&, const Point&);
/// An interval in which all values over the domain lie; exact for sums of different variables.
Interval bounds(const Expr&, const Domain&);
/// The expression with others in the place of its variables.
Expr substitute(const Expr&, const Assignment<Expr>&);

/// The same value everywhere in the domain, in fewer atoms where interval arithmetic can tell. Stops when it has made
/// `budget` steps, which it counts down; what it gives then is right too. Needs: a domain that is not empty.
Expr simplify(const Expr&, const Domain&, std::int64_t& budget);

}  // namespace hloom::indexing
