#include "indexing/map.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>

#include "indexing/piecewise.h"
#include "indexing/work_map.h"

namespace hloom::indexing {
namespace {

IndexMap parse(std::string_view text) {
  auto map = parse_map(text);
  if (!map) ADD_FAILURE() << map.error().message();
  return map ? *map : IndexMap();
}
std::string simplified(std::string_view text) { return to_string(parse(text).simplified()); }

// Calls f for each point of the variables' intervals.
void for_each_point(const Domain& domain, const std::function<void(const Point&)>& f) {
  std::vector<std::pair<std::vector<std::int64_t>*, std::size_t>> slots;
  std::vector<Interval> intervals;
  Point point;
  const auto add = [&](const std::vector<Interval>& list, std::vector<std::int64_t>& values) {
    values.resize(list.size());
    for (std::size_t n = 0; n < list.size(); ++n) slots.emplace_back(&values, n), intervals.push_back(list[n]);
  };
  add(domain.dimensions, point.dimensions), add(domain.ranges, point.ranges), add(domain.runtime, point.runtime);
  const std::function<void(std::size_t)> visit = [&](std::size_t n) {
    if (n == slots.size()) return f(point);
    for (std::int64_t v = intervals[n].low; v <= intervals[n].high; ++v) {
      (*slots[n].first)[slots[n].second] = v;
      visit(n + 1);
    }
  };
  visit(0);
}

// The points that a map lets through, with what it says of them.
std::vector<std::pair<std::vector<std::int64_t>, std::vector<std::int64_t>>> graph(const IndexMap& map,
                                                                                   const Domain& domain) {
  std::vector<std::pair<std::vector<std::int64_t>, std::vector<std::int64_t>>> all;
  for_each_point(domain, [&](const Point& p) {
    if (map.contains(p)) all.emplace_back(p.dimensions, map.evaluate(p));
  });
  return all;
}

TEST(Expr, DividesTowardMinusInfinity) {
  for (std::int64_t a = -9; a <= 9; ++a)
    for (std::int64_t d = 1; d <= 5; ++d) {
      EXPECT_EQ(floor_div(a, d),
                static_cast<std::int64_t>(std::floor(static_cast<double>(a) / static_cast<double>(d))));
      EXPECT_EQ(floor_div(a, d) * d + floor_mod(a, d), a);
      EXPECT_EQ(evaluate(Expr::dimension(0).floor_div(d), {{a}, {}, {}}), floor_div(a, d));
    }
}

TEST(Expr, SumsAreCanonical) {
  const Expr a = Expr::dimension(0), b = Expr::range(1);
  EXPECT_EQ(a + b + a, b + a * 2);
  EXPECT_EQ(a - a, Expr(0));
  EXPECT_EQ((a * 6 + b * 4).floor_div(2), a * 3 + b * 2);
  EXPECT_EQ((a * 6 + 1).mod(6), Expr(1));
  EXPECT_EQ(to_string((a * 20 + b).floor_div(20)), "d0 + (s1 floordiv 20)");
  EXPECT_EQ(a.floor_div(3).floor_div(4), a.floor_div(12));
}

// (1 div 2 + 3 div 2) div 2 is 0, but (1 + 3) div 4 is 1.
TEST(Expr, DoesNotMergeTwoInnerDivisions) {
  const Expr e = (Expr::dimension(0).floor_div(2) + Expr::dimension(1).floor_div(2)).floor_div(2);
  EXPECT_EQ(evaluate(e, {{1, 3}, {}, {}}), 0);
}

// Random expressions of two dimensions and a range.
class Author {
 public:
  explicit Author(unsigned seed) : random_(seed) {}
  Expr write(int depth) {
    switch (depth == 0 ? below(2) : below(7)) {
      case 0: return Expr(below(13) - 6);
      case 1: return below(3) == 0 ? Expr::range(0) : Expr::dimension(below(2));
      case 2: return write(depth - 1) + write(depth - 1);
      case 3: return write(depth - 1) - write(depth - 1);
      case 4: return write(depth - 1) * (below(9) - 4);
      case 5: return write(depth - 1).floor_div(1 + below(8));
      default: return write(depth - 1).mod(1 + below(8));
    }
  }
  Domain domain() {
    const auto interval = [&] {
      const std::int64_t low = below(7) - 3;
      return Interval{low, low + below(7)};
    };
    return {{interval(), interval()}, {interval()}, {}};
  }
  std::int64_t below(std::int64_t n) { return static_cast<std::int64_t>(random_() % static_cast<unsigned>(n)); }

 private:
  std::mt19937 random_;
};

// The decisive law: simplified or not, the value is the same at every point, and within the bounds.
TEST(Expr, SimplifiesToTheSameValue) {
  std::int64_t shorter = 0;
  for (unsigned seed = 0; seed < 4000; ++seed) {
    Author author(seed);
    const Expr e = author.write(5);
    const Domain domain = author.domain();
    std::int64_t budget = 10'000;
    const Expr simple = simplify(e, domain, budget);
    shorter += simple.size() < e.size();
    const Interval within = bounds(e, domain);
    for_each_point(domain, [&](const Point& p) {
      const std::int64_t value = evaluate(e, p);
      ASSERT_EQ(evaluate(simple, p), value)
          << "seed " << seed << ": " << to_string(e) << " became " << to_string(simple);
      ASSERT_TRUE(within.contains(value)) << "seed " << seed << ": " << to_string(e);
    });
  }
  EXPECT_GT(shorter, 400);
}

TEST(Expr, IsRightOutOfBudget) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    Author author(seed);
    const Expr e = author.write(6);
    const Domain domain = author.domain();
    std::int64_t budget = 1 + author.below(10);
    const Expr simple = simplify(e, domain, budget);
    for_each_point(domain, [&](const Point& p) { ASSERT_EQ(evaluate(simple, p), evaluate(e, p)); });
  }
}

// As above, with constraints: the same points pass and give the same.
TEST(IndexMap, SimplifiesToTheSameMap) {
  for (unsigned seed = 0; seed < 2000; ++seed) {
    Author author(seed);
    std::vector<Constraint> constraints;
    for (int n = 0; n < 2; ++n) {
      const std::int64_t low = author.below(9) - 4;
      constraints.push_back({author.write(3), {low, low + author.below(9)}});
    }
    const IndexMap map(author.domain(), {author.write(3), author.write(3)}, constraints);
    const IndexMap simple = map.simplified();
    if (simple.is_known_empty())
      EXPECT_TRUE(graph(map, map.domain()).empty()) << to_string(map);
    else
      ASSERT_EQ(graph(simple, map.domain()), graph(map, map.domain())) << to_string(map) << "\nbecame\n"
                                                                       << to_string(simple);
  }
}

TEST(IndexMap, PrintsAndParses) {
  for (unsigned seed = 0; seed < 500; ++seed) {
    Author author(seed);
    const IndexMap map(author.domain(), {author.write(4), author.write(3)},
                       {{author.write(3) + Expr::dimension(0).mod(7), {-1, 5}}});
    EXPECT_EQ(to_string(parse(to_string(map))), to_string(map));
  }
  // Names are free.
  EXPECT_EQ(parse("(i, j)[k]{t} -> (i + t, k mod 3), domain: i in [0, 9], j in [0, 1], k in [0, 8], t in [0, 2], i + k "
                  "in [0, 12]"),
            parse("(d0, d1)[s0]{rt0} -> (d0 + rt0, s0 mod 3), domain: d0 in [0, 9], d1 in [0, 1], s0 in [0, 8], rt0 in "
                  "[0, 2], d0 + s0 in [0, 12]"));
}

TEST(IndexMap, RefusesWhatItCannotRead) {
  for (const char* text :
       {"", "(d0)", "(d0) -> (d1), domain: d0 in [0, 1]", "(d0) -> (d0)", "(d0) -> (d0 mod 0), domain: d0 in [0, 1]",
        "(d0) -> (d0) x, domain: d0 in [0, 1]", "(d0) -> ((d0), domain: d0 in [0, 1]"})
    EXPECT_FALSE(parse_map(text)) << text;
  EXPECT_FALSE(parse_map("(d0) -> (" + std::string(10000, '(')));
}

TEST(IndexMap, NarrowsByConstraints) {
  // A constraint narrows a dimension so that a remainder goes.
  EXPECT_EQ(simplified("(d0) -> (d0 mod 8), domain: d0 in [0, 20], d0 in [9, 15]"),
            "(d0) -> (d0 - 8), domain: d0 in [9, 15]");
  EXPECT_EQ(simplified("(d0) -> (d0), domain: d0 in [0, 20], d0*-3 + 1 in [-20, -5]"),
            "(d0) -> (d0), domain: d0 in [2, 7]");
  EXPECT_EQ(simplified("(d0) -> (d0), domain: d0 in [-50, 50], d0 floordiv 8 in [-2, 1]"),
            "(d0) -> (d0), domain: d0 in [-16, 15]");
  EXPECT_TRUE(parse("(d0) -> (d0), domain: d0 in [0, 5], d0*2 in [7, 7]").simplified().is_known_empty());
  EXPECT_TRUE(
      parse("(d0) -> (d0), domain: d0 in [0, 5], d0 + 1 in [9, 12], d0 in [0, 2]").simplified().is_known_empty());
}

TEST(IndexMap, DropsLowOrderTermsThatDecideNothing) {
  EXPECT_EQ(simplified("(d0)[s0] -> (d0), domain: d0 in [0, 99], s0 in [0, 7], d0*8 + s0 in [0, 79]"),
            "(d0)[s0] -> (d0), domain: d0 in [0, 9], s0 in [0, 7]");
  // The twin that is off by one.
  EXPECT_EQ(simplified("(d0)[s0] -> (d0), domain: d0 in [0, 99], s0 in [0, 7], d0*8 + s0 in [0, 78]"),
            "(d0)[s0] -> (d0), domain: d0 in [0, 99], s0 in [0, 7], d0*8 + s0 in [0, 78]");
}

TEST(IndexMap, ComposesChains) {
  const auto reshape = [](const std::vector<std::int64_t>& from, const std::vector<std::int64_t>& to) {
    std::vector<Expr> coordinates;
    const IndexMap identity = IndexMap::identity(from);
    return IndexMap(identity.domain(), delinearize(linearize(identity.results(), from), to)).simplified();
  };
  EXPECT_EQ(compose(reshape({10, 10, 10}, {50, 20}), reshape({50, 20}, {10, 10, 10})),
            IndexMap::identity({10, 10, 10}));
  const IndexMap reverse = parse("(d0) -> (9 - d0), domain: d0 in [0, 9]");
  EXPECT_EQ(compose(reverse, reverse), IndexMap::identity({10}));
  EXPECT_EQ(compose(parse("(d0, d1) -> (d1, d0), domain: d0 in [0, 3], d1 in [0, 4]"),
                    parse("(d0, d1) -> (d1, d0), domain: d0 in [0, 4], d1 in [0, 3]")),
            IndexMap::identity({4, 5}));
  // b's ranges and runtime values come before a's.
  EXPECT_EQ(
      to_string(compose(parse("(d0)[s0]{rt0} -> (d0 + s0 + rt0), domain: d0 in [0, 9], s0 in [0, 4], rt0 in [0, 2]"),
                        parse("(d0)[s0]{rt0} -> (d0, s0 - rt0), domain: d0 in [0, 99], s0 in [0, 7], rt0 in [0, 1]"))),
      "(d0)[s0, s1]{rt0, rt1} -> (d0 + s1 + rt1, s0 - rt0), domain: d0 in [0, 9], s0 in [0, 7], s1 in [0, 4], rt0 in "
      "[0, 1], rt1 in [0, 2]");
  const IndexMap nothing = parse("(d0) -> (d0, d0), domain: d0 in [3, 2]");
  EXPECT_TRUE(compose(IndexMap::identity({4}), nothing).is_known_empty());
  EXPECT_EQ(compose(IndexMap::identity({4}), nothing).results().size(), 2u);
}

TEST(IndexMap, RemovesWhatIsNotUsed) {
  EXPECT_EQ(to_string(parse("(d0)[s0, s1, s2]{rt0, rt1} -> (s1 + rt1), domain: d0 in [0, 9], s0 in [0, 1], s1 in [0, "
                            "2], s2 in [0, 3], rt0 in [0, 4], rt1 in [0, 5], s1 + s2 in [0, 3]")
                          .without_unused()),
            "(d0)[s0, s1]{rt0} -> (s0 + rt0), domain: d0 in [0, 9], s0 in [0, 2], s1 in [0, 3], rt0 in [0, 5], s0 + s1 "
            "in [0, 3]");
}

// Ten dimensions there and back: bounded by the budget, not by the clock.
TEST(IndexMap, StaysWithinItsBudget) {
  const std::vector<std::int64_t> many(10, 3), other = {27, 3, 9, 81, 3, 3};
  const IndexMap identity = IndexMap::identity(many);
  const IndexMap there(identity.domain(), delinearize(linearize(identity.results(), many), other));
  const IndexMap back(IndexMap::identity(other).domain(),
                      delinearize(linearize(IndexMap::identity(other).results(), other), many));
  EXPECT_EQ(compose(there, back, 100'000), identity);
  const IndexMap cut_short = compose(there, back, 50);
  std::mt19937 random(1);
  for (int n = 0; n < 100; ++n) {
    Point p;
    for (int d = 0; d < 10; ++d) p.dimensions.push_back(static_cast<std::int64_t>(random() % 3));
    EXPECT_EQ(cut_short.evaluate(p), p.dimensions);
  }
}

TEST(Piecewise, CutsAHoleIntoDisjointBoxes) {
  const std::vector<Interval> box = {{0, 4}, {0, 5}, {1, 3}};
  for (std::int64_t low = -1; low <= 5; ++low)
    for (std::int64_t high = low; high <= 6; ++high) {
      const std::vector<Interval> hole = {{low, high}, {2, 3}, {high - 2, high}};
      const auto parts = difference(box, hole);
      for_each_point({box, {}, {}}, [&](const Point& p) {
        const auto in = [&](const std::vector<Interval>& b) {
          return std::ranges::equal(b, p.dimensions, [](const Interval& i, std::int64_t v) { return i.contains(v); });
        };
        ASSERT_EQ(std::ranges::count_if(parts, in), in(hole) ? 0 : 1);
      });
      EXPECT_LE(parts.size(), 6u);
    }
}

TEST(WorkMap, TilesCoverEachElementOnce) {
  std::mt19937 random(7);
  for (int n = 0; n < 200; ++n) {
    std::vector<std::int64_t> extents, tiles;
    std::int64_t elements = 1;
    for (std::uint32_t d = 0; d <= random() % 3; ++d) {
      extents.push_back(1 + static_cast<std::int64_t>(random() % 7));
      tiles.push_back(1 + static_cast<std::int64_t>(random() % 5));
      elements *= extents.back();
    }
    const IndexMap map = tile_map(extents, tiles);
    std::vector<int> seen(static_cast<std::size_t>(elements));
    for (const auto& [point, element] : graph(map, map.domain())) {
      std::int64_t linear = 0;
      for (std::size_t d = 0; d < extents.size(); ++d) linear = linear * extents[d] + element[d];
      ++seen[static_cast<std::size_t>(linear)];
    }
    EXPECT_TRUE(std::ranges::all_of(seen, [](int times) { return times == 1; })) << to_string(map);
  }
}

TEST(WorkMap, SplitsByOuterDimensions) {
  const auto split = [](const std::vector<std::int64_t>& dims, std::int64_t groups) {
    const WorkSplit s = split_work(Shape::array(DType::F32, dims), groups);
    return std::pair(s.groups, s.elements_per_group);
  };
  EXPECT_EQ(split({3, 5, 64}, 8), std::pair(std::int64_t{8}, std::int64_t{128}));
  EXPECT_EQ(split({2, 2, 2, 1000}, 16), std::pair(std::int64_t{16}, std::int64_t{500}));
  EXPECT_EQ(split({5}, 8), std::pair(std::int64_t{5}, std::int64_t{1}));
  EXPECT_EQ(split({}, 8), std::pair(std::int64_t{1}, std::int64_t{1}));
  EXPECT_EQ(split({4, 0}, 8), std::pair(std::int64_t{1}, std::int64_t{0}));
  Shape packed = Shape::array(DType::S4, {8, 32});
  Layout layout = packed.layout();
  Layout::Extra extra;
  extra.element_bits = 4;
  layout.set_parts(extra);
  packed.set_layout(layout);
  EXPECT_EQ(split_work(packed, 3).groups, 3);
}

TEST(WorkMap, GoesInTheOrderOfBytes) {
  std::mt19937 random(3);
  for (int n = 0; n < 100; ++n) {
    std::vector<std::int64_t> dims, order;
    for (std::uint32_t d = 0; d <= random() % 4; ++d)
      dims.push_back(1 + static_cast<std::int64_t>(random() % 4)), order.push_back(d);
    std::shuffle(order.begin(), order.end(), random);
    const Shape shape = Shape::array(DType::F32, dims, Layout{order, nullptr});
    const WorkSplit split = split_work(shape, 1 + static_cast<std::int64_t>(random() % 6));
    const IndexMap map = work_map(shape, split);
    std::int64_t next = 0;
    for (const auto& [point, element] : graph(map, map.domain())) {
      std::int64_t offset = 0, stride = 1;
      for (const std::int64_t d : order) {
        offset += element[static_cast<std::size_t>(d)] * stride;
        stride *= dims[static_cast<std::size_t>(d)];
      }
      ASSERT_EQ(offset, next++) << to_string(map);
    }
    EXPECT_EQ(next, shape.num_elements());
  }
}

}  // namespace
}  // namespace hloom::indexing
