// What tests of whole programs do with a module: compile it and run it on literals.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "compiler/compile.h"
#include "compiler/execute_literals.h"

namespace hloom {

/// The leaves of the result on so many threads; none, and a failure of the test, where it does not compile or run.
inline std::vector<hlo::Literal> run_compiled(std::unique_ptr<hlo::Module> module, const std::vector<hlo::Literal>& arguments,
                                              int threads) {
  auto program = compiler::compile(std::move(module), {});
  EXPECT_TRUE(program) << program.error().message();
  if (!program) return {};
  const std::vector<Shape> parameters = compiler::parameter_leaves(*program->module),
                           results = compiler::result_leaves(*program->module);
  const auto executor = runtime::Executor::create(std::move(program->program));
  EXPECT_TRUE(executor);
  if (!executor) return {};
  runtime::ThreadPool pool(threads);
  auto values = compiler::execute_literals(**executor, parameters, results, arguments, pool);
  EXPECT_TRUE(values) << values.error().message();
  return values ? std::move(*values) : std::vector<hlo::Literal>();
}

}  // namespace hloom
