// The parser of a module: computations, instructions, references between them.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "hlo/module.h"
#include "text/attribute_rules.h"
#include "text/cursor.h"
#include "text/name_table.h"
#include "text/outline.h"
#include "text/shapes.h"

namespace hloom::text {

/// A computation that is being read.
struct Scope {
  Scope(hlo::Computation& c, std::string_view text) : computation(c), names(text) {}

  hlo::Computation& computation;
  NameTable names;
  const char* defining = nullptr;  ///< the name of the instruction that is being read: not there yet
  /// What `%p#1` made: the element of an instruction.
  std::unordered_map<const hlo::Instruction*, std::vector<std::pair<std::int64_t, hlo::Instruction*>>> elements;
  const char* root_at = nullptr;  ///< of the word ROOT
  hlo::Instruction* root = nullptr;
  hlo::Instruction* last = nullptr;  ///< the last one in the text
  std::vector<const char*> parameter_at;  ///< by number; null: not seen
  bool free_operands = false;  ///< an unknown operand with a shape is a parameter
  int call_depth = 1;          ///< longest chain of calls below, this one included
};

/// Reads one module. Attributes of instructions are read by attribute_rules.h, which calls back for computations.
class ModuleParser {
 public:
  ModuleParser(std::string_view part, ErrorList& errors, const ParseOptions& options)
      : c_(part, errors, options), part_(part), errors_(errors), places_(errors.places(part.data())) {}

  /// The module, or null with the errors in the list.
  std::unique_ptr<hlo::Module> parse();

  Cursor& cursor() { return c_; }
  /// For shapes inside of instructions.
  ShapeRules shape_rules() const { return {.fill_layouts = c_.options().fill_missing_layouts, .empty_layout = true}; }
  /// Reads the name of a computation, or a body in its place. Null after an error.
  hlo::Computation* read_callee();
  /// Reads `{a, b}`, names of instructions before `i`, into its control predecessors.
  void read_control_predecessors(hlo::Instruction& i);

 private:
  /// A computation by its name in the text.
  struct Known {
    hlo::Computation* computation = nullptr;
    const char* at = nullptr;   ///< of its name
    const char* end = nullptr;  ///< after its text; null: it is being read
    int call_depth = 1;
  };
  /// An instruction that is being read.
  struct Operation {
    enum class Sugar : std::uint8_t { None, Start, Update, Done };

    std::string_view name;
    std::optional<Shape> shape;  ///< till the instruction has it
    bool has_shape = false;
    const char* at = nullptr;  ///< of the opcode
    std::string_view word;     ///< the opcode as written
    hlo::Opcode opcode{};
    Sugar sugar = Sugar::None;
    hlo::Opcode wrapped{};                   ///< with sugar: X of X-start
    hlo::Instruction* made = nullptr;
    hlo::Instruction* wrapped_made = nullptr;  ///< with X-start: the X
    std::uint64_t seen = 0, seen_inner = 0;    ///< attributes, by number of their rule
  };

  // module_parser.cc
  void read_module();
  void read_header();
  void read_computations();
  void read_single_instruction();
  void finish_module();
  void check_entry_layout();
  void verify();

  // header.cc
  void read_header_attribute(std::string_view key);
  void read_entry_layout();
  void read_aliases();
  void read_donors();
  void read_source_tables();
  void check_places();

  // computations.cc
  void read_computation();
  void read_definition(std::string_view name, bool entry);
  std::optional<Shape> read_signature(const char*& result_at);
  void read_body(Scope&);
  void recover_instruction();
  void recover_computation();
  void finish_computation(Scope&, const char* at);
  void check_parameters(Scope&, const char* at);
  Known* find_computation(std::string_view name);
  void read_ahead(const Outline::Entry&);
  hlo::Computation* read_inline_body();
  void count_call(int depth, const char* at);

  // instructions.cc
  void read_instruction(Scope&);
  bool take_opcode(Operation&);
  void read_operation(Scope&, Operation&);
  void read_parameter(Scope&, Operation&);
  void read_constant(Scope&, Operation&);
  void set_defaults(hlo::Instruction&);

  // attributes.cc
  void read_attributes(Operation&);
  void read_attribute(Operation&, std::string_view key, const char* at);
  void check_required(const Operation&, std::uint64_t seen, const hlo::Instruction&);
  void complete(Operation&);
  void check_ranks(const Operation&, const hlo::Instruction&);
  void infer(Operation&);

  // operands.cc
  std::vector<hlo::Instruction*> read_operands(Scope&);
  hlo::Instruction* read_operand(Scope&);
  hlo::Instruction* read_nested(Scope&, std::string_view opcode, std::optional<Shape>);
  hlo::Instruction* find_operand(Scope&, std::string_view name, const std::optional<Shape>&, const char* shape_at);
  hlo::Instruction* element_of(Scope&, hlo::Instruction* tuple);
  hlo::Instruction* free_operand(Scope&, std::string_view name, const Shape&);

  // async.cc
  void wrap_async(Operation&);
  void check_async_link(const Operation&);
  void finish_async(const Operation&);

  Cursor c_;
  std::string_view part_;
  ErrorList& errors_;
  PlaceFinder places_;
  std::unique_ptr<hlo::Module> module_;
  std::unordered_map<std::string_view, Known> computations_;
  std::optional<Outline> outline_;  ///< made when a name is met before its computation
  const char* body_at_ = nullptr;   ///< where the computations begin
  std::vector<hlo::Instruction*> operands_;  ///< of the operations that are being read
  std::vector<Scope*> scopes_;      ///< the innermost last
  const char* entry_at_ = nullptr;  ///< of the word ENTRY
  const char* layout_at_ = nullptr;
  std::vector<const char*> alias_at_, donor_at_;
  std::uint64_t header_seen_ = 0;
  std::int64_t parameter_slots_ = 0;
  hlo::Computation* last_computation_ = nullptr;
  bool out_of_order_ = false;
};

}  // namespace hloom::text
