// What holds for all passes: the interpreter says the same before and after, to the bit.
#include <random>

#include "arrays/corpus_folder.h"
#include "interp/interpret.h"
#include "passes/pipeline.h"
#include "passes/testing.h"

namespace hloom::passes {
namespace {

using testing::checking;
using testing::parse;

// --- Random modules ------------------------------------------------------------------------------------------------

// Writes a module of random ops on arrays of a few elements, one after the other on any that fit.
class Author {
 public:
  explicit Author(unsigned seed) : random_(seed) {}

  std::string write(int num_instructions) {
    add("s32", {4, 6}, "parameter(0)");
    add("f32", {5, 2}, "parameter(1)");
    add("s32", {}, "parameter(2)");
    add("pred", {4, 6}, "parameter(3)");
    add("pred", {}, "parameter(4)");
    for (int n = 0; n < num_instructions; ++n) write_one();
    std::string shapes, names;
    for (std::size_t n = values_.size() - 6; n < values_.size(); ++n) {
      shapes += (shapes.empty() ? "" : ", ") + shape(values_[n]);
      names += (names.empty() ? "" : ", ") + values_[n].name;
    }
    return "HloModule random\nsum { a = s32[] parameter(0)\n b = s32[] parameter(1)\n ROOT c = s32[] add(a, b) }\n"
           "most { a = s32[] parameter(0)\n b = s32[] parameter(1)\n ROOT c = s32[] maximum(a, b) }\n"
           "second { a = s32[] parameter(0)\n ROOT b = s32[] parameter(1) }\nENTRY e {\n" +
           text_ + "ROOT r = (" + shapes + ") tuple(" + names + ")\n}\n";
  }

 private:
  struct Value {
    std::string name, type;
    hlo::Dims dims;
  };

  std::int64_t below(std::int64_t n) { return static_cast<std::int64_t>(random_() % static_cast<unsigned>(n)); }
  static std::string list(const hlo::Dims& dims) {
    std::string s;
    for (const std::int64_t d : dims) s += (s.empty() ? "" : ",") + std::to_string(d);
    return s;
  }
  static std::string shape(const Value& v) { return v.type + "[" + list(v.dims) + "]"; }
  static std::int64_t rank(const Value& v) { return static_cast<std::int64_t>(v.dims.size()); }
  static std::int64_t size(const Value& v) {
    std::int64_t n = 1;
    for (const std::int64_t d : v.dims) n *= d;
    return n;
  }

  Value add(const std::string& type, hlo::Dims dims, const std::string& what) {
    values_.push_back({"v" + std::to_string(values_.size()), type, std::move(dims)});
    text_ += values_.back().name + " = " + shape(values_.back()) + " " + what + "\n";
    return values_.back();
  }
  // One of the last few, or any.
  const Value& any() {
    const auto n = static_cast<std::int64_t>(values_.size());
    return values_[static_cast<std::size_t>(below(2) ? below(n) : n - 1 - below(std::min<std::int64_t>(n, 4)))];
  }
  // Any value that `fits`, if some draws find one.
  template <typename Predicate>
  std::optional<Value> find(const Predicate& fits) {
    for (int tries = 0; tries < 40; ++tries)
      if (const Value& v = any(); fits(v)) return v;
    return std::nullopt;
  }
  Value like(const Value& a) {
    if (below(3) == 0)
      return a.dims.empty() ? scalar(a.type)
                            : add(a.type, a.dims, "broadcast(" + scalar(a.type).name + "), dimensions={}");
    const auto same = find([&](const Value& v) { return v.type == a.type && v.dims == a.dims; });
    return same.value_or(a);
  }
  Value scalar(const std::string& type) {
    const auto known = find([&](const Value& v) { return v.type == type && v.dims.empty(); });
    if (known && below(3) != 0) return *known;
    static constexpr const char* kIntegers[] = {"0", "1", "-1", "2", "7", "-2147483648"};
    static constexpr const char* kFloats[] = {"0", "-0", "1", "2", "0.5", "-1", "inf", "nan", "1e-42"};
    if (type == "pred") return add("pred", {}, below(2) ? "constant(true)" : "constant(false)");
    return add(type, {}, std::string("constant(") + (type == "s32" ? kIntegers[below(6)] : kFloats[below(9)]) + ")");
  }
  std::string joined(const std::vector<Value>& values) {
    std::string s;
    for (const Value& v : values) s += (s.empty() ? "" : ", ") + v.name;
    return s;
  }
  std::string starts(const Value& v) {
    std::string s;
    for (std::int64_t d = 0; d < rank(v); ++d) s += ", " + scalar("s32").name;
    return s;
  }

  void elementwise(const Value& a) {
    static constexpr const char* kInteger[] = {"add",     "subtract", "multiply", "divide", "remainder", "maximum",
                                               "minimum", "and",      "or",       "xor",    "shift-left"};
    static constexpr const char* kFloat[] = {"add", "subtract", "multiply", "divide", "maximum", "minimum"};
    static constexpr const char* kPred[] = {"and", "or", "xor", "add", "multiply", "maximum", "minimum"};
    const Value b = like(a);
    const std::string op = a.type == "s32" ? kInteger[below(11)] : a.type == "f32" ? kFloat[below(6)] : kPred[below(7)];
    add(a.type, a.dims, op + "(" + a.name + ", " + b.name + ")");
  }
  void unary(const Value& a) {
    static constexpr const char* kInteger[] = {"negate", "abs", "not", "sign"};
    static constexpr const char* kFloat[] = {"negate", "abs", "floor", "sign"};
    add(a.type, a.dims,
        (a.type == "s32"   ? kInteger[below(4)]
         : a.type == "f32" ? kFloat[below(4)]
                           : "not") +
            ("(" + a.name + ")"));
  }
  void compare(const Value& a) {
    static constexpr const char* kDirections[] = {"EQ", "NE", "LT", "LE", "GT", "GE"};
    add("pred", a.dims, "compare(" + a.name + ", " + like(a).name + "), direction=" + kDirections[below(6)]);
  }
  void select(const Value& a) {
    const auto p = find([&](const Value& v) { return v.type == "pred" && (v.dims == a.dims || v.dims.empty()); });
    if (p) add(a.type, a.dims, "select(" + joined({*p, a, like(a)}) + ")");
  }
  void convert(const Value& a) {
    static constexpr const char* kTypes[] = {"s32", "f32", "pred"};
    add(kTypes[below(3)], a.dims, "convert(" + a.name + ")");
  }
  void broadcast(const Value& a) {
    if (rank(a) > 3) return;
    hlo::Dims dims, places;
    std::size_t next = 0;
    while (next < a.dims.size() || below(3) == 0) {
      if (next < a.dims.size() && below(2)) {
        places.push_back(static_cast<std::int64_t>(dims.size()));
        dims.push_back(a.dims[next++]);
      } else {
        dims.push_back(1 + below(2));
      }
      if (dims.size() > 5) return;
    }
    Value made{"", a.type, dims};
    if (size(made) <= 64) add(a.type, dims, "broadcast(" + a.name + "), dimensions={" + list(places) + "}");
  }
  void reshape(const Value& a) {
    hlo::Dims dims;
    switch (below(3)) {
      case 0: dims = {size(a)}; break;
      case 1: dims = a.dims, dims.insert(dims.begin() + below(rank(a) + 1), 1); break;
      default: dims = without_units(a.dims);
    }
    if (dims.size() <= 5) add(a.type, dims, "reshape(" + a.name + ")");
  }
  static hlo::Dims without_units(hlo::Dims dims) {
    std::erase(dims, 1);
    return dims;
  }
  void transpose(const Value& a) {
    hlo::Dims p, dims;
    for (std::int64_t d = 0; d < rank(a); ++d) p.push_back(d);
    std::shuffle(p.begin(), p.end(), random_);
    for (const std::int64_t d : p) dims.push_back(a.dims[static_cast<std::size_t>(d)]);
    add(a.type, dims, "transpose(" + a.name + "), dimensions={" + list(p) + "}");
  }
  void reverse(const Value& a) {
    hlo::Dims which;
    for (std::int64_t d = 0; d < rank(a); ++d)
      if (below(2)) which.push_back(d);
    add(a.type, a.dims, "reverse(" + a.name + "), dimensions={" + list(which) + "}");
  }
  void slice(const Value& a) {
    std::string what;
    hlo::Dims dims;
    for (const std::int64_t d : a.dims) {
      const std::int64_t from = below(d + 1), to = from + below(d - from + 1), step = 1 + below(2);
      what += (what.empty() ? "" : ", ") +
              ("[" + std::to_string(from) + ":" + std::to_string(to) + ":" + std::to_string(step) + "]");
      dims.push_back((to - from + step - 1) / step);
    }
    if (size({"", "", dims}) > 0) add(a.type, dims, "slice(" + a.name + "), slice={" + what + "}");
  }
  void pad(const Value& a) {
    std::string what;
    hlo::Dims dims;
    for (const std::int64_t d : a.dims) {
      const std::int64_t low = below(4) - 1, high = below(4) - 1, inner = below(4) / 3;
      what +=
          (what.empty() ? "" : "x") + (std::to_string(low) + "_" + std::to_string(high) + "_" + std::to_string(inner));
      dims.push_back(d + low + high + (d - 1) * inner);
      if (dims.back() <= 0) return;
    }
    if (rank(a) > 0 && size({"", "", dims}) <= 64)
      add(a.type, dims, "pad(" + a.name + ", " + scalar(a.type).name + "), padding=" + what);
  }
  void concatenate(const Value& a) {
    if (rank(a) == 0) return;
    const std::int64_t d = below(rank(a));
    const auto fits = [&](const Value& v) {
      if (v.type != a.type || v.dims.size() != a.dims.size()) return false;
      for (std::size_t k = 0; k < v.dims.size(); ++k)
        if (static_cast<std::int64_t>(k) != d && v.dims[k] != a.dims[k]) return false;
      return true;
    };
    std::vector<Value> parts = {a};
    for (int n = 0; n < 2; ++n)
      if (const auto more = find(fits)) parts.insert(below(2) ? parts.begin() : parts.end(), *more);
    hlo::Dims dims = a.dims;
    dims[static_cast<std::size_t>(d)] = 0;
    for (const Value& v : parts) dims[static_cast<std::size_t>(d)] += v.dims[static_cast<std::size_t>(d)];
    if (size({"", "", dims}) <= 64)
      add(a.type, dims, "concatenate(" + joined(parts) + "), dimensions={" + std::to_string(d) + "}");
  }
  void dynamic_slice(const Value& a) {
    hlo::Dims sizes;
    for (const std::int64_t d : a.dims) sizes.push_back(1 + below(d));
    const std::string at = starts(a);
    add(a.type, sizes, "dynamic-slice(" + a.name + at + "), dynamic_slice_sizes={" + list(sizes) + "}");
  }
  void dynamic_update_slice(const Value& a) {
    const auto update = find([&](const Value& v) {
      if (v.type != a.type || v.dims.size() != a.dims.size()) return false;
      for (std::size_t k = 0; k < v.dims.size(); ++k)
        if (v.dims[k] > a.dims[k]) return false;
      return true;
    });
    if (!update) return;
    const std::string at = starts(a);
    const Value written = add(a.type, a.dims, "dynamic-update-slice(" + a.name + ", " + update->name + at + ")");
    if (below(2) == 0) {
      const Value p = scalar("pred");
      add(a.type, a.dims, "select(" + joined(below(2) ? std::vector{p, a, written} : std::vector{p, written, a}) + ")");
    }
  }
  void gather(const Value& a) {
    if (rank(a) == 0) return;
    const std::int64_t d = below(rank(a));
    hlo::Dims sizes = a.dims, offsets;
    sizes[static_cast<std::size_t>(d)] = 1;
    for (std::int64_t k = 0; k < rank(a) - 1; ++k) offsets.push_back(k);
    hlo::Dims dims = a.dims;
    dims.erase(dims.begin() + d);
    add(a.type, dims,
        "gather(" + a.name + ", " + scalar("s32").name + "), offset_dims={" + list(offsets) +
            "}, collapsed_slice_dims={" + std::to_string(d) + "}, start_index_map={" + std::to_string(d) +
            "}, index_vector_dim=0, slice_sizes={" + list(sizes) + "}");
  }
  void scatter(const Value& a) {
    if (rank(a) == 0 || a.type != "s32") return;
    const std::int64_t d = below(rank(a));
    hlo::Dims dims = a.dims, window;
    dims.erase(dims.begin() + d);
    for (std::int64_t k = 0; k < rank(a) - 1; ++k) window.push_back(k);
    const auto update = find([&](const Value& v) { return v.type == a.type && v.dims == dims; });
    static constexpr const char* kCombiners[] = {"sum", "most", "second"};
    if (update)
      add(a.type, a.dims,
          "scatter(" + joined({a, scalar("s32"), *update}) + "), update_window_dims={" + list(window) +
              "}, inserted_window_dims={" + std::to_string(d) + "}, scatter_dims_to_operand_dims={" +
              std::to_string(d) + "}, index_vector_dim=0, to_apply=" + kCombiners[below(3)]);
  }
  void reduce(const Value& a) {
    if (a.type != "s32") return;
    hlo::Dims which, dims;
    for (std::int64_t d = 0; d < rank(a); ++d) {
      if (below(2))
        which.push_back(d);
      else
        dims.push_back(a.dims[static_cast<std::size_t>(d)]);
    }
    add(a.type, dims,
        "reduce(" + a.name + ", " + scalar("s32").name + "), dimensions={" + list(which) +
            "}, to_apply=" + (below(2) ? "sum" : "most"));
  }
  void iota(const Value& a) {
    if (rank(a) > 0)
      add(a.type == "pred" ? "s32" : a.type, a.dims, "iota(), iota_dimension=" + std::to_string(below(rank(a))));
  }

  void write_one() {
    const Value a = any();
    switch (below(22)) {
      case 0:
      case 1:
      case 2: return elementwise(a);
      case 3: return unary(a);
      case 4: return compare(a);
      case 5: return select(a);
      case 6: return convert(a);
      case 7:
      case 8: return broadcast(a);
      case 9: return reshape(a);
      case 10: return transpose(a);
      case 11: return reverse(a);
      case 12: return slice(a);
      case 13: return pad(a);
      case 14: return concatenate(a);
      case 15: return dynamic_slice(a);
      case 16:
      case 17: return dynamic_update_slice(a);
      case 18: return gather(a);
      case 19: return scatter(a);
      case 20: return reduce(a);
      default: return iota(a);
    }
  }

  std::mt19937 random_;
  std::vector<Value> values_;
  std::string text_;
};

hlo::Literal random_literal(const Shape& shape, std::mt19937& random) {
  hlo::Literal literal(shape);
  static constexpr float kFloats[] = {0.0f, -0.0f, 1.5f, -2.25f, INFINITY, -INFINITY, NAN, 1e-42f, 3e38f, 7.0f};
  if (shape.dtype() == DType::F32)
    for (float& x : literal.mutable_data<float>()) x = kFloats[random() % 10];
  else if (shape.dtype() == DType::S32)
    for (std::int32_t& x : literal.mutable_data<std::int32_t>())
      x = random() % 4 == 0 ? static_cast<std::int32_t>(random()) : static_cast<std::int32_t>(random() % 9) - 4;
  else
    for (std::int8_t& x : literal.mutable_data<std::int8_t>()) x = static_cast<std::int8_t>(random() % 2);
  return literal;
}

std::vector<hlo::Literal> leaves_of(const hlo::Literal& result) {
  std::vector<hlo::Literal> copies;
  for (const hlo::Literal* leaf : hlo::leaves(result)) copies.push_back(*leaf);
  return copies;
}

// Any NaN is as good as another.
void expect_same(const hlo::Module& before, const hlo::Module& after, std::span<const hlo::Literal> arguments) {
  const auto want = interp::interpret(before, arguments), got = interp::interpret(after, arguments);
  ASSERT_TRUE(want) << want.error().message();
  ASSERT_TRUE(got) << got.error().message();
  const arrays::Tolerance exact[] = {arrays::Tolerance::exact()};
  const auto difference = arrays::compare_results(leaves_of(*got), leaves_of(*want), exact);
  EXPECT_FALSE(difference) << *difference;
}

TEST(Laws, RandomModulesKeepTheirValues) {
  for (unsigned seed = 0; seed < 1200; ++seed) {
    const std::string text = Author(seed).write(20 + static_cast<int>(seed % 40));
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + text);
    const auto before = parse(text), after = parse(text);
    ASSERT_TRUE(before);
    const auto changed = run_standard(*after, checking());
    ASSERT_TRUE(changed) << changed.error().message();
    const auto again = run_to_fixed_point(standard(), *after, 1, checking());
    ASSERT_TRUE(again && *again == Changed::No) << "a second run found something in\n" << testing::body(*after);
    std::mt19937 random(seed);
    for (int draw = 0; draw < 3; ++draw) {
      std::vector<hlo::Literal> arguments;
      for (const hlo::Instruction* p : before->entry()->parameters())
        arguments.push_back(random_literal(p->shape(), random));
      expect_same(*before, *after, arguments);
    }
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace hloom::passes
