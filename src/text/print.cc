#include "text/print.h"

#include "text/attribute_rules.h"
#include "text/print_literal.h"
#include "text/print_module.h"
#include "text/print_words.h"

namespace hloom::text {

using hlo::Computation;
using hlo::Instruction;
using hlo::Module;
using hlo::Opcode;

namespace {

// What an X-start runs, if all it says fits the short form (hlo-text 6.3): one X on its parameters in order.
const Instruction* sugar_of(const Instruction& start) {
  if (start.opcode() != Opcode::AsyncStart || start.called().size() != 1) return nullptr;
  const Computation& wrapped = *start.called(0);
  const Instruction* x = wrapped.root();
  const bool alone = wrapped.num_instructions() == start.num_operands() + 1 && !x->has_annotations() &&
                     x->num_operands() == start.num_operands() && wrapped.execution_thread() == "main" &&
                     start.attr<hlo::AsyncAttr>().aliasing.empty();
  if (!alone || x->opcode() == Opcode::Parameter || x->opcode() == Opcode::Constant) return nullptr;
  for (std::int64_t n = 0; n < x->num_operands(); ++n)
    if (x->operand(n)->opcode() != Opcode::Parameter || x->operand(n)->parameter_number() != n) return nullptr;
  if (hlo::opcode_named(std::string(hlo::name(x->opcode())) + "-start")) return nullptr;
  return x;
}

const Instruction* start_of_chain(const Instruction& link) {
  const Instruction* at = &link;
  while (at->opcode() == Opcode::AsyncUpdate && at->num_operands() == 1) at = at->operand(0);
  if (at->opcode() == Opcode::AsyncDone && at->num_operands() == 1) {
    at = at->operand(0);
    while (at->opcode() == Opcode::AsyncUpdate && at->num_operands() == 1) at = at->operand(0);
  }
  return at;
}

class Writer {
 public:
  Writer(std::string& out, const PrintOptions& options) : out_(out), options_(options) {}

  void module(const Module& m) {
    write_header(out_, m, options_);
    for (const Computation& c : m.computations()) {
      if (is_wrapped_in_sugar(c, m)) continue;
      out_ += '\n';
      if (&c == m.entry()) out_ += "ENTRY ";
      computation(c);
      out_ += '\n';
    }
  }

  void computation(const Computation& c) {
    write_name(out_, c.name(), options_.percent);
    out_ += ' ';
    if (options_.signatures) signature(c);
    out_ += "{\n";
    for (const Instruction& i : c.instructions()) {
      out_ += &i == c.root() ? "  ROOT " : "  ";
      instruction(i);
      out_ += '\n';
    }
    out_ += '}';
    if (c.execution_thread() != "main") {
      out_ += ", execution_thread=";
      write_quoted(out_, c.execution_thread());
    }
  }

  void instruction(const Instruction& i) {
    const Instruction* sugar = options_.async_sugar ? sugar_of(*start_of_chain(i)) : nullptr;
    write_name(out_, i.name(), options_.percent);
    out_ += " = ";
    out_ += to_string(i.shape(), options_.layouts);
    out_ += ' ';
    opcode(i, sugar);
    out_ += '(';
    operands(i);
    out_ += ')';
    if (sugar != nullptr && i.opcode() == Opcode::AsyncStart) {
      attributes(rules_for(Opcode::AsyncStart).first(1), i);
      attributes(own_rules(sugar->opcode()), *sugar);
      attributes(rules_for(Opcode::AsyncStart).subspan(own_rules(Opcode::AsyncStart).size()), i);
    } else {
      attributes(rules_for(i.opcode()), i);
    }
    if (i.opcode() == Opcode::Shuffle && !i.attr<hlo::ShuffleAttr>().text.empty())
      out_.append(", ").append(i.attr<hlo::ShuffleAttr>().text);
  }

 private:
  // With sugar the computation is written again where it is read.
  bool is_wrapped_in_sugar(const Computation& c, const Module& m) {
    if (!options_.async_sugar) return false;
    if (wrapped_.empty())
      for (const Computation& from : m.computations())
        for (const Instruction& i : from.instructions())
          if (sugar_of(i) != nullptr) wrapped_.insert(i.called(0));
    return wrapped_.contains(&c);
  }

  void signature(const Computation& c) {
    out_ += '(';
    for (const Instruction* p : c.parameters()) {
      if (p != c.parameters().front()) out_ += ", ";
      out_ += p->name();
      out_ += ": ";
      out_ += to_string(p->shape(), false);
    }
    out_ += ") -> ";
    out_ += to_string(c.root()->shape(), false);
    out_ += ' ';
  }

  void opcode(const Instruction& i, const Instruction* sugar) {
    if (sugar == nullptr) {
      out_ += hlo::name(i.opcode());
      return;
    }
    out_ += hlo::name(sugar->opcode());
    out_ += i.opcode() == Opcode::AsyncStart ? "-start" : i.opcode() == Opcode::AsyncUpdate ? "-update" : "-done";
  }

  void operands(const Instruction& i) {
    if (i.opcode() == Opcode::Parameter) return write_integer(out_, i.parameter_number());
    if (i.opcode() == Opcode::Constant) return write_literal(out_, i.literal(), options_.large_constants);
    for (std::size_t n = 0; n < i.operands().size(); ++n) {
      const Instruction& operand = *i.operands()[n];
      if (n != 0) out_ += ", ";
      if (options_.index_comments) write_index_comment(out_, n);
      if (options_.operand_shapes) {
        out_ += to_string(operand.shape(), options_.layouts);
        out_ += ' ';
      }
      write_name(out_, operand.name(), options_.percent);
    }
  }

  void attributes(RuleList rules, const Instruction& i) {
    for (const AttributeRule& rule : rules) {
      const std::size_t before = out_.size();
      out_.append(", ").append(rule.name).append("=");
      if (!rule.write(out_, i, options_)) out_.resize(before);
    }
  }

  std::string& out_;
  const PrintOptions& options_;
  std::unordered_set<const Computation*> wrapped_;
};

}  // namespace

std::string print(const Module& module, const PrintOptions& options) {
  std::string out;
  Writer(out, options).module(module);
  return out;
}

std::string print(const Computation& computation, const PrintOptions& options) {
  std::string out;
  Writer(out, options).computation(computation);
  return out;
}

std::string print(const Instruction& instruction, const PrintOptions& options) {
  std::string out;
  Writer(out, options).instruction(instruction);
  return out;
}

std::string print_literal(const hlo::Literal& literal, const PrintOptions& options) {
  std::string out;
  write_literal(out, literal, options.large_constants);
  return out;
}

}  // namespace hloom::text
