// A planned module for tests.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "buffers/assignment.h"
#include "buffers/check_assignment.h"
#include "buffers/steps.h"
#include "hlo/verify.h"
#include "text/parse.h"

namespace hloom::buffers {

struct Plan {
  std::unique_ptr<hlo::Module> module;
  Assignment assignment;

  hlo::Instruction& find(std::string_view name) const {
    for (hlo::Computation& c : module->computations())
      for (hlo::Instruction& i : c.instructions())
        if (i.name() == name) return i;
    ADD_FAILURE() << "no instruction " << name;
    std::abort();
  }
  std::vector<const hlo::Instruction*> copies() const {
    std::vector<const hlo::Instruction*> result;
    for (const hlo::Computation* c : step_computations(*module))
      for (const hlo::Instruction& i : c->instructions())
        if (i.opcode() == hlo::Opcode::Copy) result.push_back(&i);
    return result;
  }
  std::int64_t copies_in(std::string_view computation) const {
    std::int64_t count = 0;
    for (const hlo::Instruction* c : copies()) count += c->parent()->name() == computation ? 1 : 0;
    return count;
  }
  const Slice& root_slice(std::int64_t leaf) const { return assignment.slice(*module->entry()->root(), leaf); }
  const Slice& slice(std::string_view name, std::int64_t leaf = 0) const { return assignment.slice(find(name), leaf); }
};

/// Plans a good module and checks the plan: it holds, each copy is missed when left out, the module still verifies.
inline void expect_sound(const Plan& plan) {
  const auto found = check_assignment(plan.assignment);
  EXPECT_TRUE(found.empty()) << found.front();
  for (const hlo::Instruction* copy : plan.copies())
    EXPECT_FALSE(check_assignment(plan.assignment, copy).empty()) << copy->name() << " is not needed";
  EXPECT_GE(plan.assignment.arena_bytes(), plan.assignment.lower_bound());
  const auto good = hlo::check_module(*plan.module);
  EXPECT_TRUE(good) << good.error().message();
}

inline Plan plan_module(std::unique_ptr<hlo::Module> module) {
  auto assignment = assign(*module);
  EXPECT_TRUE(assignment) << (assignment ? "" : assignment.error().message());
  return {std::move(module), assignment ? *std::move(assignment) : Assignment()};
}

inline Plan plan(std::string_view text) {
  auto module = text::parse_module(text);
  EXPECT_TRUE(module) << (module ? "" : module.error().message()) << text;
  if (!module) std::abort();
  Plan result = plan_module(*std::move(module));
  expect_sound(result);
  return result;
}

}  // namespace hloom::buffers
