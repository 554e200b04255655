// Real programs with inputs and expected values: those of tests/programs, and the corpus where it is at hand.
#pragma once

#include <string>
#include <vector>

#include "hlo/literal.h"

namespace hloom {

/// Names of all programs, sorted.
std::vector<std::string> program_names();

/// Where the program of that name is; the folder need not exist.
std::string program_folder(const std::string& name);

/// The arrays of some values, depth first.
std::vector<hlo::Literal> leaves_of(const std::vector<hlo::Literal>& values);

/// The name as a part of a test's name.
std::string test_name(std::string name);

}  // namespace hloom
