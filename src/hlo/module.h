// Computations and the module that holds them.
#pragma once

#include <memory>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "hlo/instruction.h"
#include "hlo/name_set.h"

namespace hloom::hlo {

/// Values of a vector of owners, as references.
inline constexpr auto kDereference = std::views::transform([](const auto& owner) -> auto& { return *owner; });

/// A function of HLO: instructions in order, each after its operands, one of them the root.
class Computation {
 public:
  const std::string& name() const { return name_; }
  Module& module() const { return *module_; }
  /// Instructions in order; in a scheduled module the order of execution.
  auto instructions() const { return instructions_ | kDereference; }
  std::int64_t num_instructions() const { return static_cast<std::int64_t>(instructions_.size()); }
  Instruction* root() const { return root_; }
  void set_root(Instruction* root) { root_ = root; }
  /// Parameters by number.
  const std::vector<Instruction*>& parameters() const { return parameters_; }
  Instruction* parameter(std::int64_t i) const { return parameters_[static_cast<std::size_t>(i)]; }

  const std::string& execution_thread() const { return execution_thread_; }
  void set_execution_thread(std::string thread) { execution_thread_ = std::move(thread); }

  /// Appends an instruction with the opcode's default attributes. `name` is made unique in the module by `.N`
  /// (empty: the opcode's). Parameters: use add_parameter. The first instruction is the root until set_root.
  Instruction* add(Opcode, Shape, std::vector<Instruction*> operands, std::string_view name = {});
  Instruction* add_parameter(std::int64_t number, Shape, std::string_view name = {});
  Instruction* add_constant(Literal, std::string_view name = {});
  Instruction* add_tuple(std::vector<Instruction*> elements, std::string_view name = {});
  Instruction* add_get_tuple_element(Instruction* tuple, std::int64_t index, std::string_view name = {});
  Instruction* add_transpose(Instruction* operand, Dims permutation, std::string_view name = {});
  Instruction* add_reshape(Instruction* operand, Dims dims, std::string_view name = {});
  Instruction* add_broadcast(Instruction* operand, Dims result_dims, Dims dimensions, std::string_view name = {});
  /// A copy of `like` (same attributes, annotations, called computations) with other operands.
  Instruction* add_clone(const Instruction& like, std::vector<Instruction*> operands, std::string_view name = {});

  /// Lets all users of `old` use `with`, and makes it the root if `old` was; control edges stay with `old`.
  /// `old` stays, dead. Needs: both in this computation.
  void replace_uses(Instruction* old, Instruction* with);
  /// Removes an instruction without users that is not the root. Cost: the computation's length; remove many at once
  /// with remove_if_dead().
  void remove(Instruction*);
  /// Removes all for which `dead` says so, users before operands. Returns how many. Needs: no live users.
  template <typename Predicate>
  std::int64_t remove_all(const Predicate& dead);

  /// Operands before users (control edges too), otherwise in the present order; a copy of the list, so that a
  /// pass may add while it walks. All instructions, dead ones too. Cost: linear.
  std::vector<Instruction*> post_order() const;
  /// Puts the instructions into post_order(). To be called after a pass appended what earlier ones use.
  void sort();
  /// Sets the order. Needs: a permutation of the instructions.
  void set_order(const std::vector<Instruction*>& order);

 private:
  friend class Module;
  Computation() = default;
  void unlink(Instruction&);

  std::string name_;
  Module* module_ = nullptr;
  std::string execution_thread_ = "main";
  std::vector<std::unique_ptr<Instruction>> instructions_;
  std::vector<Instruction*> parameters_;
  Instruction* root_ = nullptr;
};

/// One entry of input_output_alias or buffer_donor.
struct InputOutputAlias {
  ShapeIndex output;
  std::int64_t parameter = 0;
  ShapeIndex parameter_index;
  bool must_alias = false;
  bool operator==(const InputOutputAlias&) const = default;
};
struct BufferDonor {
  std::int64_t parameter = 0;
  ShapeIndex parameter_index;
  bool operator==(const BufferDonor&) const = default;
};

/// FileNames, FunctionNames, FileLocations, StackFrames (hlo-text 4).
struct SourceTables {
  struct Location {
    std::int64_t file_name_id = 0, function_name_id = 0, line = 0, end_line = 0, column = 0, end_column = 0;
    bool operator==(const Location&) const = default;
  };
  struct Frame {
    std::int64_t file_location_id = 0, parent = 0;  ///< row of the parent, 0 = none
    bool operator==(const Frame&) const = default;
  };
  bool present = false;
  std::vector<std::string> files, functions;
  std::vector<Location> locations;
  std::vector<Frame> frames;
  bool operator==(const SourceTables&) const = default;
};

/// What the header line of a module says.
struct ModuleConfig {
  bool is_scheduled = false;
  std::int64_t replica_count = 1, num_partitions = 1;
  std::vector<InputOutputAlias> aliases;
  std::vector<BufferDonor> donors;
  bool alias_passthrough_params = false;
  /// Shapes with the entry's layouts: parameters and result. Always set in a parsed module.
  std::vector<Shape> entry_parameters;
  Shape entry_result;
  bool has_entry_layout = false;
  std::vector<bool> propagate_sharding_to_parameters, propagate_sharding_to_output;
  StringMap frontend_attributes;
  std::string origin_recovery_table;  ///< canonical text between the braces
  std::string debug_attributes;       ///< as written
  SourceTables tables;
  bool operator==(const ModuleConfig&) const = default;
};

/// A whole program. Owns its computations, callees before callers.
class Module {
 public:
  explicit Module(std::string name) : name_(std::move(name)) {}
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;
  ~Module();

  const std::string& name() const { return name_; }
  void set_name(std::string name) { name_ = std::move(name); }
  auto computations() const { return computations_ | kDereference; }
  std::int64_t num_computations() const { return static_cast<std::int64_t>(computations_.size()); }
  /// Null only while a module is built.
  Computation* entry() const { return entry_; }
  void set_entry(Computation* entry) { entry_ = entry; }
  ModuleConfig& config() { return config_; }
  const ModuleConfig& config() const { return config_; }

  /// A new empty computation at the end; `name` is made unique.
  Computation* add_computation(std::string_view name);
  /// Removes a computation that nothing calls.
  void remove(Computation*);
  /// Removes computations not reachable from the entry. Returns how many.
  std::int64_t remove_unreachable();
  /// Puts callees before callers, in post order from the entry; unreachable ones first.
  void sort();
  /// A copy of a computation in this module under a new name, calling the same computations.
  Computation* clone_computation(const Computation&, std::string_view name);
  std::unique_ptr<Module> clone() const;

  /// Gives an instruction another name, made unique.
  void rename(Instruction&, std::string_view name);
  int next_id() { return num_ids_++; }
  /// One more than the largest Instruction::id().
  int num_ids() const { return num_ids_; }

 private:
  friend class Computation;
  /// Names in use, and for a base the last suffix given.
  struct Names {
    NameSet taken;
    std::unordered_map<std::string, std::int64_t> last_suffix;
    /// Gives `owner` the name, or one made unique from it, and keeps it taken.
    void take(std::string& owner, std::string_view name);
  };

  std::string name_;
  std::vector<std::unique_ptr<Computation>> computations_;
  Computation* entry_ = nullptr;
  ModuleConfig config_;
  Names instruction_names_, computation_names_;
  int num_ids_ = 0;
};

/// Same names, orders, shapes, attributes, annotations, config; not ids and places in the text.
bool equal(const Module&, const Module&);
/// A number that equal modules share; different ones with overwhelming likelihood do not.
std::uint64_t fingerprint(const Module&);

/// Users of each computation: the instructions that call it.
std::unordered_map<const Computation*, std::vector<Instruction*>> callers(const Module&);

template <typename Predicate>
std::int64_t Computation::remove_all(const Predicate& dead) {
  std::int64_t removed = 0;
  for (auto it = instructions_.rbegin(); it != instructions_.rend(); ++it) {
    if (!dead(**it)) continue;
    unlink(**it);
    it->reset();
    ++removed;
  }
  std::erase(instructions_, nullptr);
  return removed;
}

}  // namespace hloom::hlo
