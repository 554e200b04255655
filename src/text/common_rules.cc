// Attributes that any instruction accepts, in the order in which they are written.
#include "text/annotations.h"
#include "text/attribute_kinds.h"
#include "text/shardings.h"

namespace hloom::text {

using hlo::Annotations;
using hlo::Instruction;

namespace {

using Out = std::string;

template <typename Write>
bool write_if(bool present, const Write& write) {
  if (present) write();
  return present;
}

constexpr AttributeRule kSharding = {
    "sharding", false,
    [](ModuleParser& p, Instruction& i) { i.mutable_annotations().sharding = read_sharding(p.cursor()); },
    [](Out& out, const Instruction& i, const WriteStyle&) {
      const auto& sharding = i.annotations().sharding;
      return write_if(sharding.has_value(), [&] { write_sharding(out, *sharding); });
    }};

constexpr AttributeRule kFrontendAttributes = {"frontend_attributes", false,
                                               [](ModuleParser& p, Instruction& i) {
                                                 hlo::StringMap map = read_string_map(p.cursor());
                                                 if (!map.empty())
                                                   i.mutable_annotations().frontend_attributes = std::move(map);
                                               },
                                               [](Out& out, const Instruction& i, const WriteStyle&) {
                                                 const auto& map = i.annotations().frontend_attributes;
                                                 return write_if(!map.empty(), [&] { write_string_map(out, map); });
                                               }};

constexpr AttributeRule kControlPredecessors = {"control-predecessors", false,
                                                [](ModuleParser& p, Instruction& i) { p.read_control_predecessors(i); },
                                                [](Out& out, const Instruction& i, const WriteStyle& style) {
                                                  if (i.control_predecessors().empty() || !style.control_predecessors)
                                                    return false;
                                                  const char* comma = "{";
                                                  for (const Instruction* before : i.control_predecessors()) {
                                                    out += comma;
                                                    write_name(out, before->name(), style.percent);
                                                    comma = ", ";
                                                  }
                                                  out += '}';
                                                  return true;
                                                }};

constexpr AttributeRule kStatistics = {
    "statistics", false,
    [](ModuleParser& p, Instruction& i) { i.mutable_annotations().statistics = read_statistics(p.cursor()); },
    [](Out& out, const Instruction& i, const WriteStyle&) {
      const auto& statistics = i.annotations().statistics;
      return write_if(statistics.has_value(), [&] { write_statistics(out, *statistics); });
    }};

constexpr AttributeRule kResultAccuracy = {
    "result_accuracy", false,
    [](ModuleParser& p, Instruction& i) { i.mutable_annotations().result_accuracy = read_result_accuracy(p.cursor()); },
    [](Out& out, const Instruction& i, const WriteStyle&) {
      const auto& accuracy = i.annotations().result_accuracy;
      return write_if(accuracy.has_value(), [&] { write_result_accuracy(out, *accuracy); });
    }};

constexpr AttributeRule kOrigin = {
    "origin", false, [](ModuleParser& p, Instruction& i) { i.mutable_annotations().origin = read_origin(p.cursor()); },
    [](Out& out, const Instruction& i, const WriteStyle&) {
      const std::string& origin = i.annotations().origin;
      return write_if(!origin.empty(), [&] { out.append("{").append(origin).append("}"); });
    }};

constexpr AttributeRule kMetadata = {"metadata", false,
                                     [](ModuleParser& p, Instruction& i) {
                                       hlo::Metadata m = read_metadata(p.cursor());
                                       if (!m.empty()) i.mutable_annotations().metadata = std::move(m);
                                     },
                                     [](Out& out, const Instruction& i, const WriteStyle& style) {
                                       if (!i.has_annotations() || !style.metadata) return false;
                                       const std::string fields = metadata_fields(i.annotations().metadata);
                                       return write_if(!fields.empty(),
                                                       [&] { out.append("{").append(fields).append("}"); });
                                     }};

constexpr AttributeRule kBackendConfig = {"backend_config", false,
                                          [](ModuleParser& p, Instruction& i) {
                                            Annotations a;
                                            read_backend_config(p.cursor(), a);
                                            if (a.backend_config.empty() && a.decisions.empty()) return;
                                            i.mutable_annotations().backend_config = std::move(a.backend_config);
                                            i.mutable_annotations().decisions = std::move(a.decisions);
                                          },
                                          [](Out& out, const Instruction& i, const WriteStyle& style) {
                                            const Annotations& a = i.annotations();
                                            const bool present = style.backend_config &&
                                                                 (!a.backend_config.empty() || !a.decisions.empty());
                                            return write_if(present, [&] { write_backend_config(out, a); });
                                          }};

}  // namespace

std::vector<AttributeRule> common_rules() {
  return {kSharding, kFrontendAttributes, kControlPredecessors, kStatistics, kResultAccuracy,
          kOrigin,   kMetadata,           kBackendConfig};
}

}  // namespace hloom::text
