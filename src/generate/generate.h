// Random valid programs, and arguments for them.
//
//   std::unique_ptr<hlo::Module> module = generate::module(/*seed=*/7);
//   std::vector<hlo::Literal> arguments = generate::arguments(*module, 7);
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "hlo/module.h"

namespace hloom::generate {

struct Options {
  /// Instructions of a computation, roughly; drawn up to this.
  int max_steps = 36;
  /// Elements of an array. Some modules are drawn with a tenth or ten times as many.
  std::int64_t max_elements = 4000;
  /// The program is for 2 to 4 replicas or partitions, which meet in collectives, in loops too.
  bool on_devices = false;
};

/// A module that verifies, the same for the same seed and options. Opcodes and types come about as often as in real
/// programs, but rare ones more often. Floats are small integers, so that sums are exact in any order, except in one
/// module of eight. Loops end after few iterations. Computations: the entry, loops, branches, calls, fusions.
/// The entry's layouts, donations and the schedule are drawn too; in one module of eight memory spaces and splits, with
/// copies from one place to another and back.
std::unique_ptr<hlo::Module> module(std::uint64_t seed, const Options& = {});

/// Values for the leaves of the entry's parameters: small integers; in the modules that say so also fractions,
/// infinities, NaNs, zeros of both signs and denormals, and the ends of the integers.
std::vector<hlo::Literal> arguments(const hlo::Module&, std::uint64_t seed);

/// The same by device, each its own.
std::vector<std::vector<hlo::Literal>> device_arguments(const hlo::Module&, std::uint64_t seed);

/// Whether module(seed) has floats that are not small integers.
bool is_wild(std::uint64_t seed);

}  // namespace hloom::generate
