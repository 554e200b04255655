#include "cli/tables.h"

#include <algorithm>
#include <cstdio>

namespace hloom::cli {
namespace {

template <typename... Values>
void append(std::string& to, const char* format, Values... values) {
  char line[512];
  const int length = std::snprintf(line, sizeof(line), format, values...);
  to.append(line, static_cast<std::size_t>(std::clamp(length, 0, static_cast<int>(sizeof(line)) - 1)));
}

}  // namespace

std::string time_table(std::span<const std::pair<std::string, double>> stage_seconds,
                       std::vector<passes::PassTime> pass_times) {
  std::string text = "stage                          ms\n";
  for (const auto& [stage, seconds] : stage_seconds) append(text, "%-24s %8.2f\n", stage.c_str(), seconds * 1e3);
  std::stable_sort(pass_times.begin(), pass_times.end(),
                   [](const auto& a, const auto& b) { return a.seconds > b.seconds; });
  text += "pass                           ms     runs  changes";
  for (const passes::PassTime& t : pass_times)
    append(text, "\n%-24.24s %8.2f %8d %8d", std::string(t.pass->name).c_str(), t.seconds * 1e3, t.runs, t.changes);
  return text;
}

std::string code_words(const compiler::Compiled& compiled) {
  const jit::CompileReport& r = compiled.code_report;
  std::string text = "code: " + std::to_string(r.kernels) + (r.kernels == 1 ? " kernel, " : " kernels, ") +
                     std::to_string(r.from_memory + r.from_disk) + " of them from the cache";
  for (const std::string& problem : compiled.cache_problems) text.append("\ncache: ").append(problem);
  return text;
}

namespace {

std::string name_of(const runtime::Step& step) {
  if (const auto* call = std::get_if<runtime::Call>(&step.of)) return call->name;
  if (const auto* collective = std::get_if<runtime::Collective>(&step.of))
    return "collective " + std::to_string(collective->number);
  if (const auto* start = std::get_if<runtime::Start>(&step.of)) return "start " + std::to_string(start->number);
  if (const auto* finish = std::get_if<runtime::Finish>(&step.of)) return "finish " + std::to_string(finish->number);
  return std::holds_alternative<runtime::Copy>(step.of) ? "copy" : "device number";
}

}  // namespace

void Profile::add(const runtime::StepEvent& event) {
  const auto now = std::chrono::steady_clock::now();
  Row& row = rows_[event.step];
  if (row.runs == 0) {
    row.name = name_of(*event.of);
  }
  ++row.runs;
  row.seconds += std::chrono::duration<double>(now - since_).count();
  since_ = std::chrono::steady_clock::now();
}

std::string Profile::table() const {
  std::vector<std::pair<std::int32_t, Row>> rows(rows_.begin(), rows_.end());
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.second.seconds > b.second.seconds; });
  double total = 0;
  for (const auto& [step, row] : rows) total += row.seconds;
  std::string text = "step  kernel                                   runs         ms      %";
  for (const auto& [step, row] : rows)
    append(text, "\n%4d  %-36.36s %9lld %10.3f %6.1f", static_cast<int>(step), row.name.c_str(),
           static_cast<long long>(row.runs), row.seconds * 1e3, total > 0 ? 100 * row.seconds / total : 0.0);
  return text;
}

}  // namespace hloom::cli
