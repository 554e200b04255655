#include "text/print_module.h"

#include "text/annotations.h"
#include "text/print_words.h"

namespace hloom::text {
namespace {

using hlo::Module;
using hlo::ModuleConfig;
using hlo::SourceTables;

void write_aliases(std::string& out, const ModuleConfig& config) {
  out += ", input_output_alias={ ";
  for (const hlo::InputOutputAlias& a : config.aliases) {
    if (&a != &config.aliases.front()) out += ", ";
    write_braced(out, a.output);
    out += ": (";
    write_integer(out, a.parameter);
    out += ", ";
    write_braced(out, a.parameter_index);
    out += a.must_alias ? ", must-alias)" : ", may-alias)";
  }
  out += " }";
}

void write_donors(std::string& out, const ModuleConfig& config) {
  out += ", buffer_donor={ ";
  for (const hlo::BufferDonor& d : config.donors) {
    if (&d != &config.donors.front()) out += ", ";
    out += '(';
    write_integer(out, d.parameter);
    out += ", ";
    write_braced(out, d.parameter_index);
    out += ')';
  }
  out += " }";
}

void write_entry_layout(std::string& out, const ModuleConfig& config, bool layouts) {
  out += ", entry_computation_layout={(";
  for (std::size_t n = 0; n < config.entry_parameters.size(); ++n) {
    if (n != 0) out += ", ";
    write_index_comment(out, n);
    out += to_string(config.entry_parameters[n], layouts);
  }
  out += ")->";
  out += to_string(config.entry_result, layouts);
  out += '}';
}

void write_flags(std::string& out, std::string_view name, const std::vector<bool>& flags) {
  out.append(", ").append(name).append("={");
  for (const bool b : flags) out.append(out.back() == '{' ? "" : ",").append(b ? "true" : "false");
  out += '}';
}

void write_locations(std::string& out, const SourceTables& tables) {
  std::int64_t row = 0;
  for (const SourceTables::Location& l : tables.locations) {
    write_integer(out, ++row);
    const auto field = [&](std::string_view name, std::int64_t value) {
      out.append(name).append("=");
      write_integer(out, value);
    };
    field(" {file_name_id", l.file_name_id);
    field(" function_name_id", l.function_name_id);
    field(" line", l.line);
    field(" end_line", l.end_line);
    field(" column", l.column);
    field(" end_column", l.end_column);
    out += "}\n";
  }
}

void write_frames(std::string& out, const SourceTables& tables) {
  std::int64_t row = 0;
  for (const SourceTables::Frame& f : tables.frames) {
    write_integer(out, ++row);
    out += " {file_location_id=";
    write_integer(out, f.file_location_id);
    out += " parent_frame_id=";
    write_integer(out, f.parent + 1);  // 1 says that there is none
    out += "}\n";
  }
}

void write_names(std::string& out, const std::vector<std::string>& names) {
  std::int64_t row = 0;
  for (const std::string& name : names) {
    write_integer(out, ++row);
    out += ' ';
    write_quoted(out, name);
    out += '\n';
  }
}

void write_tables(std::string& out, const SourceTables& tables) {
  out += "\nFileNames\n";
  write_names(out, tables.files);
  out += "\nFunctionNames\n";
  write_names(out, tables.functions);
  out += "\nFileLocations\n";
  write_locations(out, tables);
  out += "\nStackFrames\n";
  write_frames(out, tables);
}

}  // namespace

void write_header(std::string& out, const Module& module, const PrintOptions& options) {
  const ModuleConfig& config = module.config();
  out += "HloModule ";
  out += module.name();
  const auto count = [&](std::string_view name, std::int64_t value) {
    if (value == 1) return;
    out.append(", ").append(name).append("=");
    write_integer(out, value);
  };
  if (config.is_scheduled) out += ", is_scheduled=true";
  if (!config.aliases.empty()) write_aliases(out, config);
  if (!config.donors.empty()) write_donors(out, config);
  if (config.alias_passthrough_params) out += ", alias_passthrough_params=true";
  if (config.has_entry_layout) write_entry_layout(out, config, options.layouts);
  if (!config.propagate_sharding_to_parameters.empty())
    write_flags(out, "allow_spmd_sharding_propagation_to_parameters", config.propagate_sharding_to_parameters);
  if (!config.propagate_sharding_to_output.empty())
    write_flags(out, "allow_spmd_sharding_propagation_to_output", config.propagate_sharding_to_output);
  count("replica_count", config.replica_count);
  count("num_partitions", config.num_partitions);
  if (!config.frontend_attributes.empty()) {
    out += ", frontend_attributes=";
    write_string_map(out, config.frontend_attributes);
  }
  if (!config.origin_recovery_table.empty())
    out.append(", origin_recovery_table={").append(config.origin_recovery_table).append("}");
  if (!config.debug_attributes.empty()) out.append(", debug_attributes=").append(config.debug_attributes);
  out += '\n';
  if (options.metadata && config.tables.present) write_tables(out, config.tables);
}

}  // namespace hloom::text
