#include "cli/demands.h"

#include <sstream>

namespace hloom::cli {
namespace {

compiler::MemoryDemands demands_of(const Options& options) {
  compiler::MemoryDemands demands;
  demands.limit_bytes = options.memory_limit;
  if (options.require_in_place.empty()) return demands;
  demands.in_place.emplace();
  if (options.require_in_place == "*") return demands;
  std::istringstream names(options.require_in_place);
  for (std::string name; std::getline(names, name, ',');)
    if (!name.empty()) demands.in_place->push_back(name);
  return demands;
}

}  // namespace

compiler::Options compile_options(const Options& options) {
  compiler::Options result;
  result.threads = options.threads;
  result.cpu = options.cpu;
  result.perf = options.perf;
  result.memory = demands_of(options);
  return result;
}

}  // namespace hloom::cli
