#include "indexing/map.h"

#include <algorithm>

#include "base/check.h"

namespace hloom::indexing {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

bool any_empty(const std::vector<Interval>& intervals) {
  return std::ranges::any_of(intervals, [](const Interval& i) { return i.is_empty(); });
}

Interval shifted(const Interval& i, std::int64_t by) { return {i.low + by, i.high + by}; }

// The integers x with c·x in `in`.
Interval divided(const Interval& in, std::int64_t c) {
  const auto up = [](std::int64_t a, std::int64_t d) { return -floor_div(-a, d); };
  if (c > 0) return {up(in.low, c), floor_div(in.high, c)};
  return {up(-in.high, -c), floor_div(-in.low, -c)};
}

bool is_sole_variable(const Expr& e) {
  return e.terms().size() == 1 && e.terms()[0].atom->kind == Atom::Kind::Variable;
}

Interval& interval_of(Domain& domain, const Atom& variable) {
  auto& list = variable.variable == VariableKind::Dimension ? domain.dimensions
               : variable.variable == VariableKind::Range   ? domain.ranges
                                                            : domain.runtime;
  return list[at(variable.number)];
}

// expr in `in`, with the constant and a common factor of the terms taken into the interval; and a division, whose
// dividend then has an interval of its own.
Constraint normalized(Constraint c) {
  constexpr std::int64_t kLarge = std::int64_t{1} << 40;  // no products overflow below
  for (;;) {
    if (c.in.low < -kLarge || c.in.high > kLarge) return c;
    c.in = shifted(c.in, -c.expr.constant());
    c.expr = c.expr - c.expr.constant();
    if (c.expr.terms().size() != 1) return c;
    const Expr::Term t = c.expr.terms()[0];
    c.in = divided(c.in, t.coefficient);
    c.expr = Expr::term(1, t.atom);
    if (t.atom->kind != Atom::Kind::FloorDiv) return c;
    const std::int64_t d = t.atom->number;
    if (c.in.is_empty()) return c;
    c.in = {c.in.low * d, c.in.high * d + d - 1};
    c.expr = *t.atom->operand;
  }
}

// a·g + b in [low, high], where b lies in [0, g) and the ends are such that b makes no difference: a in … is as good.
Constraint without_low_order(const Constraint& c, const Domain& domain) {
  for (const Expr::Term& t : c.expr.terms()) {
    const std::int64_t g = std::abs(t.coefficient);
    if (g < 2) continue;
    Expr a, b;
    for (const Expr::Term& u : c.expr.terms()) {
      if (u.coefficient % g == 0)
        a = a + Expr::term(u.coefficient / g, u.atom);
      else
        b = b + Expr::term(u.coefficient, u.atom);
    }
    const Interval bb = bounds(b, domain);
    if (b.is_constant() || bb.low < 0 || bb.high >= g) continue;
    // Of all b the least decides the upper end and the greatest the lower one: they must agree with the others.
    const Interval least = {-floor_div(-(c.in.low - bb.low), g), floor_div(c.in.high - bb.low, g)};
    const Interval most = {-floor_div(-(c.in.low - bb.high), g), floor_div(c.in.high - bb.high, g)};
    if (least == most) return {a, least};
  }
  return c;
}

}  // namespace

IndexMap::IndexMap(Domain domain, std::vector<Expr> results, std::vector<Constraint> constraints,
                   std::vector<RuntimeSource> sources)
    : domain_(std::move(domain)),
      results_(std::move(results)),
      constraints_(std::move(constraints)),
      sources_(std::move(sources)) {
  HLOOM_CHECK(sources_.empty() || sources_.size() == domain_.runtime.size());
}

IndexMap IndexMap::identity(const std::vector<std::int64_t>& sizes) {
  Domain domain;
  std::vector<Expr> results;
  for (const std::int64_t size : sizes) {
    results.push_back(Expr::dimension(static_cast<std::int64_t>(results.size())));
    domain.dimensions.push_back({0, size - 1});
  }
  return IndexMap(std::move(domain), std::move(results));
}

bool IndexMap::is_known_empty() const {
  return any_empty(domain_.dimensions) || any_empty(domain_.ranges) || any_empty(domain_.runtime) ||
         std::ranges::any_of(constraints_, [](const Constraint& c) {
           return c.in.is_empty() || (c.expr.is_constant() && !c.in.contains(c.expr.constant()));
         });
}

bool IndexMap::contains(const Point& point) const {
  const auto inside = [](const std::vector<Interval>& intervals, const std::vector<std::int64_t>& values) {
    return std::ranges::equal(intervals, values, [](const Interval& i, std::int64_t v) { return i.contains(v); });
  };
  return inside(domain_.dimensions, point.dimensions) && inside(domain_.ranges, point.ranges) &&
         inside(domain_.runtime, point.runtime) && std::ranges::all_of(constraints_, [&](const Constraint& c) {
           return c.in.contains(indexing::evaluate(c.expr, point));
         });
}

std::vector<std::int64_t> IndexMap::evaluate(const Point& point) const {
  std::vector<std::int64_t> values;
  for (const Expr& e : results_) values.push_back(indexing::evaluate(e, point));
  return values;
}

IndexMap IndexMap::simplified(std::int64_t budget) const {
  IndexMap m = *this;
  // A constraint on one variable narrows its interval, which may simplify the others.
  for (bool narrowed = true; narrowed && budget > 0 && !m.is_known_empty();) {
    narrowed = false;
    std::vector<Constraint> left;
    for (const Constraint& c : m.constraints_) {
      Constraint simple = without_low_order(normalized({simplify(c.expr, m.domain_, budget), c.in}), m.domain_);
      if (simple.in.contains(bounds(simple.expr, m.domain_))) continue;
      if (!is_sole_variable(simple.expr) || simple.expr.terms()[0].coefficient != 1 || simple.expr.constant() != 0) {
        if (std::ranges::find(left, simple) == left.end()) left.push_back(std::move(simple));
        continue;
      }
      Interval& interval = interval_of(m.domain_, *simple.expr.terms()[0].atom);
      interval = intersection(interval, simple.in);
      narrowed = true;
      if (interval.is_empty()) return m;
    }
    m.constraints_ = std::move(left);
  }
  if (m.is_known_empty()) return m;
  for (Expr& e : m.results_) e = simplify(e, m.domain_, budget);
  return m;
}

namespace {

void collect_variables(const Expr& e, std::vector<bool>& ranges, std::vector<bool>& runtime) {
  for (const Expr::Term& t : e.terms()) {
    if (t.atom->kind != Atom::Kind::Variable)
      collect_variables(*t.atom->operand, ranges, runtime);
    else if (t.atom->variable == VariableKind::Range)
      ranges[at(t.atom->number)] = true;
    else if (t.atom->variable == VariableKind::Runtime)
      runtime[at(t.atom->number)] = true;
  }
}

// New numbers for those that are used; and their intervals alone in `intervals`.
std::vector<Expr> renumber(VariableKind kind, const std::vector<bool>& used, std::vector<Interval>& intervals) {
  std::vector<Expr> names;
  std::vector<Interval> kept;
  for (std::size_t n = 0; n < used.size(); ++n) {
    names.push_back(Expr::variable(kind, static_cast<std::int64_t>(kept.size())));
    // An empty interval says that the map is empty.
    if (used[n] || intervals[n].is_empty()) kept.push_back(intervals[n]);
  }
  intervals = std::move(kept);
  return names;
}

}  // namespace

IndexMap IndexMap::without_unused() const {
  std::vector<bool> ranges(domain_.ranges.size()), runtime(domain_.runtime.size());
  for (const Expr& e : results_) collect_variables(e, ranges, runtime);
  for (const Constraint& c : constraints_) collect_variables(c.expr, ranges, runtime);
  IndexMap m = *this;
  Assignment<Expr> names;
  for (std::size_t d = 0; d < domain_.dimensions.size(); ++d)
    names.dimensions.push_back(Expr::dimension(static_cast<std::int64_t>(d)));
  names.ranges = renumber(VariableKind::Range, ranges, m.domain_.ranges);
  names.runtime = renumber(VariableKind::Runtime, runtime, m.domain_.runtime);
  for (Expr& e : m.results_) e = substitute(e, names);
  for (Constraint& c : m.constraints_) c.expr = substitute(c.expr, names);
  m.sources_.clear();
  for (std::size_t n = 0; n < sources_.size(); ++n)
    if (runtime[n] || domain_.runtime[n].is_empty()) m.sources_.push_back(sources_[n]);
  return m;
}

bool IndexMap::operator==(const IndexMap& other) const {
  return domain_.dimensions == other.domain_.dimensions && domain_.ranges == other.domain_.ranges &&
         domain_.runtime == other.domain_.runtime && results_ == other.results_ && constraints_ == other.constraints_ &&
         sources_ == other.sources_;
}

IndexMap compose(const IndexMap& a, const IndexMap& b, std::int64_t budget) {
  HLOOM_CHECK(a.results().size() == b.domain().dimensions.size());
  // a's ranges and runtime values move behind b's.
  const auto moved = [](VariableKind kind, std::size_t n, std::size_t by) {
    std::vector<Expr> names;
    for (std::size_t k = 0; k < n; ++k) names.push_back(Expr::variable(kind, static_cast<std::int64_t>(k + by)));
    return names;
  };
  const Assignment<Expr> for_a{moved(VariableKind::Dimension, a.domain().dimensions.size(), 0),
                               moved(VariableKind::Range, a.domain().ranges.size(), b.domain().ranges.size()),
                               moved(VariableKind::Runtime, a.domain().runtime.size(), b.domain().runtime.size())};
  Assignment<Expr> for_b{{},
                         moved(VariableKind::Range, b.domain().ranges.size(), 0),
                         moved(VariableKind::Runtime, b.domain().runtime.size(), 0)};
  std::vector<Constraint> constraints;
  for (std::size_t d = 0; d < a.results().size(); ++d) {
    for_b.dimensions.push_back(substitute(a.results()[d], for_a));
    constraints.push_back({for_b.dimensions.back(), b.domain().dimensions[d]});
  }
  for (const Constraint& c : b.constraints()) constraints.push_back({substitute(c.expr, for_b), c.in});
  for (const Constraint& c : a.constraints()) constraints.push_back({substitute(c.expr, for_a), c.in});
  std::vector<Expr> results;
  for (const Expr& e : b.results()) results.push_back(substitute(e, for_b));
  const auto joined = [](auto first, const auto& second) {
    first.insert(first.end(), second.begin(), second.end());
    return first;
  };
  Domain domain{a.domain().dimensions, joined(b.domain().ranges, a.domain().ranges),
                joined(b.domain().runtime, a.domain().runtime)};
  // Sources of b name elements by its dimensions, which are a's results; those of a are another instruction's.
  std::vector<RuntimeSource> sources;
  if (a.domain().runtime.empty())
    for (RuntimeSource s : b.sources()) {
      for (Expr& e : s.element) e = substitute(e, for_b);
      sources.push_back(std::move(s));
    }
  return IndexMap(std::move(domain), std::move(results), std::move(constraints), std::move(sources)).simplified(budget);
}

std::vector<Expr> delinearize(const Expr& linear, const std::vector<std::int64_t>& sizes) {
  std::vector<Expr> coordinates(sizes.size());
  std::int64_t stride = 1;
  const auto first = std::ranges::find_if(sizes, [](std::int64_t s) { return s != 1; }) - sizes.begin();
  for (std::int64_t d = static_cast<std::int64_t>(sizes.size()) - 1; d >= 0; --d) {
    if (sizes[at(d)] == 1) continue;
    const Expr q = linear.floor_div(stride);
    coordinates[at(d)] = d == first ? q : q.mod(std::max<std::int64_t>(sizes[at(d)], 1));
    stride *= std::max<std::int64_t>(sizes[at(d)], 1);
  }
  return coordinates;
}

Expr linearize(const std::vector<Expr>& coordinates, const std::vector<std::int64_t>& sizes) {
  Expr linear;
  for (std::size_t d = 0; d < sizes.size(); ++d) linear = linear * sizes[d] + coordinates[d];
  return linear;
}

}  // namespace hloom::indexing
