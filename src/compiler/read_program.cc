#include "compiler/read_program.h"

#include <algorithm>
#include <charconv>

#include "base/fail.h"
#include "base/try.h"
#include "text/parse.h"

namespace hloom::compiler {
namespace {

// The module asked for among several.
Expected<text::ModuleText> choose(const std::vector<text::ModuleText>& modules, const ReadOptions& options) {
  if (options.module.empty()) {
    if (modules.size() == 1) return modules[0];
    std::string names;
    for (const text::ModuleText& m : modules) names.append(names.empty() ? "" : ", ").append(m.name);
    return fail(Code::InvalidArgument, options.file_name, ": holds ", modules.size(),
                " modules; say which with --module=NAME or a number from 0: ", names);
  }
  for (const text::ModuleText& m : modules)
    if (m.name == options.module) return m;
  std::size_t number = 0;
  const char* end = options.module.data() + options.module.size();
  const auto [rest, error] = std::from_chars(options.module.data(), end, number);
  if (error == std::errc() && rest == end && number < modules.size()) return modules[number];
  return fail(Code::NotFound, options.file_name, ": has no module ", options.module, "; it holds ", modules.size());
}

}  // namespace

Expected<std::unique_ptr<hlo::Module>> read_program(std::string_view program, const ReadOptions& options) {
  // Serialized forms hold bytes that no text has.
  if (program.starts_with("ML\xEFR"))
    return fail(Code::Unimplemented, options.file_name, ": is MLIR bytecode; this build reads HLO text");
  if (program.substr(0, 4096).find('\0') != std::string_view::npos)
    return fail(Code::Unimplemented, options.file_name, ": is no text; this build reads HLO text");
  const std::vector<text::ModuleText> modules = text::split_modules(program);
  if (modules.empty()) return fail(Code::InvalidArgument, options.file_name, ": holds no module");
  const text::ModuleText chosen = TRY(choose(modules, options));
  text::ParseOptions parse;
  parse.file_name = options.file_name;
  parse.first_line = chosen.first_line;
  parse.fill_elided = options.fill_elided;
  parse.replica_count = options.replicas;
  parse.num_partitions = options.partitions;
  return text::parse_module(chosen.text, parse);
}

}  // namespace hloom::compiler
