#include "compiler/memory_budget.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "base/fail.h"
#include "base/try.h"
#include "compiler/show_memory.h"

namespace hloom::compiler {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

// Without exceptions: a discarded value where the text is no JSON.
json parse(std::string_view text) { return json::parse(text, nullptr, false); }

Expected<std::int64_t> bytes_in(const json& file, const char* key, std::string_view name) {
  const auto found = file.find(key);
  if (found == file.end()) return std::int64_t{-1};
  if (!found->is_number_integer() || found->get<std::int64_t>() < 0)
    return fail(Code::InvalidArgument, name, ": ", key, " is no number of bytes: ", found->dump());
  return found->get<std::int64_t>();
}

}  // namespace

Expected<MemoryBudget> parse_budget(std::string_view text, std::string_view name) {
  const json file = parse(text);
  if (!file.is_object()) return fail(Code::InvalidArgument, name, ": a budget is a JSON object");
  for (const auto& [key, value] : file.items())
    if (key != "module" && key != "peak_bytes" && key != "temp_bytes" && key != "in_place")
      return fail(Code::InvalidArgument, name, ": a budget has no ", key, "; it has peak_bytes, temp_bytes and in_place");
  MemoryBudget budget;
  budget.peak_bytes = TRY(bytes_in(file, "peak_bytes", name));
  budget.temp_bytes = TRY(bytes_in(file, "temp_bytes", name));
  const auto names = file.find("in_place");
  if (names == file.end()) return budget;
  if (!names->is_array()) return fail(Code::InvalidArgument, name, ": in_place is no list of names");
  for (const json& n : *names) {
    if (!n.is_string()) return fail(Code::InvalidArgument, name, ": in_place has what is no name: ", n.dump());
    budget.in_place.push_back(n.get<std::string>());
  }
  return budget;
}

std::string budget_of(const buffers::Assignment& assignment) {
  std::set<std::string> in_place, copied;
  for (const buffers::InPlaceDecision& d : assignment.decisions()) (d.in_place ? in_place : copied).insert(d.at);
  ordered_json names = ordered_json::array();
  for (const std::string& n : in_place)
    if (!copied.contains(n)) names.push_back(n);
  const ordered_json file = {{"module", assignment.module().name()},
                             {"peak_bytes", assignment.total_bytes()},
                             {"temp_bytes", assignment.arena_bytes()},
                             {"in_place", std::move(names)}};
  return file.dump(1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

namespace {

// Bytes by the first value's name. Several blocks may have one name by turns; then their sum.
std::map<std::string, std::int64_t> owners(const json& report) {
  std::map<std::string, std::int64_t> bytes;
  for (const json& owner : report.at("peak").at("owners"))
    bytes[owner.at("values").at(0).get<std::string>()] += owner.at("bytes").get<std::int64_t>();
  return bytes;
}

std::map<std::string, const json*> updates(const json& report) {
  std::map<std::string, const json*> found;
  for (const json& u : report.at("updates"))
    found[u.at("at").get<std::string>() + ": " + u.at("kind").get<std::string>() + " of leaf " + u.at("leaf").dump()] = &u;
  return found;
}

bool is_report(const json& file) {
  if (!file.is_object() || !file.contains("peak") || !file["peak"].is_object() || !file.contains("updates")) return false;
  if (!file["peak"].contains("owners") || !file["peak"]["owners"].is_array() || !file["updates"].is_array()) return false;
  const auto has = [](const json& o, const char* key, json::value_t type) { return o.contains(key) && o[key].type() == type; };
  const bool owners = std::ranges::all_of(file["peak"]["owners"], [](const json& o) {
    return o.is_object() && o.contains("bytes") && o["bytes"].is_number_integer() && o.contains("values") &&
           o["values"].is_array() && !o["values"].empty() && o["values"][0].is_string();
  });
  return owners && std::ranges::all_of(file["updates"], [&](const json& u) {
    return u.is_object() && has(u, "at", json::value_t::string) && has(u, "kind", json::value_t::string) &&
           u.contains("leaf") && has(u, "in_place", json::value_t::boolean) && has(u, "reason", json::value_t::string);
  });
}

void print_change(std::ostream& out, std::string_view what, std::int64_t before, std::int64_t now) {
  if (before == now) return;
  out << what << ": " << before << " -> " << now << " (" << (now > before ? "+" : "") << now - before << ")\n";
}

void print_bytes(std::ostream& out, const json& before, const json& now) {
  for (const char* key : {"parameter_bytes", "result_bytes", "constant_bytes", "arena_bytes", "scratch_bytes", "gap_bytes"})
    if (before.contains(key) && before[key].is_number_integer())
      print_change(out, key, before[key].get<std::int64_t>(), now[key].get<std::int64_t>());
}

void print_owners(std::ostream& out, const json& before, const json& now) {
  const auto then = owners(before), here = owners(now);
  for (const auto& [name, bytes] : here)
    print_change(out, "at the peak, " + name, then.contains(name) ? then.at(name) : 0, bytes);
  for (const auto& [name, bytes] : then)
    if (!here.contains(name)) print_change(out, "at the peak, " + name, bytes, 0);
}

void print_updates(std::ostream& out, const json& before, const json& now) {
  const auto then = updates(before), here = updates(now);
  for (const auto& [name, u] : here) {
    const bool in_place = u->at("in_place").get<bool>();
    const auto found = then.find(name);
    if (found != then.end() && found->second->at("in_place") == u->at("in_place")) continue;
    if (found == then.end() && in_place) continue;
    out << name << ": now " << (in_place ? "in place" : "copied, because " + u->at("reason").get<std::string>()) << "\n";
  }
  for (const auto& [name, u] : then)
    if (!here.contains(name) && !u->at("in_place").get<bool>()) out << name << ": was copied, is there no more\n";
}

}  // namespace

Expected<std::string> memory_changes(std::string_view report, std::string_view name,
                                     const Compiled& compiled) {
  const json before = parse(report), now = parse(memory_json(compiled));
  if (!is_report(before))
    return fail(Code::InvalidArgument, name, ": is no report of memory; show --stage=memory --format=json writes one");
  std::ostringstream out;
  print_bytes(out, before, now);
  print_owners(out, before, now);
  print_updates(out, before, now);
  const std::string text = std::move(out).str();
  return text.empty() ? std::string("no change\n") : text;
}

}  // namespace hloom::compiler
