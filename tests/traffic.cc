#include "traffic.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "buffers/steps.h"

namespace hloom::traffic {
namespace {

std::int64_t bytes_of(const kernels::Kernel& kernel, const kernels::Block& block);

std::int64_t bytes_of(const kernels::Kernel& kernel, const kernels::Statement& statement) {
  const auto width = [&](kernels::Value v) { return std::max<std::int64_t>(1, byte_width(kernel.type(v))); };
  if (const auto* load = std::get_if<kernels::Load>(&statement.of)) return width(load->result);
  if (const auto* store = std::get_if<kernels::Store>(&statement.of)) return width(store->value);
  if (const auto* loop = std::get_if<kernels::Loop>(&statement.of)) {
    EXPECT_TRUE(loop->from_value < 0 && loop->to_value < 0) << kernel.name << ": a loop whose length is not known";
    return (loop->to - loop->from) * bytes_of(kernel, loop->body);
  }
  if (const auto* branches = std::get_if<kernels::If>(&statement.of)) {
    std::int64_t most = 0;
    for (const kernels::Block& branch : branches->branches) most = std::max(most, bytes_of(kernel, branch));
    return most;
  }
  EXPECT_FALSE(std::holds_alternative<kernels::While>(statement.of) || std::holds_alternative<kernels::Call>(statement.of))
      << kernel.name << ": a region";
  return 0;
}

std::int64_t bytes_of(const kernels::Kernel& kernel, const kernels::Block& block) {
  std::int64_t bytes = 0;
  for (const kernels::Statement& s : block) bytes += bytes_of(kernel, s);
  return bytes;
}

std::string decision(const hlo::Instruction& i, const char* key) {
  const auto found = i.annotations().decisions.find(key);
  return found == i.annotations().decisions.end() ? "" : found->second;
}

Bytes sum(const Bytes& a, const Bytes& b) { return {a.kernels + b.kernels, a.copies + b.copies}; }

Bytes of_one(const compiler::Compiled& c, const hlo::Instruction& i) {
  if (i.opcode() == hlo::Opcode::Copy) return {0, buffers::leaf_bytes(i.shape())};
  if (i.opcode() == hlo::Opcode::Fusion) {
    const auto kernel = std::ranges::find(c.kernels, i.name(), &kernels::Kernel::name);
    EXPECT_NE(kernel, c.kernels.end()) << i.name();
    return {kernel == c.kernels.end() ? 0 : bytes_of(*kernel, kernel->body), 0};
  }
  if (i.opcode() == hlo::Opcode::While && !decision(i, "trip_count").empty()) return of(c, *i.body());
  Bytes most;
  const std::string rare = decision(i, "rare_branch");
  for (std::size_t k = 0; k < buffers::step_computations(i).size(); ++k) {
    const Bytes inner = of(c, *buffers::step_computations(i)[k]);
    if (i.opcode() != hlo::Opcode::Conditional)
      most = sum(most, inner);
    else if (rare != std::to_string(k) && inner.kernels + inner.copies > most.kernels + most.copies)
      most = inner;
  }
  return most;
}

}  // namespace

Bytes of(const compiler::Compiled& c, const hlo::Computation& computation) {
  Bytes bytes;
  for (const hlo::Instruction& i : computation.instructions()) bytes = sum(bytes, of_one(c, i));
  return bytes;
}

std::int64_t steps_a_round(const hlo::Instruction& loop) {
  const std::string steps = decision(loop, "steps_a_round");
  return steps.empty() ? 1 : std::stoll(steps);
}

}  // namespace hloom::traffic
