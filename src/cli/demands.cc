#include "cli/demands.h"

#include <sstream>

#include "arrays/files.h"
#include "base/try.h"
#include "compiler/memory_budget.h"

namespace hloom::cli {
namespace {

Expected<compiler::MemoryDemands> demands_of(const Options& options) {
  compiler::MemoryDemands demands;
  demands.limit_bytes = options.memory_limit;
  demands.concurrency_bytes = options.concurrency_memory;
  if (!options.budget.empty()) {
    const std::vector<std::byte> bytes = TRY(arrays::read_file(options.budget));
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    demands.budget = TRY(compiler::parse_budget(text, options.budget));
  }
  if (options.require_in_place.empty()) return demands;
  demands.in_place.emplace();
  if (options.require_in_place == "*") return demands;
  std::istringstream names(options.require_in_place);
  for (std::string name; std::getline(names, name, ',');)
    if (!name.empty()) demands.in_place->push_back(name);
  return demands;
}

}  // namespace

Expected<compiler::Options> compile_options(const Options& options) {
  compiler::Options result;
  result.threads = options.threads;
  result.cpu = options.cpu;
  result.users_cache = options.cache == "*";
  if (!result.users_cache) result.cache_folder = options.cache;
  result.perf = options.perf;
  result.memory = TRY(demands_of(options));
  return result;
}

}  // namespace hloom::cli
