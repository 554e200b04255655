// Reads HLO text.
//
//   Expected<std::unique_ptr<hlo::Module>> module = text::parse_module(text, {.file_name = "step.hlo"});
//   if (!module) return report(module.error().message());   // step.hlo:12:26: error[H608]: … with the line and a caret
//
// Everything the language has is kept: print.h writes back a text that reads as an equal module.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "hlo/literal.h"
#include "hlo/module.h"
#include "hloom/error.h"
#include "hloom/shape.h"

namespace hloom::text {

/// How to read.
struct ParseOptions {
  std::string_view file_name = "<text>";  ///< for messages
  std::int32_t first_line = 1;  ///< the line of the file on which the text begins
  /// Elements of constants written `{...}`: refused, or small values that depend on the position alone.
  bool fill_elided = false;
  /// How deep shapes, literals, operands, bodies and calls may nest.
  int max_depth = 500;
  /// Instead of what the header says, if more than 0.
  std::int64_t replica_count = 0, num_partitions = 0;
  /// Runs hlo::verify on what was read.
  bool verify = true;
  /// Gives array shapes without a layout the row-major one.
  bool fill_missing_layouts = true;
  /// Leaves shapes of entry_computation_layout that have no layout without one.
  bool keep_module_auto_layouts = false;
  /// Keeps metadata fields of other versions instead of refusing them.
  bool lenient_metadata = true;
};

/// Reads one module: with or without header, or a single instruction whose operands carry shapes.
/// Errors: InvalidArgument with all that is wrong (at most 20), each as `file:line:column: error[Hnnn]: what`
/// with the line and a caret. Cost: linear in the text.
Expected<std::unique_ptr<hlo::Module>> parse_module(std::string_view text, const ParseOptions& options = {});

/// Reads all modules of a text that separates them by lines `// -----`. Errors: as parse_module.
Expected<std::vector<std::unique_ptr<hlo::Module>>> parse_modules(std::string_view text,
                                                                  const ParseOptions& options = {});

/// One of several modules in a text: to be given to parse_module with its `first_line`.
struct ModuleText {
  std::string_view name;  ///< after `HloModule`; empty if there is no header
  std::string_view text;  ///< part of the whole text
  std::int32_t first_line = 1;
};

/// The modules of a text, without parsing them; pieces without a word are left out. Views of `text`.
std::vector<ModuleText> split_modules(std::string_view text);

/// Reads a literal of this shape, as inside constant(…). Errors: InvalidArgument, as parse_module.
Expected<hlo::Literal> parse_literal(std::string_view text, const Shape& shape, const ParseOptions& options = {});

/// Reads a shape: `f32[2,3]{1,0}`. Errors: InvalidArgument, as parse_module.
Expected<Shape> parse_shape(std::string_view text, const ParseOptions& options = {});

}  // namespace hloom::text
