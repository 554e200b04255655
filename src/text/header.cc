// The header line: HloModule name, attribute=value, …
#include <algorithm>

#include "text/annotations.h"
#include "text/attribute_kinds.h"
#include "text/module_parser.h"

namespace hloom::text {

using hlo::ModuleConfig;

namespace {

constexpr std::string_view kAttributes[] = {"is_scheduled",
                                            "replica_count",
                                            "num_partitions",
                                            "input_output_alias",
                                            "buffer_donor",
                                            "alias_passthrough_params",
                                            "entry_computation_layout",
                                            "allow_spmd_sharding_propagation_to_parameters",
                                            "allow_spmd_sharding_propagation_to_output",
                                            "frontend_attributes",
                                            "origin_recovery_table",
                                            "debug_attributes"};

// true, or {true,false}. The default {false} is as good as nothing.
std::vector<bool> read_flags(Cursor& c) {
  std::vector<bool> flags;
  if (c.peek() == '{')
    c.list('{', '}', [&] { flags.push_back(c.boolean("'true' or 'false'")); });
  else
    flags.push_back(c.boolean("'true', 'false' or a list of them"));
  if (flags == std::vector<bool>{false}) flags.clear();
  return flags;
}

}  // namespace

void ModuleParser::read_header() {
  c_.eat_word("HloModule");
  const std::string_view name = c_.take_name("the name of the module");
  c_.eat(':');
  module_->set_name(std::string(name));
  for (;;) {
    const bool comma = c_.eat(',');
    const char* at = c_.at();
    // The debug attributes stand on a line of their own.
    if (!comma && c_.peek_word() != "debug_attributes") break;
    const std::string_view key = c_.take_key("an attribute of the module");
    if (!c_.ok()) return;
    const auto* const found = std::ranges::find(kAttributes, key);
    const std::vector<std::string_view> all(std::begin(kAttributes), std::end(kAttributes));
    if (found == std::end(kAttributes))
      return c_.fail(
          "H204", at,
          words("unknown attribute '", key, "' of the module", did_you_mean(key, all), "; accepted: ", listed(all)));
    const auto number = found - std::begin(kAttributes);
    if ((header_seen_ >> number & 1) != 0) return c_.fail("H502", at, words("the attribute '", key, "' comes twice"));
    header_seen_ |= 1ull << number;
    read_header_attribute(key);
    if (!c_.ok()) return;
  }
  if (c_.peek_word() == "FileNames") read_source_tables();
}

void ModuleParser::read_header_attribute(std::string_view key) {
  ModuleConfig& config = module_->config();
  const char* at = c_.at();
  if (key == "is_scheduled") {
    config.is_scheduled = c_.boolean("'true' or 'false'");
  } else if (key == "replica_count") {
    config.replica_count = c_.integer_between(key, 1, INT32_MAX);
  } else if (key == "num_partitions") {
    config.num_partitions = c_.integer_between(key, 1, INT32_MAX);
  } else if (key == "input_output_alias") {
    read_aliases();
  } else if (key == "buffer_donor") {
    read_donors();
  } else if (key == "alias_passthrough_params") {
    config.alias_passthrough_params = c_.boolean("'true' or 'false'");
  } else if (key == "entry_computation_layout") {
    layout_at_ = at;
    read_entry_layout();
  } else if (key == "allow_spmd_sharding_propagation_to_parameters") {
    config.propagate_sharding_to_parameters = read_flags(c_);
  } else if (key == "allow_spmd_sharding_propagation_to_output") {
    config.propagate_sharding_to_output = read_flags(c_);
  } else if (key == "frontend_attributes") {
    config.frontend_attributes = read_string_map(c_);
  } else if (key == "origin_recovery_table") {
    config.origin_recovery_table = read_recovery_table(c_);
  } else {
    config.debug_attributes = c_.dictionary();
  }
}

// {(f32[2]{0}, …)->f32[]}
void ModuleParser::read_entry_layout() {
  ModuleConfig& config = module_->config();
  const ShapeRules rules{.fill_layouts = c_.options().fill_missing_layouts && !c_.options().keep_module_auto_layouts,
                         .empty_layout = false};
  c_.expect('{');
  c_.list('(', ')', [&] { config.entry_parameters.push_back(read_shape(c_, rules)); });
  if (!c_.eat("->")) c_.fail_expected("'->'");
  config.entry_result = read_shape(c_, rules);
  c_.expect('}');
  config.has_entry_layout = true;
}

// { {0}: (1, {}, must-alias), … }
void ModuleParser::read_aliases() {
  c_.list('{', '}', [&] {
    alias_at_.push_back(c_.at());
    hlo::InputOutputAlias a;
    a.output = c_.integers('{', '}', "the number of an element");
    c_.expect(':');
    c_.expect('(');
    a.parameter = c_.integer("the number of a parameter");
    c_.expect(',');
    a.parameter_index = c_.integers('{', '}', "the number of an element");
    if (c_.eat(',')) {
      const char* at = c_.at();
      const std::string_view kind = c_.take_word("'may-alias' or 'must-alias'");
      a.must_alias = kind == "must-alias";
      if (c_.ok() && !a.must_alias && kind != "may-alias") fail_enum(c_, at, kind, {"may-alias", "must-alias"});
    }
    c_.expect(')');
    module_->config().aliases.push_back(std::move(a));
  });
}

// { (0, {}), … }
void ModuleParser::read_donors() {
  c_.list('{', '}', [&] {
    donor_at_.push_back(c_.at());
    hlo::BufferDonor d;
    c_.expect('(');
    d.parameter = c_.integer("the number of a parameter");
    c_.expect(',');
    d.parameter_index = c_.integers('{', '}', "the number of an element");
    c_.expect(')');
    module_->config().donors.push_back(std::move(d));
  });
}

namespace {

std::string to_text(const ShapeIndex& index) {
  std::string out;
  write_braced(out, index);
  return out;
}

}  // namespace

// The paths of aliases and donors against the entry.
void ModuleParser::check_places() {
  const hlo::Computation& entry = *module_->entry();
  const ModuleConfig& config = module_->config();
  const auto check_parameter = [&](const char* at, std::int64_t number, const ShapeIndex& index) {
    if (number < 0 || number >= static_cast<std::int64_t>(entry.parameters().size()))
      return errors_.add("H205", at, words("the entry has no parameter ", number));
    const Shape& shape = entry.parameter(number)->shape();
    if (subshape(shape, index) == nullptr)
      errors_.add(
          "H205", at,
          words("parameter ", number, " of shape ", to_string(shape, false), " has no element ", to_text(index)));
  };
  for (std::size_t n = 0; n < config.aliases.size(); ++n) {
    const hlo::InputOutputAlias& a = config.aliases[n];
    if (subshape(entry.root()->shape(), a.output) == nullptr)
      errors_.add("H205", alias_at_[n],
                  words("the result of shape ", to_string(entry.root()->shape(), false), " has no element ",
                        to_text(a.output)));
    check_parameter(alias_at_[n], a.parameter, a.parameter_index);
  }
  for (std::size_t n = 0; n < config.donors.size(); ++n)
    check_parameter(donor_at_[n], config.donors[n].parameter, config.donors[n].parameter_index);
}

// The layouts of the entry: as the header says, or as the entry has them.
void ModuleParser::check_entry_layout() {
  ModuleConfig& config = module_->config();
  const hlo::Computation& entry = *module_->entry();
  if (!config.has_entry_layout) {
    for (const hlo::Instruction* p : entry.parameters()) config.entry_parameters.push_back(p->shape());
    config.entry_result = entry.root()->shape();
    config.has_entry_layout = true;
    return;
  }
  const auto compare = [&](std::string_view what, const Shape& said, const Shape& actual) {
    if (!compatible(said, actual))
      errors_.add(
          "H206", layout_at_,
          words(what, " is ", to_string(said, false), " here, but ", to_string(actual, false), " in the entry"));
  };
  if (config.entry_parameters.size() != entry.parameters().size())
    return errors_.add(
        "H206", layout_at_,
        words(config.entry_parameters.size(), " parameters here, but ", entry.parameters().size(), " in the entry"));
  for (std::size_t n = 0; n < entry.parameters().size(); ++n)
    compare(words("parameter ", n), config.entry_parameters[n], entry.parameters()[n]->shape());
  compare("the result", config.entry_result, entry.root()->shape());
}

}  // namespace hloom::text
