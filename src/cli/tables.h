// Where time went, as tables for people.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "compiler/compile.h"
#include "passes/run.h"
#include "runtime/executor.h"

namespace hloom::cli {

/// Stages in order, then the passes, dearest first.
std::string time_table(std::span<const std::pair<std::string, double>> stage_seconds,
                       std::vector<passes::PassTime> pass_times);

/// How many kernels there are, where their code came from, and what was wrong with the cache.
std::string code_words(const compiler::Compiled&);

/// Adds up the time between the ends of steps, which the step that ended took.
class Profile {
 public:
  /// From now on time is the first step's.
  void start() { since_ = std::chrono::steady_clock::now(); }
  void add(const runtime::StepEvent& event);
  /// Kernels and copies, dearest first.
  std::string table() const;

 private:
  struct Row {
    std::string name;
    std::int64_t runs = 0;
    double seconds = 0;
  };
  std::chrono::steady_clock::time_point since_;
  std::map<std::int32_t, Row> rows_;  ///< by step
};

}  // namespace hloom::cli
