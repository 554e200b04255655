#include "runtime/values.h"

#include <algorithm>
#include <string>

#include "base/fail.h"
#include "base/try.h"

namespace hloom::runtime {
namespace {

std::uintptr_t address(std::span<std::byte> value) { return reinterpret_cast<std::uintptr_t>(value.data()); }

bool same(std::span<std::byte> a, std::span<std::byte> b) { return a.data() == b.data() && a.size() == b.size(); }

Expected<> check_ports(std::string_view what, Values values, const std::vector<Port>& ports) {
  if (values.size() != ports.size())
    return fail(Code::InvalidArgument, "expects ", ports.size(), " ", what, "s, found ", values.size());
  for (std::size_t i = 0; i < ports.size(); ++i) {
    if (static_cast<std::int64_t>(values[i].size()) != ports[i].size_bytes)
      return fail(Code::InvalidArgument, what, " ", i, ": has ", values[i].size(), " bytes; expected ",
                  ports[i].size_bytes);
    if (ports[i].size_bytes == 0) continue;
    if (values[i].data() == nullptr) return fail(Code::InvalidArgument, what, " ", i, ": is null");
    if (address(values[i]) % static_cast<std::uintptr_t>(ports[i].alignment) != 0)
      return fail(Code::InvalidArgument, what, " ", i, ": its address is no multiple of ", ports[i].alignment);
  }
  return {};
}

std::string name_of(const Program& program, std::int32_t port) {
  const auto parameters = static_cast<std::int32_t>(program.parameters.size());
  return port < parameters ? "parameter " + std::to_string(port) : "result " + std::to_string(port - parameters);
}

// Goes through the ranges by address and remembers how far results, and all, have reached.
Expected<> check_overlaps(const Program& program, std::vector<Range>& ranges) {
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
  const auto parameters = static_cast<std::int32_t>(program.parameters.size());
  Range any, result;
  for (const Range& range : ranges) {
    const bool is_result = range.port >= parameters;
    const Range& before = is_result ? any : result;
    if (range.begin < before.end)
      return fail(Code::InvalidArgument, name_of(program, std::max(range.port, before.port)), " overlaps ",
                  name_of(program, std::min(range.port, before.port)),
                  "; it may only be all of the parameter that the program aliases it with");
    if (range.end > any.end) any = range;
    if (is_result && range.end > result.end) result = range;
  }
  return {};
}

}  // namespace

Expected<> check_values(const Program& program, Values parameters, Values results, std::vector<Range>& ranges) {
  TRY(check_ports("parameter", parameters, program.parameters));
  TRY(check_ports("result", results, program.results));
  ranges.clear();
  for (std::size_t i = 0; i < parameters.size(); ++i)
    ranges.push_back({address(parameters[i]), address(parameters[i]) + parameters[i].size(),
                      static_cast<std::int32_t>(i)});
  for (const Alias& alias : program.aliases) {
    const auto p = static_cast<std::size_t>(alias.parameter);
    if (same(parameters[p], results[static_cast<std::size_t>(alias.result)])) ranges[p].end = ranges[p].begin;
  }
  for (std::size_t i = 0; i < results.size(); ++i)
    ranges.push_back({address(results[i]), address(results[i]) + results[i].size(),
                      static_cast<std::int32_t>(parameters.size() + i)});
  std::erase_if(ranges, [](const Range& range) { return range.begin == range.end; });
  return check_overlaps(program, ranges);
}

}  // namespace hloom::runtime
