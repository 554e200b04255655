// Which attributes an opcode accepts, how each is read, and how it is written (hlo-text 11, 12, 13.2).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hlo/instruction.h"
#include "text/cursor.h"
#include "text/print.h"

namespace hloom::text {

class ModuleParser;

/// What writing attributes depends on.
using WriteStyle = PrintOptions;

/// One attribute of some opcodes.
struct AttributeRule {
  std::string_view name;
  bool required = false;
  /// Reads the value into the instruction.
  void (*read)(ModuleParser&, hlo::Instruction&) = nullptr;
  /// Appends the value; false if it is the default and need not be written (what was appended is dropped then).
  bool (*write)(std::string& out, const hlo::Instruction&, const WriteStyle&) = nullptr;
  std::string_view other_name = {};  ///< another spelling that is read
};

using RuleList = std::span<const AttributeRule>;

/// The opcode's own attributes, in the order in which they are written.
RuleList own_rules(hlo::Opcode);
/// The opcode's own and then those that any instruction accepts; own_rules() is their beginning.
RuleList rules_for(hlo::Opcode);

/// Which of rules_for() may be required: bit n for the n-th.
std::uint64_t required_rules(hlo::Opcode);

/// Those that any instruction accepts (result_accuracy: some).
std::vector<AttributeRule> common_rules();

/// Whether the instruction cannot do without. (A scalar's broadcast needs no dimensions, a pred's conditional no
/// branch_computations.)
bool is_required(const AttributeRule&, const hlo::Instruction&);

/// Reads `=value` of an attribute of unknown spelling as text; `at` is where its name begins.
void read_raw_attribute(Cursor&, const char* at, hlo::Instruction&);

}  // namespace hloom::text
