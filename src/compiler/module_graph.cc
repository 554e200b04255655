#include "compiler/module_graph.h"

#include <set>
#include <string_view>

#include "hlo/source_place.h"
#include "text/print.h"

namespace hloom::compiler {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '\n') {
      result += "\\n";
      continue;
    }
    if (c == '"' || c == '\\') result += '\\';
    result += c >= ' ' && c <= '~' ? c : '?';
  }
  return result + "\"";
}

bool runs_its_computations(const Instruction& i) {
  switch (i.opcode()) {
    case Opcode::While:
    case Opcode::Conditional:
    case Opcode::Call:
    case Opcode::AsyncStart: return true;
    default: return false;
  }
}

// Where an instruction's value is made: a fusion's by what it computes, which no other fusion calls.
std::string node_name(const Instruction& i) {
  return i.opcode() == Opcode::Fusion ? node_name(*i.called(0)->root()) : "i" + std::to_string(i.id());
}

class Graph {
 public:
  explicit Graph(const hlo::Module& module) : module_(module) {}

  std::string text() {
    out_ = "digraph " + quoted(module_.name()) + " {\n  node [shape=box, fontname=monospace];\n";
    std::set<const Computation*> boxes{module_.entry()};
    for (const Computation& computation : module_.computations())
      for (const Instruction& i : computation.instructions())
        if (runs_its_computations(i)) boxes.insert(i.called().begin(), i.called().end());
    for (const Computation& computation : module_.computations())
      if (boxes.contains(&computation)) box(computation, computation.name());
    return out_ + arrows_ + "}\n";
  }

 private:
  void box(const Computation& computation, std::string_view label) {
    out_ += "  subgraph cluster_" + std::to_string(num_boxes_++) + " {\n  label=" + quoted(label) + ";\n";
    for (const Instruction& i : computation.instructions()) {
      if (i.opcode() == Opcode::Fusion)
        box(*i.called(0), i.name() + " " + to_string(i.shape()));
      else
        node(i);
      arrows_to(i);
    }
    out_ += "  }\n";
  }

  void node(const Instruction& i) {
    std::string label = i.name() + "\n" + std::string(hlo::name(i.opcode())) + " " + to_string(i.shape());
    if (i.opcode() == Opcode::Constant && i.shape().is_array() && i.shape().num_elements() == 1)
      label += "\n" + text::print_literal(i.literal());
    if (!runs_its_computations(i))
      for (const Computation* called : i.called()) label += "\n" + called->name();
    out_ += "  " + node_name(i) + " [label=" + quoted(label);
    if (const std::string place = hlo::source_place(i, module_); !place.empty()) out_ += ", tooltip=" + quoted(place);
    if (i.opcode() == Opcode::Parameter || i.opcode() == Opcode::Constant) out_ += ", style=dotted";
    if (i.is_root()) out_ += ", peripheries=2";
    out_ += "];\n";
  }

  void arrows_to(const Instruction& i) {
    const bool fusion = i.opcode() == Opcode::Fusion;
    for (std::int64_t n = 0; n < i.num_operands(); ++n)
      arrow(*i.operand(n), fusion ? *i.called(0)->parameter(n) : i, "");
    for (const Instruction* before : i.control_predecessors()) arrow(*before, i, " [style=dotted]");
    if (!runs_its_computations(i)) return;
    for (const Computation* called : i.called()) arrow(*called->root(), i, " [style=dashed]");
  }

  void arrow(const Instruction& from, const Instruction& to, std::string_view how) {
    arrows_ += "  " + node_name(from) + " -> " + node_name(to);
    arrows_.append(how).append(";\n");
  }

  const hlo::Module& module_;
  std::string out_, arrows_;
  int num_boxes_ = 0;
};

}  // namespace

std::string module_graph(const hlo::Module& module) { return Graph(module).text(); }

}  // namespace hloom::compiler
