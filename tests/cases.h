// Small programs whose results are known, run in every way: interpreted, compiled in regions and step by step, on one
// thread and on several.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "arrays/compare.h"

namespace hloom::cases {

/// A program of a table, named by what must hold.
struct Case {
  const char* name;
  std::string text;
  std::vector<std::string> arguments;  ///< a literal for each leaf of the parameters, as inside constant(…)
  std::vector<std::string> results;    ///< and of the result
  arrays::Tolerance tolerance = arrays::Tolerance::exact();
  bool interpreted = true;             ///< false: too large for the interpreter
};

/// Expects the results from all ways of running.
void expect(const Case&);

/// For INSTANTIATE_TEST_SUITE_P.
inline std::string name_of(const testing::TestParamInfo<Case>& info) { return info.param.name; }
inline void PrintTo(const Case& c, std::ostream* to) { *to << c.name; }

class Cases : public testing::TestWithParam<Case> {};

}  // namespace hloom::cases
