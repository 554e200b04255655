#include "compiler/module_graph.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <sstream>
#include <string>

#include "compiler/read_program.h"

namespace hloom::compiler {
namespace {

/// What the text says: nodes with their labels, arrows by nodes, and how deep each node's box is.
struct Graph {
  std::map<std::string, std::string> labels;
  std::map<std::string, int> depths;
  std::multiset<std::pair<std::string, std::string>> arrows;
};

Graph read(const std::string& text) {
  Graph graph;
  int depth = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name, word, to;
    words >> name >> word >> to;
    if (line.ends_with("{")) ++depth;
    if (name == "}") --depth;
    if (word == "->") graph.arrows.emplace(name, to.substr(0, to.find(';')));
    if (!word.starts_with("[label=") || name == "node") continue;
    EXPECT_TRUE(graph.labels.emplace(name, word.substr(8, word.find('\\') - 8)).second) << line;
    graph.depths[name] = depth;
  }
  EXPECT_EQ(depth, 0);
  for (const auto& [from, to] : graph.arrows) EXPECT_TRUE(graph.labels.contains(from) && graph.labels.contains(to));
  return graph;
}

// The arrows by the names of instructions.
std::multiset<std::string> named(const Graph& graph) {
  std::multiset<std::string> result;
  for (const auto& [from, to] : graph.arrows) result.insert(graph.labels.at(from) + ">" + graph.labels.at(to));
  return result;
}

constexpr const char* kProgram = R"(HloModule m
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }
inner { ip = f32[4] parameter(0)
  ROOT in = f32[4] negate(ip) }
outer { op = f32[4] parameter(0)
  oq = f32[4] parameter(1)
  ON = f32[4] fusion(op), kind=kLoop, calls=inner
  ROOT om = f32[4] multiply(ON, oq) }
condition { cp = (f32[4]) parameter(0)
  ROOT yes = pred[] constant(true) }
body { bp = (f32[4]) parameter(0)
  bx = f32[4] get-tuple-element(bp), index=0
  ROOT bt = (f32[4]) tuple(bx) }
ENTRY e {
  x = f32[4] parameter(0)
  z = f32[] constant(0)
  t = (f32[4]) tuple(x)
  w = (f32[4]) while(t), condition=condition, body=body
  y = f32[4] get-tuple-element(w), index=0
  F = f32[4] fusion(x, y), kind=kLoop, calls=outer
  ROOT r = f32[] reduce(F, z), dimensions={0}, to_apply=add
}
)";

TEST(ModuleGraph, HasEachInstructionAndEachOperand) {
  const auto module = *read_program(kProgram);
  const std::string text = module_graph(*module);
  const Graph graph = read(text);
  std::multiset<std::string> names;
  for (const auto& [node, label] : graph.labels) names.insert(label);
  EXPECT_EQ(names, (std::multiset<std::string>{"ip", "in", "op", "oq", "om", "cp", "yes", "bp", "bx", "bt", "x", "z", "t",
                                               "w", "y", "r"}));
  EXPECT_EQ(named(graph), (std::multiset<std::string>{"op>ip", "ip>in", "in>om", "oq>om", "bp>bx", "bx>bt", "x>t", "t>w",
                                                      "yes>w", "bt>w", "w>y", "x>op", "y>oq", "om>r", "z>r"}));
  for (const auto& [node, label] : graph.labels)
    EXPECT_EQ(graph.depths.at(node), label[0] == 'i' ? 4 : label[0] == 'o' ? 3 : 2) << label;
  EXPECT_NE(text.find("reduce f32[]\\nadd\""), std::string::npos) << "a reducer is named on its reduce";
}

TEST(ModuleGraph, QuotesWhatGraphvizWouldRead) {
  const auto module = *read_program("HloModule m\nENTRY e { ROOT x = f32[2] parameter(0), "
                                    "metadata={source_file=\"a \\\"b\\\\\xc3.py\" source_line=3} }\n");
  EXPECT_NE(module_graph(*module).find("tooltip=\"a \\\"b\\\\?.py:3\""), std::string::npos) << module_graph(*module);
}

}  // namespace
}  // namespace hloom::compiler
