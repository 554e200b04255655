#include "cases.h"

#include "compiler/compile.h"
#include "compiler/execute_literals.h"
#include "compiler/leaves.h"
#include "compiler/read_program.h"
#include "interp/interpret.h"
#include "text/parse.h"

namespace hloom::cases {
namespace {

using Values = std::vector<hlo::Literal>;

Values read_all(const std::vector<std::string>& texts, const std::vector<Shape>& shapes) {
  Values values;
  EXPECT_EQ(texts.size(), shapes.size());
  for (std::size_t n = 0; n < texts.size() && n < shapes.size(); ++n) {
    auto literal = text::parse_literal(texts[n], shapes[n]);
    EXPECT_TRUE(literal) << literal.error().message();
    values.push_back(literal ? *std::move(literal) : hlo::Literal(shapes[n]));
  }
  return values;
}

void expect_equal(const Values& got, const Values& want, const Case& c, const std::string& how) {
  EXPECT_EQ(arrays::compare_results(got, want, {&c.tolerance, 1}), std::nullopt) << how;
}

void expect_interpreted(const hlo::Module& module, const Values& arguments, const Values& want, const Case& c) {
  const auto result = interp::interpret(module, compiler::arguments_of(module, arguments));
  ASSERT_TRUE(result) << result.error().message();
  Values got;
  for (const hlo::Literal* leaf : hlo::leaves(*result)) got.push_back(*leaf);
  expect_equal(got, want, c, "interpreted");
}

void expect_compiled(const hlo::Module& module, const Values& arguments, const Values& want, const Case& c,
                     bool regions) {
  compiler::Options options;
  options.regions = regions;
  options.verify_each = true;
  auto compiled = compiler::compile(module.clone(), options);
  ASSERT_TRUE(compiled) << compiled.error().message();
  const std::vector<Shape> parameters = compiler::parameter_leaves(*compiled->module),
                           results = compiler::result_leaves(*compiled->module);
  const auto executor = runtime::Executor::create(std::move(compiled->program));
  ASSERT_TRUE(executor) << executor.error().message();
  for (const int threads : {1, 2, 4}) {
    runtime::ThreadPool pool(threads);
    const auto got = compiler::execute_literals(**executor, parameters, results, arguments, pool);
    ASSERT_TRUE(got) << got.error().message();
    const std::string how = regions ? "in regions" : "step by step";
    expect_equal(*got, want, c, how + " on " + std::to_string(threads) + " threads");
  }
}

}  // namespace

void expect(const Case& c) {
  auto module = compiler::read_program(c.text, {.file_name = c.name});
  ASSERT_TRUE(module) << module.error().message();
  const Values arguments = read_all(c.arguments, compiler::parameter_leaves(**module));
  const Values want = read_all(c.results, compiler::result_leaves(**module));
  if (c.interpreted) expect_interpreted(**module, arguments, want, c);
  expect_compiled(**module, arguments, want, c, true);
  expect_compiled(**module, arguments, want, c, false);
}

TEST_P(Cases, Hold) { expect(GetParam()); }

}  // namespace hloom::cases
