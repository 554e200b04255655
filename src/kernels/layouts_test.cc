// Kernels of arrays that lie in any order of dimensions: evaluated, all orders of all operands and results against the
// interpreter; compiled, a sample of them. And the squares that arrays go in whose fastest dimensions differ.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>
#include <set>

#include "arrays/compare.h"
#include "interp/interpret.h"
#include "jit/compile.h"
#include "kernels/evaluate.h"
#include "kernels/plan_dot.h"
#include "kernels/plan_fusion.h"
#include "kernels/print.h"
#include "kernels/squares.h"
#include "kernels/verify.h"
#include "text/parse.h"

namespace hloom::kernels {
namespace {

using hlo::Instruction;
using hlo::Literal;
using hlo::Opcode;

// --- Squares -------------------------------------------------------------------------------------------------------

// Each pair of a row and a lane in exactly one part.
TEST(Squares, PartsCoverTheRectangleOnce) {
  for (const std::int64_t size : {4, 8, 16, 32})
    for (std::int64_t rows = 1; rows <= 40; ++rows)
      for (std::int64_t lanes = 1; lanes <= 40; ++lanes) {
        std::vector<int> done(static_cast<std::size_t>(rows * lanes));
        for (const SquarePart& part : square_parts({0, 1, size, 4}, rows, lanes)) {
          std::vector<std::pair<std::int64_t, std::int64_t>> at = {{0, 0}};
          for (const Walk& w : part.walks) {
            std::vector<std::pair<std::int64_t, std::int64_t>> next;
            for (const auto& [r, l] : at)
              for (std::int64_t v = 0; v < w.count; ++v)
                next.emplace_back(r + (w.loop == 0 ? w.from + w.step * v : 0), l + (w.loop == 1 ? w.from + w.step * v : 0));
            at = std::move(next);
          }
          for (const auto& [r, l] : at)
            for (std::int64_t n = 0; n < std::max<std::int64_t>(part.size, 1); ++n)
              ++done[static_cast<std::size_t>((r + n) * lanes + l)];
        }
        ASSERT_TRUE(std::ranges::all_of(done, [](int n) { return n == 1; })) << rows << "x" << lanes << " by " << size;
      }
}

// --- Arrays in memory ----------------------------------------------------------------------------------------------

// Calls copy(element number row-major, element number by the layout).
template <typename F>
void for_each_element(const Shape& shape, const F& copy) {
  const std::vector<std::int64_t> strides = strides_of(shape);
  std::vector<std::int64_t> at(shape.dims().size());
  for (std::int64_t n = 0; n < shape.num_elements(); ++n) {
    std::int64_t rest = n, where = 0;
    for (std::size_t d = at.size(); d-- > 0;) {
      where += rest % shape.dims()[d] * strides[d];
      rest /= shape.dims()[d];
    }
    copy(static_cast<std::size_t>(n), static_cast<std::size_t>(where));
  }
}

/// A module whose entry is one fusion, with its arguments in memory.
struct Case {
  explicit Case(const std::string& text) : source(text) {
    auto parsed = text::parse_module(text);
    EXPECT_TRUE(parsed) << parsed.error().message() << "\n" << text;
    module = *std::move(parsed);
    const Instruction& fusion = *module->entry()->root();
    auto planned = is_dot_fusion(fusion) ? plan_dot(fusion) : plan_fusion(fusion);
    EXPECT_TRUE(planned) << planned.error().message() << "\n" << text;
    kernel = *std::move(planned);
    std::mt19937 random(7);
    for (const Instruction* p : module->entry()->parameters()) {
      Literal l(p->shape());
      for (std::byte& b : l.mutable_bytes()) b = static_cast<std::byte>(random() & 1);
      if (p->shape().dtype() == DType::F32)
        for (float& f : l.mutable_data<float>()) f = static_cast<float>(static_cast<int>(random() % 19) - 9);
      if (p->shape().dtype() == DType::S32)
        for (std::int32_t& i : l.mutable_data<std::int32_t>()) i = static_cast<int>(random() % 5) - 1;
      arguments.push_back(std::move(l));
    }
    const auto interpreted = interp::interpret(*module, arguments);
    EXPECT_TRUE(interpreted) << interpreted.error().message();
    want = *interpreted;
    for (const Literal& l : arguments) memory.push_back(in_memory(l));
    for (const Shape* leaf : leaves(fusion.shape())) memory.emplace_back(static_cast<std::size_t>(leaf->size_bytes()) + 64);
    const Instruction& root = *fusion.called(0)->root();
    if (root.opcode() == Opcode::DynamicUpdateSlice) memory.back() = memory[static_cast<std::size_t>(root.operand(0)->parameter_number())];
    for (auto& m : memory) pointers.push_back(m.data());
  }

  static std::vector<std::byte> in_memory(const Literal& l) {
    const auto width = static_cast<std::size_t>(byte_width(l.dtype()));
    std::vector<std::byte> bytes(l.bytes().size() + 64);
    for_each_element(l.shape(), [&](std::size_t from, std::size_t to) {
      std::memcpy(bytes.data() + to * width, l.bytes().data() + from * width, width);
    });
    return bytes;
  }

  void expect_results(const std::string& how) {
    const Shape& shape = module->entry()->root()->shape();
    std::size_t k = arguments.size();
    for (const Shape* leaf : leaves(shape)) {
      const auto width = static_cast<std::size_t>(byte_width(leaf->dtype()));
      std::vector<std::byte> bytes(static_cast<std::size_t>(leaf->size_bytes()));
      for_each_element(*leaf, [&](std::size_t to, std::size_t from) {
        std::memcpy(bytes.data() + to * width, memory[k].data() + from * width, width);
      });
      ++k;
      const Literal& wanted = shape.is_tuple() ? want.elements()[k - 1 - arguments.size()] : want;
      const auto difference = arrays::compare(Literal::from_bytes(*leaf, std::move(bytes)), wanted, arrays::Tolerance::equal());
      EXPECT_FALSE(difference) << how << ": " << *difference << "\n" << source << print(kernel);
    }
  }

  std::string source;
  std::unique_ptr<hlo::Module> module;
  Kernel kernel;
  std::vector<Literal> arguments;
  Literal want;
  std::vector<std::vector<std::byte>> memory;
  std::vector<void*> pointers;
};

void expect_evaluated(const std::string& text) {
  Case c(text);
  const auto verified = verify(c.kernel);
  EXPECT_TRUE(verified) << verified.error().message() << "\n" << print(c.kernel);
  std::vector<std::byte> scratch(static_cast<std::size_t>(c.kernel.scratch_bytes) + 64);
  const auto done = evaluate(c.kernel, c.pointers.data(), 0, c.kernel.blocks, scratch.data());
  EXPECT_TRUE(done) << done.error().message() << "\n" << text << print(c.kernel);
  c.expect_results("evaluated");
}

void expect_compiled(const std::vector<std::string>& texts) {
  std::vector<std::unique_ptr<Case>> cases;
  std::vector<Kernel> kernels;
  for (const std::string& text : texts) {
    cases.push_back(std::make_unique<Case>(text));
    kernels.push_back(cases.back()->kernel);
    kernels.back().name = "k" + std::to_string(kernels.size());
  }
  const auto code = jit::compile(kernels);
  ASSERT_TRUE(code) << code.error().message();
  for (std::size_t k = 0; k < cases.size(); ++k) {
    const auto function = jit::kernel_function(**code, kernels[k].name);
    ASSERT_TRUE(function);
    alignas(64) static std::byte scratch[1 << 16];
    (*function)(cases[k]->pointers.data(), 0, kernels[k].blocks, scratch);
    cases[k]->expect_results("compiled");
  }
}

// --- All layouts ---------------------------------------------------------------------------------------------------

std::string list(const std::vector<std::int64_t>& numbers) {
  std::string s;
  for (const std::int64_t n : numbers) s += (s.empty() ? "" : ",") + std::to_string(n);
  return s;
}
std::vector<std::vector<std::int64_t>> orders(std::size_t rank) {
  std::vector<std::int64_t> order(rank);
  std::iota(order.begin(), order.end(), 0);
  std::vector<std::vector<std::int64_t>> all;
  do all.push_back(order);
  while (std::ranges::next_permutation(order).found);
  return all;
}
std::string array(const std::string& type, const std::vector<std::int64_t>& dims, const std::vector<std::int64_t>& order) {
  return type + "[" + list(dims) + "]{" + list(order) + "}";
}

struct Form {
  const char* name;
  std::vector<std::vector<std::int64_t>> parameters;  // dims
  std::vector<std::int64_t> result;
  const char* body;  // of the fused computation, on p0, p1, …; R is the result's shape with its layout
};

const Form kForms[] = {
    {"add", {{5, 9, 6}, {5, 9, 6}}, {5, 9, 6}, "ROOT r = R add(p0, p1)"},
    {"negated transpose", {{5, 9, 6}}, {6, 5, 9}, "t = f32[6,5,9] transpose(p0), dimensions={2,0,1}\n ROOT r = R negate(t)"},
    {"dot", {{2, 7, 5}, {2, 5, 9}}, {2, 7, 9},
     "ROOT r = R dot(p0, p1), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}"},
    {"reduce", {{5, 9, 6}}, {5, 6}, "z = f32[] constant(0)\n ROOT r = R reduce(p0, z), dimensions={1}, to_apply=sum"},
    {"concatenate", {{5, 4, 6}, {5, 5, 6}}, {5, 9, 6}, "ROOT r = R concatenate(p0, p1), dimensions={1}"},
    {"slice and reverse", {{5, 9, 6}}, {5, 8, 5},
     "s = f32[5,8,5] slice(p0), slice={[0:5], [1:9], [0:5]}\n ROOT r = R reverse(s), dimensions={1}"},
    {"broadcast", {{9, 6}, {5, 9, 6}}, {5, 9, 6}, "b = f32[5,9,6] broadcast(p0), dimensions={1,2}\n ROOT r = R multiply(b, p1)"},
    {"reshape", {{45, 6}}, {5, 9, 6}, "ROOT r = R reshape(p0)"},
};

std::string program(const Form& form, const std::vector<std::vector<std::int64_t>>& layouts) {
  std::string parameters, fused, arguments;
  for (std::size_t p = 0; p < form.parameters.size(); ++p) {
    const std::string n = std::to_string(p), shape = array("f32", form.parameters[p], layouts[p]);
    parameters += "  a" + n + " = " + shape + " parameter(" + n + ")\n";
    fused += "  p" + n + " = " + shape + " parameter(" + n + ")\n";
    arguments += (p ? ", a" : "a") + n;
  }
  const std::string result = array("f32", form.result, layouts.back());
  std::string body = form.body;
  body.replace(body.find(" R "), 3, " " + result + " ");
  return "HloModule m\nsum { x = f32[] parameter(0)\n y = f32[] parameter(1)\n ROOT s = f32[] add(x, y) }\nfused {\n" + fused + " " +
         body + " }\nENTRY e {\n" + parameters + " ROOT f = " + result + " fusion(" + arguments + "), kind=kLoop, calls=fused }\n";
}

// All orders of all arrays of a form.
std::vector<std::string> programs(const Form& form) {
  std::vector<std::vector<std::vector<std::int64_t>>> chosen = {{}};
  std::vector<std::size_t> ranks;
  for (const auto& p : form.parameters) ranks.push_back(p.size());
  ranks.push_back(form.result.size());
  for (const std::size_t rank : ranks) {
    std::vector<std::vector<std::vector<std::int64_t>>> longer;
    for (const auto& c : chosen)
      for (const auto& order : orders(rank)) {
        longer.push_back(c);
        longer.back().push_back(order);
      }
    chosen = std::move(longer);
  }
  std::vector<std::string> texts;
  for (const auto& c : chosen) texts.push_back(program(form, c));
  return texts;
}

TEST(Layouts, AllOrdersOfAllArraysEvaluateToTheSame) {
  for (const Form& form : kForms)
    for (const std::string& text : programs(form)) {
      expect_evaluated(text);
      ASSERT_FALSE(HasFailure()) << form.name;
    }
}

TEST(Layouts, CompiledKernelsDoTheSame) {
  std::vector<std::string> sample;
  for (const Form& form : kForms) {
    const std::vector<std::string> all = programs(form);
    for (std::size_t k = 1; k < all.size(); k += std::max<std::size_t>(1, all.size() / 5)) sample.push_back(all[k]);
  }
  expect_compiled(sample);
}

// Roots that lie differently in one kernel, and an update in place.
TEST(Layouts, ResultsOfOneKernelMayLieDifferently) {
  std::vector<std::string> texts;
  for (const auto& order : orders(3)) {
    const std::string a = array("f32", {5, 9, 6}, order), b = array("f32", {5, 9, 6}, {2, 1, 0});
    texts.push_back("HloModule m\nfused { p0 = " + b + " parameter(0)\n n = " + b + " negate(p0)\n c = " + a +
                    " copy(n)\n ROOT t = (" + b + ", " + a + ") tuple(n, c) }\nENTRY e { p0 = " + b +
                    " parameter(0)\n ROOT f = (" + b + ", " + a + ") fusion(p0), kind=kLoop, calls=fused }\n");
    texts.push_back("HloModule m\nfused { p0 = " + a + " parameter(0)\n p1 = f32[4,5,5]{2,1,0} parameter(1)\n i = s32[] parameter(2)\n" +
                    " ROOT d = " + a + " dynamic-update-slice(p0, p1, i, i, i) }\nENTRY e { p0 = " + a +
                    " parameter(0)\n p1 = f32[4,5,5]{2,1,0} parameter(1)\n i = s32[] parameter(2)\n ROOT f = " + a +
                    " fusion(p0, p1, i), kind=kLoop, calls=fused }\n");
  }
  for (const std::string& text : texts) expect_evaluated(text);
  expect_compiled(texts);
}

// --- Transposes ----------------------------------------------------------------------------------------------------

std::string transpose(const std::string& type, const std::vector<std::int64_t>& dims, const std::vector<std::int64_t>& order) {
  std::vector<std::int64_t> to;
  for (const std::int64_t d : order) to.push_back(dims[static_cast<std::size_t>(d)]);
  const std::string from = type + "[" + list(dims) + "]", result = type + "[" + list(to) + "]";
  return "HloModule m\nfused { p = " + from + " parameter(0)\n ROOT t = " + result + " transpose(p), dimensions={" + list(order) +
         "} }\nENTRY e { p = " + from + " parameter(0)\n ROOT f = " + result + " fusion(p), kind=kLoop, calls=fused }\n";
}

constexpr const char* kTypes[] = {"f32", "pred", "s8", "s4", "bf16", "s16", "f64", "c64", "c128", "f8e5m2"};

TEST(Transposes, AllSmallShapesAndTypes) {
  for (const char* type : kTypes)
    for (const std::int64_t a : {1, 3, 4, 5, 8, 17, 33})
      for (const std::int64_t b : {1, 2, 4, 7, 16, 19}) expect_evaluated(transpose(type, {a, b}, {1, 0}));
  for (const auto& order : orders(4)) expect_evaluated(transpose("f32", {3, 5, 4, 6}, order));
  for (const auto& order : orders(5)) expect_evaluated(transpose("s16", {2, 4, 1, 5, 3}, order));
  expect_evaluated(transpose("f32", std::vector<std::int64_t>(10, 2), {9, 0, 8, 1, 7, 2, 6, 3, 5, 4}));
}

TEST(Transposes, CompiledOnesDoTheSame) {
  std::vector<std::string> texts;
  for (const char* type : kTypes) {
    texts.push_back(transpose(type, {33, 19}, {1, 0}));
    texts.push_back(transpose(type, {16, 2, 16}, {2, 1, 0}));
  }
  texts.push_back(transpose("f32", {200, 300}, {1, 0}));  // with a grid
  expect_compiled(texts);
}

}  // namespace
}  // namespace hloom::kernels
