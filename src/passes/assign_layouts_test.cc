// The choice of layouts: what it finds in programs whose best plan is known, and that it never costs more, changes no
// value, and holds still.
#include "passes/assign_layouts.h"

#include <algorithm>
#include <random>

#include "arrays/compare.h"
#include "interp/interpret.h"
#include "passes/layout_choice.h"
#include "passes/pipeline.h"
#include "passes/testing.h"

namespace hloom::passes {
namespace {

using hlo::Instruction;
using hlo::Opcode;

// The module after the pass, which then finds nothing more.
std::string assigned(const std::string& text) {
  const auto module = testing::parse(text);
  testing::run("assign-layouts", *module);
  testing::run("remove-dead", *module);
  EXPECT_EQ(testing::run("assign-layouts", *module), Changed::No);
  auto options = text::PrintOptions::short_parsable();
  return text::print(*module, options);
}
std::string entry(const std::string& layout, const std::string& body) {
  return "HloModule m, entry_computation_layout={" + layout + "}\nENTRY e {\n" + body + "}\n";
}
bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(AssignLayouts, ADotWritesWhatIsTransposed) {
  const std::string text = assigned(entry("(f32[8,4]{1,0}, f32[8,6]{1,0})->f32[6,4]{1,0}",
                                          "a = f32[8,4]{1,0} parameter(0)\nb = f32[8,6]{1,0} parameter(1)\n"
                                          "d = f32[4,6]{1,0} dot(a, b), lhs_contracting_dims={0}, rhs_contracting_dims={0}\n"
                                          "ROOT t = f32[6,4]{1,0} transpose(d), dimensions={1,0}\n"));
  EXPECT_TRUE(has(text, "f32[4,6]{0,1} dot")) << text;
  EXPECT_TRUE(has(text, "f32[6,4]{1,0} bitcast")) << text;
  EXPECT_FALSE(has(text, "transpose(")) << text;
}

TEST(AssignLayouts, ADotReadsWhatIsTransposed) {
  const std::string text = assigned(entry("(f32[8,4]{1,0}, f32[8,6]{1,0})->f32[4,6]{1,0}",
                                          "a = f32[8,4]{1,0} parameter(0)\nb = f32[8,6]{1,0} parameter(1)\n"
                                          "t = f32[4,8]{1,0} transpose(a), dimensions={1,0}\n"
                                          "ROOT d = f32[4,6]{1,0} dot(t, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"));
  EXPECT_TRUE(has(text, "f32[4,8]{0,1} bitcast")) << text;
}

TEST(AssignLayouts, ElementwiseWorkFollowsTheMostBytes) {
  // Three of four arrays come and go column-major: the fourth is turned.
  const std::string text =
      assigned(entry("(f32[8,4]{0,1}, f32[8,4]{0,1}, f32[8,4]{1,0})->f32[8,4]{0,1}",
                     "a = f32[8,4]{0,1} parameter(0)\nb = f32[8,4]{0,1} parameter(1)\nc = f32[8,4]{1,0} parameter(2)\n"
                     "a1 = f32[8,4]{1,0} copy(a)\nb1 = f32[8,4]{1,0} copy(b)\nx = f32[8,4]{1,0} add(a1, b1)\n"
                     "y = f32[8,4]{1,0} multiply(x, c)\nROOT r = f32[8,4]{0,1} copy(y)\n"));
  EXPECT_TRUE(has(text, "add(a, b)")) << text;
  EXPECT_TRUE(has(text, "f32[8,4]{0,1} copy(c)")) << text;
}

TEST(AssignLayouts, TheRestOfAnOptimizerStaysRowMajor) {
  // Parameters are row-major, one result is not: turned once where it leaves.
  const std::string text = assigned(
      entry("(f32[8,4]{1,0}, f32[4,8]{1,0}, f32[8,4]{1,0})->(f32[8,4]{1,0}, f32[8,4]{0,1})",
            "p = f32[8,4]{1,0} parameter(0)\ng = f32[4,8]{1,0} parameter(1)\nm = f32[8,4]{1,0} parameter(2)\n"
            "n = f32[8,4]{1,0} add(m, p)\nq = f32[8,4]{1,0} add(p, n)\nout = f32[8,4]{0,1} copy(n)\n"
            "ROOT r = (f32[8,4]{1,0}, f32[8,4]{0,1}) tuple(q, out)\n"));
  EXPECT_TRUE(has(text, "f32[8,4]{1,0} add(m, p)")) << text;
  EXPECT_TRUE(has(text, "f32[8,4]{0,1} copy(n)")) << text;
}

TEST(AssignLayouts, LoopsCarryTheLayoutOfTheirBodies) {
  // The body wants its array turned in each iteration: it comes in turned instead, once.
  const std::string text = assigned(
      "HloModule m\n"
      "body { p = (s32[], f32[8,8]{1,0}, f32[8,8]{1,0}) parameter(0)\n i = s32[] get-tuple-element(p), index=0\n"
      " x = f32[8,8]{1,0} get-tuple-element(p), index=1\n w = f32[8,8]{1,0} get-tuple-element(p), index=2\n"
      " one = s32[] constant(1)\n j = s32[] add(i, one)\n t = f32[8,8]{1,0} transpose(w), dimensions={1,0}\n"
      " y = f32[8,8]{1,0} add(x, t)\n ROOT r = (s32[], f32[8,8]{1,0}, f32[8,8]{1,0}) tuple(j, y, w) }\n"
      "condition { p = (s32[], f32[8,8]{1,0}, f32[8,8]{1,0}) parameter(0)\n i = s32[] get-tuple-element(p), index=0\n"
      " n = s32[] constant(5)\n ROOT c = pred[] compare(i, n), direction=LT }\n"
      "ENTRY e { x = f32[8,8]{1,0} parameter(0)\n w = f32[8,8]{1,0} parameter(1)\n z = s32[] constant(0)\n"
      " s = (s32[], f32[8,8]{1,0}, f32[8,8]{1,0}) tuple(z, x, w)\n"
      " l = (s32[], f32[8,8]{1,0}, f32[8,8]{1,0}) while(s), condition=condition, body=body\n"
      " ROOT o = f32[8,8]{1,0} get-tuple-element(l), index=1 }\n");
  EXPECT_FALSE(has(text, "transpose(")) << text;
  const std::size_t body = text.find("body"), condition = text.find("condition", body + 20);
  EXPECT_FALSE(has(text.substr(body, condition - body), "copy(")) << text;
}

TEST(AssignLayouts, SaysWhy) {
  const auto module = testing::parse(entry("(f32[8,4]{1,0}, f32[8,6]{1,0})->f32[6,4]{1,0}",
                                           "a = f32[8,4]{1,0} parameter(0)\nb = f32[8,6]{1,0} parameter(1)\n"
                                           "d = f32[4,6]{1,0} dot(a, b), lhs_contracting_dims={0}, rhs_contracting_dims={0}\n"
                                           "ROOT t = f32[6,4]{1,0} transpose(d), dimensions={1,0}\n"));
  testing::run("assign-layouts", *module);
  for (const Instruction& i : module->entry()->instructions())
    if (i.opcode() == Opcode::Dot) {
      EXPECT_TRUE(has(i.annotations().decisions.at("layout"), "96 bytes")) << i.name();
    }
}

TEST(AssignLayouts, LeavesAScheduledModuleAlone) {
  const auto module = testing::parse(
      "HloModule m, is_scheduled=true\nENTRY e { a = f32[8,4]{1,0} parameter(0)\n"
      " b = f32[4,8]{1,0} transpose(a), dimensions={1,0}\n ROOT c = f32[4,8]{1,0} negate(b) }");
  EXPECT_EQ(testing::run("assign-layouts", *module), Changed::No);
}

// --- Random modules ------------------------------------------------------------------------------------------------

/// Writes modules whose values have the same few elements in all orders of dimensions, with loops and branches.
class Author {
 public:
  explicit Author(unsigned seed) : random_(seed) {}

  std::string write() {
    std::string parameters, results, names;
    for (int p = 0; p < 3; ++p) {
      const Value v = parameter(p);
      parameters += (p ? ", " : "") + shape(v, random_layout(v.dims));
    }
    for (int n = 3 + below(12); n > 0; --n) step();
    for (int r = 0; r < 3; ++r) {
      const Value& v = values_[values_.size() - 1 - static_cast<std::size_t>(below(3))];
      results += (r ? ", " : "") + shape(v, random_layout(v.dims));
      names += (r ? ", " : "") + v.name;
    }
    return "HloModule m, entry_computation_layout={(" + parameters + ")->(" + results + ")}\n" +
           "add { a = s32[] parameter(0)\n b = s32[] parameter(1)\n ROOT c = s32[] add(a, b) }\n" + before_ + "ENTRY e {\n" +
           text_ + "ROOT r = (" + plain_shapes(names) + ") tuple(" + names + ")\n}\n";
  }

 private:
  using Dims = std::vector<int>;
  struct Value {
    std::string name;
    Dims dims;
  };

  int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  static std::string list(const Dims& dims) {
    std::string s;
    for (const int d : dims) s += (s.empty() ? "" : ",") + std::to_string(d);
    return s;
  }
  static std::string shape(const Value& v, const std::string& layout = "") { return "s32[" + list(v.dims) + "]" + layout; }
  std::string random_layout(const Dims& dims) {
    Dims order(dims.size());
    for (std::size_t d = 0; d < dims.size(); ++d) order[d] = static_cast<int>(d);
    std::ranges::shuffle(order, random_);
    return "{" + list(order) + "}";
  }
  std::string plain_shapes(const std::string& names) {
    std::string s;
    std::size_t from = 0;
    while (from < names.size()) {
      const std::size_t to = std::min(names.find(", ", from), names.size());
      const std::string name = names.substr(from, to - from);
      s += (s.empty() ? "" : ", ") + shape(*std::ranges::find(values_, name, &Value::name));
      from = to + 2;
    }
    return s;
  }
  Value add(Dims dims, const std::string& what) {
    Value v{"v" + std::to_string(values_.size()), std::move(dims)};
    text_ += v.name + " = " + shape(v) + " " + what + "\n";
    values_.push_back(v);
    return v;
  }
  Value parameter(int number) {
    Dims dims = {2, 3, 4};
    if (below(3) == 0) dims = {1, 6, 2};
    std::ranges::shuffle(dims, random_);
    return add(dims, "parameter(" + std::to_string(number) + ")");
  }
  Value any() { return values_[static_cast<std::size_t>(below(static_cast<int>(values_.size())))]; }
  Value transposed(const Value& v) {
    Dims order(v.dims.size()), dims;
    for (std::size_t d = 0; d < v.dims.size(); ++d) order[d] = static_cast<int>(d);
    std::ranges::shuffle(order, random_);
    for (const int d : order) dims.push_back(v.dims[static_cast<std::size_t>(d)]);
    return add(dims, "transpose(" + v.name + "), dimensions={" + list(order) + "}");
  }
  Value partner(const Value& v) {
    for (int tries = 0; tries < 10; ++tries)
      if (const Value w = any(); w.dims == v.dims) return w;
    return v;
  }
  void step() {
    const Value v = any();
    const std::size_t rank = v.dims.size();
    switch (below(10)) {
      case 0: case 1: transposed(v); return;
      case 2: case 3: add(v.dims, "add(" + v.name + ", " + partner(v).name + ")"); return;
      case 4:
        if (rank == 3) dot(v);
        return;
      case 5: {
        if (rank < 2) return;
        const int d = below(static_cast<int>(rank));
        Dims dims = v.dims;
        dims.erase(dims.begin() + d);
        text_ += "z" + std::to_string(values_.size()) + " = s32[] constant(0)\n";
        add(dims, "reduce(" + v.name + ", z" + std::to_string(values_.size()) + "), dimensions={" + std::to_string(d) + "}, to_apply=add");
        return;
      }
      case 6: {
        if (rank != 2) return;
        const int d = below(3);
        Dims dims = v.dims, at;
        dims.insert(dims.begin() + d, 3);
        for (int k = 0; k < 3; ++k)
          if (k != d) at.push_back(k);
        add(dims, "broadcast(" + v.name + "), dimensions={" + list(at) + "}");
        return;
      }
      case 7: {
        if (rank == 0) return;
        Dims dims = v.dims;
        dims[0] *= 2;
        add(dims, "concatenate(" + v.name + ", " + partner(v).name + "), dimensions={0}");
        return;
      }
      case 8: loop(v); return;
      default: {
        Dims dims = v.dims;
        dims.insert(dims.begin() + below(static_cast<int>(rank) + 1), 1);
        if (rank < 3) add(dims, "reshape(" + v.name + ")");
        return;
      }
    }
  }
  void dot(const Value& v) {
    const Value w = partner(v);
    const int c = 1 + below(2);
    const std::string dims = std::to_string(c);
    add({v.dims[0], v.dims[static_cast<std::size_t>(3 - c)], v.dims[static_cast<std::size_t>(3 - c)]},
        "dot(" + v.name + ", " + w.name + "), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={" + dims +
            "}, rhs_contracting_dims={" + dims + "}");
  }
  // Adds an array to itself turned, if that has its dimensions, some times.
  void loop(const Value& v) {
    if (v.dims.size() < 2) return;
    const std::string n = std::to_string(values_.size()), s = shape(v), t = "(s32[], " + s + ")";
    Dims order = {1, 0, 2};
    order.resize(v.dims.size());
    const bool square = v.dims[0] == v.dims[1];
    before_ += "body" + n + " { p = " + t + " parameter(0)\n i = s32[] get-tuple-element(p), index=0\n x = " + s +
               " get-tuple-element(p), index=1\n one = s32[] constant(1)\n j = s32[] add(i, one)\n" +
               (square ? " y = " + s + " transpose(x), dimensions={" + list(order) + "}\n" : " y = " + s + " negate(x)\n") +
               " z = " + s + " add(x, y)\n ROOT r = " + t + " tuple(j, z) }\ncondition" + n + " { p = " + t +
               " parameter(0)\n i = s32[] get-tuple-element(p), index=0\n n = s32[] constant(3)\n"
               " ROOT c = pred[] compare(i, n), direction=LT }\n";
    text_ += "i" + n + " = s32[] constant(0)\nstate" + n + " = " + t + " tuple(i" + n + ", " + v.name + ")\nloop" + n + " = " + t +
             " while(state" + n + "), condition=condition" + n + ", body=body" + n + "\n";
    add(v.dims, "get-tuple-element(loop" + n + "), index=1");
  }

  std::mt19937 random_;
  std::string text_, before_;
  std::vector<Value> values_;
};

TEST(AssignLayouts, RandomModulesKeepTheirValuesAndCostNoMore) {
  for (unsigned seed = 1; seed <= 400; ++seed) {
    const std::string text = Author(seed).write();
    const auto before = testing::parse(text), after = testing::parse(text);
    ASSERT_TRUE(before && after) << text;
    testing::run("clear-layouts", *after);
    testing::run("remove-dead", *after);
    const double cost = layout_cost(layout_graph(*after));
    testing::run("assign-layouts", *after);
    testing::run("remove-dead", *after);
    EXPECT_LE(layout_cost(layout_graph(*after)), cost + 1e-3) << text << text::print(*after);
    EXPECT_EQ(testing::run("assign-layouts", *after), Changed::No) << text << text::print(*after);
    std::vector<hlo::Literal> arguments;
    for (const Instruction* p : before->entry()->parameters()) {
      hlo::Literal l(p->shape());
      int x = static_cast<int>(seed);
      for (std::int32_t& e : l.mutable_data<std::int32_t>()) e = x = x * 7 % 31;
      arguments.push_back(std::move(l));
    }
    const auto want = interp::interpret(*before, arguments), got = interp::interpret(*after, arguments);
    ASSERT_TRUE(want && got) << text;
    for (std::size_t k = 0; k < want->elements().size(); ++k)
      EXPECT_FALSE(arrays::compare(got->elements()[k], want->elements()[k], arrays::Tolerance::equal()))
          << "seed " << seed << "\n" << text << text::print(*after);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace hloom::passes
