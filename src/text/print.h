// Writes HLO text.
//
//   std::string text = text::print(module);                          // reads back as an equal module
//   std::string short_text = text::print(module, PrintOptions::dump());   // for people
//
// Printing is canonical: a module that was read from printed text prints as that text.
#pragma once

#include <string>

#include "hlo/literal.h"
#include "hlo/module.h"

namespace hloom::text {

/// What is written, and how. By default everything that the parser needs to build an equal module.
struct PrintOptions {
  bool percent = true;               ///< `%` before names
  bool operand_shapes = false;       ///< shapes before operands, as older dumps have them
  bool metadata = true;              ///< metadata={…} and the source tables
  bool backend_config = true;        ///< hloom's decisions too
  bool control_predecessors = true;
  bool large_constants = true;       ///< else `{...}` for more than ten elements
  bool layouts = true;
  bool signatures = true;            ///< (p: f32[2]) -> f32[2] after a computation's name
  bool index_comments = true;        ///< /*index=5*/ before each fifth operand
  bool async_sugar = false;          ///< X-start(…) for async-start; the names of what it calls are not kept

  /// For people: no large constants; asynchronous operations in their short form.
  static PrintOptions dump() {
    PrintOptions o;
    o.large_constants = false;
    o.async_sugar = true;
    return o;
  }
  /// As XLA's ShortParsable: no `%`, no metadata, no signatures.
  static PrintOptions short_parsable() {
    PrintOptions o;
    o.percent = o.metadata = o.backend_config = o.control_predecessors = false;
    o.signatures = o.index_comments = false;
    o.async_sugar = true;
    return o;
  }
};

/// The whole module. Needs: an entry computation with a root. Cost: linear.
std::string print(const hlo::Module&, const PrintOptions& = {});
/// One computation, from its name to its closing brace.
std::string print(const hlo::Computation&, const PrintOptions& = {});
/// One instruction, without its line's indent and without ROOT.
std::string print(const hlo::Instruction&, const PrintOptions& = {});
/// A literal as it stands inside constant(…).
std::string print_literal(const hlo::Literal&, const PrintOptions& = {});

}  // namespace hloom::text
