#include "indexing/expr.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>

#include "base/check.h"

namespace hloom::indexing {
namespace {

constexpr std::int64_t kLimit = std::int64_t{1} << 62;

std::int64_t clamp_wide(__int128 x) { return static_cast<std::int64_t>(std::clamp<__int128>(x, -kLimit, kLimit)); }

}  // namespace

Interval intersection(const Interval& a, const Interval& b) {
  return {std::max(a.low, b.low), std::min(a.high, b.high)};
}

std::int64_t floor_div(std::int64_t a, std::int64_t d) {
  const std::int64_t q = a / d;
  return q - (a % d < 0);
}

std::int64_t floor_mod(std::int64_t a, std::int64_t d) { return a - d * floor_div(a, d); }

std::strong_ordering operator<=>(const Atom& a, const Atom& b) {
  if (&a == &b) return std::strong_ordering::equal;
  if (const auto c = a.kind <=> b.kind; c != 0) return c;
  if (const auto c = a.variable <=> b.variable; c != 0) return c;
  if (const auto c = a.number <=> b.number; c != 0) return c;
  if (a.operand == b.operand) return std::strong_ordering::equal;
  return *a.operand <=> *b.operand;
}

std::strong_ordering operator<=>(const Expr& a, const Expr& b) {
  if (const auto c = a.terms_.size() <=> b.terms_.size(); c != 0) return c;
  if (const auto c = a.constant_ <=> b.constant_; c != 0) return c;
  for (std::size_t n = 0; n < a.terms_.size(); ++n) {
    if (const auto c = a.terms_[n].coefficient <=> b.terms_[n].coefficient; c != 0) return c;
    if (const auto c = *a.terms_[n].atom <=> *b.terms_[n].atom; c != 0) return c;
  }
  return std::strong_ordering::equal;
}

Expr Expr::of_atom(Atom atom) {
  Expr e;
  e.terms_.push_back({1, std::make_shared<const Atom>(std::move(atom))});
  return e;
}

Expr Expr::variable(VariableKind kind, std::int64_t number) {
  return of_atom({Atom::Kind::Variable, kind, number, nullptr, 1});
}

bool Expr::is_variable() const {
  return constant_ == 0 && terms_.size() == 1 && terms_[0].coefficient == 1 &&
         terms_[0].atom->kind == Atom::Kind::Variable;
}

std::int64_t Expr::size() const {
  std::int64_t n = 0;
  for (const Term& t : terms_) n += t.atom->size;
  return n;
}

void Expr::add_term(std::int64_t coefficient, const std::shared_ptr<const Atom>& atom) {
  const auto place = std::ranges::lower_bound(
      terms_, *atom, [](const Atom& x, const Atom& y) { return (x <=> y) < 0; },
      [](const Term& t) -> const Atom& { return *t.atom; });
  if (place == terms_.end() || (*place->atom <=> *atom) != 0) {
    terms_.insert(place, {coefficient, atom});
  } else if ((place->coefficient += coefficient) == 0) {
    terms_.erase(place);
  }
}

Expr operator+(const Expr& a, const Expr& b) {
  Expr sum = a;
  sum.constant_ += b.constant_;
  for (const Expr::Term& t : b.terms_) sum.add_term(t.coefficient, t.atom);
  return sum;
}

Expr operator*(const Expr& a, std::int64_t factor) {
  if (factor == 0) return {};
  Expr product = a;
  product.constant_ *= factor;
  for (Expr::Term& t : product.terms_) t.coefficient *= factor;
  return product;
}

namespace {

// The largest number that divides d and all coefficients.
std::int64_t common_factor(const Expr& e, std::int64_t d) {
  for (const Expr::Term& t : e.terms()) d = std::gcd(d, t.coefficient);
  return d;
}

const Atom* sole_atom(const Expr& e) {
  return e.terms().size() == 1 && e.terms()[0].coefficient == 1 ? e.terms()[0].atom.get() : nullptr;
}

// e = multiple·d + rest: terms that d divides, and as much of the constant.
struct Divided {
  Expr multiple, rest;
};
Divided divide_terms(const Expr& e, std::int64_t d) {
  Divided result{Expr(floor_div(e.constant(), d)), Expr(floor_mod(e.constant(), d))};
  for (const Expr::Term& t : e.terms()) {
    if (t.coefficient % d == 0)
      result.multiple = result.multiple + Expr::term(t.coefficient / d, t.atom);
    else
      result.rest = result.rest + Expr::term(t.coefficient, t.atom);
  }
  return result;
}

}  // namespace

Expr Expr::term(std::int64_t coefficient, std::shared_ptr<const Atom> atom) {
  Expr e;
  if (coefficient != 0) e.terms_.push_back({coefficient, std::move(atom)});
  return e;
}

// With e = g·a + k:  floor(e / (g·d)) = floor((a + floor(k / g)) / d).
// floor((floor(x / a) + k) / d) = floor((x + k·a) / (a·d)), for one inner division; the sum of two has no such form:
// (1 div 2 + 3 div 2) div 2 is 0, but (1 + 3) div 4 is 1.
Expr Expr::floor_div(std::int64_t d) const {
  HLOOM_CHECK(d > 0);
  if (d == 1) return *this;
  auto [multiple, rest] = divide_terms(*this, d);
  if (rest.is_constant()) return multiple;
  if (const std::int64_t g = common_factor(rest, d); g > 1)
    return multiple + divide_terms(rest, g).multiple.floor_div(d / g);
  if (const Atom* inner = sole_atom(rest)) {
    if (inner->kind == Atom::Kind::FloorDiv && inner->number <= kLimit / d)
      return multiple + (*inner->operand + rest.constant() * inner->number).floor_div(inner->number * d);
    if (inner->kind == Atom::Kind::Mod && rest.constant() == 0 && inner->number % d == 0)
      return multiple + inner->operand->floor_div(d).mod(inner->number / d);
  }
  const std::int64_t size = rest.size() + 1;
  return multiple + of_atom({Atom::Kind::FloorDiv, {}, d, std::make_shared<const Expr>(std::move(rest)), size});
}

// (g·a + k) mod (g·d) = g·((a + floor(k / g)) mod d) + k mod g.
// c·(x mod n) and c·x differ by a multiple of c·n.
Expr Expr::mod(std::int64_t d) const {
  HLOOM_CHECK(d > 0);
  if (d == 1) return {};
  Expr rest = divide_terms(*this, d).rest;
  for (const Term& t : rest.terms())
    if (t.atom->kind == Atom::Kind::Mod && (t.coefficient * t.atom->number) % d == 0)
      return (rest - term(t.coefficient, t.atom) + *t.atom->operand * t.coefficient).mod(d);
  if (rest.is_constant()) return rest;
  if (const std::int64_t g = common_factor(rest, d); g > 1)
    return divide_terms(rest, g).multiple.mod(d / g) * g + floor_mod(rest.constant(), g);
  if (const Atom* inner = sole_atom(rest);
      inner && rest.constant() == 0 && inner->kind == Atom::Kind::Mod && inner->number <= d)
    return rest;
  const std::int64_t size = rest.size() + 1;
  return of_atom({Atom::Kind::Mod, {}, d, std::make_shared<const Expr>(std::move(rest)), size});
}

namespace {

std::string to_string(const Atom& atom) {
  if (atom.kind == Atom::Kind::Variable) {
    constexpr const char* kNames[] = {"d", "s", "rt"};
    return kNames[static_cast<int>(atom.variable)] + std::to_string(atom.number);
  }
  const std::string inner = hloom::indexing::to_string(*atom.operand);
  const bool plain = atom.operand->is_variable();
  return (plain ? inner : "(" + inner + ")") + (atom.kind == Atom::Kind::Mod ? " mod " : " floordiv ") +
         std::to_string(atom.number);
}

}  // namespace

std::string to_string(const Expr& e) {
  std::string text;
  for (const Expr::Term& t : e.terms()) {
    const std::int64_t c = t.coefficient;
    text += text.empty() ? (c < 0 ? "-" : "") : (c < 0 ? " - " : " + ");
    const std::string atom = to_string(*t.atom);
    const bool plain = t.atom->kind == Atom::Kind::Variable;
    text += (c == 1 || c == -1) && plain ? atom
            : plain ? atom + "*" + std::to_string(std::abs(c))
                    : "(" + atom + ")" + (std::abs(c) == 1 ? "" : "*" + std::to_string(std::abs(c)));
  }
  const std::int64_t k = e.constant();
  if (text.empty()) return std::to_string(k);
  if (k != 0) text += (k < 0 ? " - " : " + ") + std::to_string(std::abs(k));
  return text;
}

namespace {

template <typename Value, typename OfVariable, typename OfDivision>
Value fold(const Expr& e, const OfVariable& of_variable, const OfDivision& of_division) {
  Value sum(e.constant());
  for (const Expr::Term& t : e.terms()) {
    const Atom& a = *t.atom;
    const Value v = a.kind == Atom::Kind::Variable ? of_variable(a)
                                                   : of_division(a, fold<Value>(*a.operand, of_variable, of_division));
    sum = sum + v * t.coefficient;
  }
  return sum;
}

}  // namespace

std::int64_t evaluate(const Expr& e, const Point& point) {
  return fold<std::int64_t>(
      e, [&](const Atom& a) { return point.of(a.variable, a.number); },
      [](const Atom& a, std::int64_t x) {
        return a.kind == Atom::Kind::Mod ? floor_mod(x, a.number) : floor_div(x, a.number);
      });
}

Expr substitute(const Expr& e, const Assignment<Expr>& with) {
  return fold<Expr>(
      e, [&](const Atom& a) { return with.of(a.variable, a.number); },
      [](const Atom& a, const Expr& x) { return a.kind == Atom::Kind::Mod ? x.mod(a.number) : x.floor_div(a.number); });
}

namespace {

// Interval arithmetic whose ends stop at the limit.
struct Bounds {
  explicit Bounds(std::int64_t point) : low(point), high(point) {}
  Bounds(std::int64_t l, std::int64_t h) : low(l), high(h) {}
  std::int64_t low, high;
};
Bounds operator+(const Bounds& a, const Bounds& b) {
  return {clamp_wide(__int128{a.low} + b.low), clamp_wide(__int128{a.high} + b.high)};
}
Bounds operator*(const Bounds& a, std::int64_t c) {
  const std::int64_t x = clamp_wide(__int128{a.low} * c), y = clamp_wide(__int128{a.high} * c);
  return {std::min(x, y), std::max(x, y)};
}

}  // namespace

Interval bounds(const Expr& e, const Domain& domain) {
  const auto b = fold<Bounds>(
      e,
      [&](const Atom& a) {
        const Interval& v = domain.of(a.variable, a.number);
        return Bounds(v.low, v.high);
      },
      [](const Atom& a, const Bounds& x) {
        const std::int64_t low = floor_div(x.low, a.number), high = floor_div(x.high, a.number);
        if (a.kind == Atom::Kind::FloorDiv) return Bounds(low, high);
        return low == high ? Bounds(floor_mod(x.low, a.number), floor_mod(x.high, a.number)) : Bounds(0, a.number - 1);
      });
  return {b.low, b.high};
}

namespace {

// One simplification of one expression: what its parts share.
class Simplifier {
 public:
  Simplifier(const Domain& domain, std::int64_t& budget) : domain_(domain), budget_(budget) {}

  Expr run(const Expr& e) {
    Expr now = e;
    for (;;) {
      Expr next = recombined(rebuilt(now));
      if (next == now || budget_ <= 0) return next;
      now = std::move(next);
    }
  }

 private:
  Expr rebuilt(const Expr& e) {
    Expr sum(e.constant());
    for (const Expr::Term& t : e.terms()) sum = sum + simplified(t.atom) * t.coefficient;
    return sum;
  }

  Expr simplified(const std::shared_ptr<const Atom>& atom) {
    if (--budget_ <= 0) return Expr::term(1, atom);
    if (atom->kind == Atom::Kind::Variable) {
      const Interval& v = domain_.of(atom->variable, atom->number);
      return v.is_point() ? Expr(v.low) : Expr::term(1, atom);
    }
    const Expr x = recombined(rebuilt(*atom->operand));
    return atom->kind == Atom::Kind::Mod ? remainder(x, atom->number) : quotient(x, atom->number);
  }

  // e = g·a + b with b in [0, g), if there is such a g that divides d: then b does not carry.
  struct Parts {
    std::int64_t g;
    Expr a, b;
  };
  std::optional<Parts> parts_that_do_not_carry(const Expr& e, std::int64_t d) {
    std::vector<std::int64_t> factors;
    for (const Expr::Term& t : e.terms())
      if (const std::int64_t g = std::gcd(t.coefficient, d); g > 1 && g < d) factors.push_back(g);
    std::ranges::sort(factors, std::greater());
    factors.erase(std::unique(factors.begin(), factors.end()), factors.end());
    for (const std::int64_t g : factors) {
      budget_ -= static_cast<std::int64_t>(e.terms().size());
      auto [a, b] = divide_terms(e, g);
      if (Interval{0, g - 1}.contains(bounds(b, domain_))) return Parts{g, std::move(a), std::move(b)};
    }
    return std::nullopt;
  }

  Expr quotient(const Expr& x, std::int64_t d) {
    const auto [multiple, rest] = divide_terms(x, d);
    const Interval b = bounds(rest, domain_);
    if (floor_div(b.low, d) == floor_div(b.high, d)) return multiple + floor_div(b.low, d);
    if (const auto parts = parts_that_do_not_carry(rest, d)) return multiple + quotient(parts->a, d / parts->g);
    return multiple + rest.floor_div(d);
  }

  Expr remainder(const Expr& x, std::int64_t d) {
    const Expr rest = divide_terms(x, d).rest;
    const Interval b = bounds(rest, domain_);
    if (const std::int64_t q = floor_div(b.low, d); q == floor_div(b.high, d)) return rest - q * d;
    if (const auto parts = parts_that_do_not_carry(rest, d))
      return remainder(parts->a, d / parts->g) * parts->g + parts->b;
    return rest.mod(d);
  }

  // c·(x mod d) + c·d·(x div d) is c·x: wherever c·x - c·d·(x div d) in the remainder's place makes the sum shorter.
  Expr recombined(const Expr& e) {
    for (const Expr::Term& t : e.terms()) {
      if (t.atom->kind != Atom::Kind::Mod) continue;
      budget_ -= e.size();
      if (budget_ <= 0) return e;
      const Expr& x = *t.atom->operand;
      const std::int64_t d = t.atom->number;
      const Expr other =
          e - Expr::term(t.coefficient, t.atom) + x * t.coefficient - x.floor_div(d) * (t.coefficient * d);
      if (other.size() < e.size()) return recombined(other);
    }
    return e;
  }

  const Domain& domain_;
  std::int64_t& budget_;
};

}  // namespace

Expr simplify(const Expr& e, const Domain& domain, std::int64_t& budget) { return Simplifier(domain, budget).run(e); }

}  // namespace hloom::indexing
