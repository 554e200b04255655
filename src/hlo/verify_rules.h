// What the parts of the verifier share. Each part takes a module and reports what it finds.
#pragma once

#include <sstream>
#include <string_view>

#include "hlo/verify.h"

namespace hloom::hlo {

/// Collects diagnostics up to the limit.
class Report {
 public:
  explicit Report(const VerifyOptions& options) : options_(options) {}

  const VerifyOptions& options() const { return options_; }
  bool full() const { return static_cast<int>(found_.size()) >= options_.max_diagnostics; }
  bool empty() const { return found_.empty(); }
  std::size_t size() const { return found_.size(); }
  std::vector<Diagnostic> take() { return std::move(found_); }

  template <typename... Parts>
  void add(std::string_view code, const Instruction& i, const Parts&... parts) {
    add_message(code, &i, i.parent(), joined(i.name(), ": ", parts...));
  }
  template <typename... Parts>
  void add(std::string_view code, const Computation& c, const Parts&... parts) {
    add_message(code, nullptr, &c, joined("computation ", c.name(), ": ", parts...));
  }
  template <typename... Parts>
  void add(std::string_view code, const Module& m, const Parts&... parts) {
    add_message(code, nullptr, nullptr, joined("module ", m.name(), ": ", parts...));
  }
  /// An error whose message names the instruction already.
  void add_error(std::string_view code, const Instruction& i, const Error& error) {
    add_message(code, &i, i.parent(), error.message());
  }

 private:
  template <typename... Parts>
  static std::string joined(const Parts&... parts) {
    std::ostringstream out;
    (out << ... << parts);
    return std::move(out).str();
  }
  void add_message(std::string_view code, const Instruction* i, const Computation* c, std::string message) {
    if (!full()) found_.push_back({std::string(code), i, c, std::move(message)});
  }

  VerifyOptions options_;
  std::vector<Diagnostic> found_;
};

/// H702, H703, H705, H719, H731: names, references, cycles, parameters, roots, orders. The other parts rely on
/// what this finds good: nothing refers outside its computation or module, roots are there, no cycles.
void verify_structure(const Module&, Report&);
/// H205, H206, H732: the header's layouts, aliases, donors.
void verify_header(const Module&, Report&);
/// H302, H303, H701, H704, H706 … H718, H728 … H730, H734: one instruction's shapes, attributes, callees.
void verify_instruction(const Instruction&, Report&);
/// H720, H721: asynchronous chains, pairs of start and done.
void verify_chains(const Module&, Report&);
/// H704, H722, H723: callers of fusions, replica groups, channels.
void verify_sharing(const Module&, Report&);
/// H724 … H727, H733, H735: custom calls, tokens, buffers, shardings, composites, accuracy.
void verify_annotations(const Instruction&, Report&);
void verify_custom_call(const Instruction&, Report&);
/// H736: memory spaces and splits of an instruction's layouts, and of those that the header gives the entry.
void verify_placement(const Instruction&, Report&);
void verify_entry_placement(const Module&, Report&);

/// The entries of an aliasing table are places of result and operands of compatible shapes.
void verify_aliasing(const Instruction&, const std::vector<Aliasing>&, std::string_view code, Report&);

}  // namespace hloom::hlo
