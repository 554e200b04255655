// For tests: fused modules instruction by instruction, with kernels in buffers.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "arrays/compare.h"
#include "interp/interpret.h"
#include "kernels/kernel.h"
#include "kernels/plan_dot.h"
#include "kernels/plan_fusion.h"
#include "kernels/plan_sort.h"
#include "text/parse.h"

namespace hloom::kernels {

using hlo::Instruction;
using hlo::Literal;
using hlo::Opcode;

inline std::unique_ptr<hlo::Module> parse(const std::string& text) {
  auto module = text::parse_module(text);
  if (!module) ADD_FAILURE() << module.error().message() << "\n" << text;
  return module ? *std::move(module) : nullptr;
}

inline Expected<Kernel> plan(const Instruction& fusion) {
  if (is_dot_fusion(fusion)) return plan_dot(fusion);
  if (is_sort_fusion(fusion)) return plan_sort(fusion);
  return plan_fusion(fusion);
}

/// Runs a fused module instruction by instruction; `run` does the kernels.
template <typename Run>
Literal run_fused(const hlo::Module& module, const std::vector<Literal>& arguments, const Run& run) {
  std::unordered_map<const Instruction*, Literal> values;
  for (Instruction* i : module.entry()->post_order()) {
    std::vector<Literal> operands;
    for (const Instruction* o : i->operands()) operands.push_back(values.at(o));
    if (i->opcode() == Opcode::Parameter) {
      values[i] = arguments[static_cast<std::size_t>(i->parameter_number())];
    } else if (i->opcode() == Opcode::Fusion) {
      values[i] = run(*i, operands);
    } else {
      auto v = interp::evaluate_instruction(*i, operands);
      EXPECT_TRUE(v) << v.error().message();
      values[i] = v ? *v : Literal(i->shape());
    }
  }
  return values.at(module.entry()->root());
}

/// Buffers of a fusion's arguments; what is updated in place starts as its base.
struct Buffers {
  Buffers(const Instruction& fusion, const std::vector<Literal>& operands) {
    for (const Literal& o : operands)
      for (const Literal* leaf : hlo::leaves(o)) {
        inputs.emplace_back(leaf->bytes().begin(), leaf->bytes().end());
        inputs.back().resize(inputs.back().size() + 8);
      }
    const Instruction& root = *fusion.called(0)->root();
    for (const Shape* leaf : leaves(fusion.shape())) outputs.emplace_back(static_cast<std::size_t>(leaf->size_bytes()) + 8);
    if (root.opcode() == Opcode::DynamicUpdateSlice || root.opcode() == Opcode::Scatter) {
      const auto base = operands[static_cast<std::size_t>(root.operand(0)->parameter_number())].bytes();
      std::memcpy(outputs[0].data(), base.data(), base.size());
    }
    for (auto& b : inputs) pointers.push_back(b.data());
    for (auto& b : outputs) pointers.push_back(b.data());
  }
  Literal result(const Shape& shape) {
    std::size_t at = 0;
    return assemble(shape, at);
  }
  std::vector<std::vector<std::byte>> inputs, outputs;
  std::vector<void*> pointers;

 private:
  Literal assemble(const Shape& shape, std::size_t& at) {
    if (shape.is_tuple()) {
      std::vector<Literal> elements;
      for (const Shape& e : shape.elements()) elements.push_back(assemble(e, at));
      return Literal::tuple(std::move(elements));
    }
    std::vector<std::byte> bytes = outputs[at++];
    bytes.resize(static_cast<std::size_t>(shape.size_bytes()));
    return Literal::from_bytes(shape, std::move(bytes));
  }
};

inline void expect_equal(const Literal& got, const Literal& want, const std::string& context) {
  const auto got_leaves = hlo::leaves(got), want_leaves = hlo::leaves(want);
  ASSERT_EQ(got_leaves.size(), want_leaves.size()) << context;
  for (std::size_t n = 0; n < got_leaves.size(); ++n) {
    const auto difference = arrays::compare(*got_leaves[n], *want_leaves[n], arrays::Tolerance::equal());
    EXPECT_FALSE(difference) << "result " << n << ": " << *difference << "\n" << context;
  }
}

}  // namespace hloom::kernels
