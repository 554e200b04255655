#include "compiler/check.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <map>
#include <unordered_map>

#include "base/aligned_bytes.h"
#include "base/check.h"
#include "base/fail.h"
#include "base/run_status.h"
#include "base/try.h"
#include "compiler/check_tolerance.h"
#include "compiler/compile.h"
#include "compiler/layout_bytes.h"
#include "fusion/taps.h"
#include "interp/interpret.h"

namespace hloom::compiler {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Literal;
using hlo::Opcode;

constexpr std::size_t kMaxDifferences = 20;

/// Runs a compiled program instruction by instruction, in memory of its own.
class Checker {
 public:
  Checker(const Compiled& compiled, const CheckOptions& options) : c_(compiled), options_(options) {
    std::size_t number = 0;
    index_steps(c_.program.steps, number);
    for (const runtime::Allocation& a : c_.program.allocations) memory_.emplace_back(a.size_bytes);
  }

  Expected<CheckReport> run(std::span<const Literal> arguments) {
    using Kind = runtime::Allocation::Kind;
    for (std::size_t a = 0; a < memory_.size(); ++a) {
      const runtime::Allocation& allocation = c_.program.allocations[a];
      if (allocation.kind == Kind::Constant) {
        const auto from = c_.program.constants[static_cast<std::size_t>(allocation.number)].bytes();
        std::copy(from.begin(), from.end(), memory_[a].data());
      }
    }
    std::size_t leaf = 0;
    for (const Instruction* p : c_.module->entry()->parameters())
      for (std::int64_t l = 0; l < num_leaves(p->shape()); ++l, ++leaf)
        store_literal(arguments[leaf], *leaves(p->shape())[static_cast<std::size_t>(l)], bytes(c_.assignment.slice(*p, l)));
    TRY(computation(*c_.module->entry()));
    const Instruction& root = *c_.module->entry()->root();
    for (std::int64_t l = 0; l < num_leaves(root.shape()); ++l) report_.results.push_back(value(root, l));
    report_.instructions = static_cast<std::int64_t>(checked_.size());
    return std::move(report_);
  }

 private:
  // Steps are numbered as observers count them: a loop before what it holds.
  void index_steps(const runtime::Steps& steps, std::size_t& number) {
    for (const runtime::Step& step : steps) {
      for (const Instruction* i : c_.step_instructions[number]) steps_[i].push_back(&step);
      ++number;
      if (const auto* loop = std::get_if<runtime::While>(&step.of)) {
        index_steps(loop->condition, number);
        index_steps(loop->body, number);
      } else if (const auto* conditional = std::get_if<runtime::Conditional>(&step.of)) {
        for (const runtime::Steps& branch : conditional->branches) index_steps(branch, number);
      }
    }
  }

  std::span<std::byte> bytes(const buffers::Slice& s) {
    return {memory_[static_cast<std::size_t>(s.allocation)].data() + s.offset, static_cast<std::size_t>(s.bytes)};
  }

  Literal value(const Instruction& i, std::int64_t leaf) {
    const Shape& shape = *leaves(i.shape())[static_cast<std::size_t>(leaf)];
    return load_literal(shape, bytes(c_.assignment.slice(i, leaf)));
  }

  Literal whole_value(const Instruction& i) {
    std::vector<Literal> flat;
    for (std::int64_t l = 0; l < num_leaves(i.shape()); ++l) flat.push_back(value(i, l));
    std::size_t at = 0;
    return assemble(i.shape(), flat, at);
  }

  static Literal assemble(const Shape& shape, std::vector<Literal>& flat, std::size_t& at) {
    if (!shape.is_tuple()) return std::move(flat[at++]);
    std::vector<Literal> elements;
    for (const Shape& e : shape.elements()) elements.push_back(assemble(e, flat, at));
    return Literal::tuple(std::move(elements));
  }

  Expected<> computation(const Computation& c) {
    for (const Instruction& i : c.instructions()) TRY(instruction(i));
    return {};
  }

  Expected<> instruction(const Instruction& i) {
    switch (i.opcode()) {
      case Opcode::Fusion: return fusion(i);
      case Opcode::While: {
        for (;;) {
          TRY(computation(*i.condition()));
          if (bytes(c_.assignment.slice(*i.condition()->root()))[0] == std::byte{0}) return {};
          TRY(computation(*i.body()));
        }
      }
      case Opcode::Conditional: {
        const Literal selector = value(*i.operand(0), 0);
        const std::int64_t count = static_cast<std::int64_t>(i.called().size());
        std::int64_t branch = element_as_int64(selector, 0);
        if (selector.dtype() == DType::Pred) branch = branch != 0 ? 0 : 1;
        if (branch < 0 || branch >= count) branch = count - 1;
        return computation(*i.called(branch));
      }
      case Opcode::Call: return computation(*i.to_apply());
      default: return call_steps(i);
    }
  }

  Expected<> call_steps(const Instruction& i) {
    const auto found = steps_.find(&i);
    if (found == steps_.end()) return {};
    for (const runtime::Step* step : found->second) {
      if (const auto* copy = std::get_if<runtime::Copy>(&step->of)) {
        const auto from = at(copy->from);
        std::copy(from, from + copy->from.size_bytes, at(copy->to));
      } else if (const auto* call = std::get_if<runtime::Call>(&step->of)) {
        std::vector<void*> pointers;
        for (const runtime::Slice& s : call->arguments) pointers.push_back(at(s));
        base::AlignedBytes scratch(call->scratch_bytes);
        call->function(pointers.data(), 0, call->blocks, scratch.data());
        if (call->may_fail) TRY(check_status(*call));
      }
    }
    return {};
  }

  Expected<> check_status(const runtime::Call& call) {
    for (const runtime::Slice& s : call.arguments) {
      if (c_.program.allocations[static_cast<std::size_t>(s.allocation)].kind != runtime::Allocation::Kind::Status) continue;
      auto& status = *reinterpret_cast<base::RunStatus*>(at(s));
      if (base::has_failed(status)) return base::take_failure(status, call.name);
    }
    return {};
  }

  std::byte* at(const runtime::Slice& s) { return memory_[static_cast<std::size_t>(s.allocation)].data() + s.offset; }

  bool wanted(const Instruction& i) {
    const std::int64_t n = ++runs_[&i];
    if (report_.differences.size() >= kMaxDifferences) return false;
    return options_.every_run || std::has_single_bit(static_cast<std::uint64_t>(n));
  }

  Expected<> fusion(const Instruction& i) {
    if (!wanted(i)) {
      return call_steps(i);
    }
    std::unordered_map<const Instruction*, Literal> values;
    const Computation& body = *i.called(0);
    for (const Instruction* p : body.parameters()) values[p] = whole_value(*i.operand(p->parameter_number()));
    TRY(call_steps(i));
    const auto results = fusion::results_of(i);
    std::unordered_map<const Instruction*, std::int64_t> leaf_of;
    std::int64_t leaf = 0;
    for (const Instruction* r : results) {
      leaf_of.emplace(r, leaf);
      leaf += num_leaves(r->shape());
    }
    for (const Instruction& inner : body.instructions()) {
      if (inner.opcode() == Opcode::Parameter || (inner.opcode() == Opcode::Tuple && inner.is_root())) continue;
      TRY(inner_instruction(i, inner, leaf_of, values));
    }
    return {};
  }

  // Interprets one instruction on the compiled run's operands; where the compiled value is visible it is compared and goes on
  // to the users.
  Expected<> inner_instruction(const Instruction& outer, const Instruction& inner,
                               const std::unordered_map<const Instruction*, std::int64_t>& leaf_of,
                               std::unordered_map<const Instruction*, Literal>& values) {
    const auto visible = leaf_of.find(&inner);
    if (interpreter_work(inner) > options_.max_work) {
      ++report_.skipped;
      if (visible == leaf_of.end())
        return fail(Code::ResourceExhausted, inner.name(), ": too large to interpret, and its value is not visible");
      values[&inner] = leaf_range(outer, inner, visible->second);
      return {};
    }
    std::vector<Literal> operands;
    for (const Instruction* operand : inner.operands()) operands.push_back(values.at(operand));
    Literal want = TRY(interp::evaluate_instruction(inner, operands));
    if (visible == leaf_of.end()) {
      values[&inner] = std::move(want);
      return {};
    }
    Literal got = leaf_range(outer, inner, visible->second);
    checked_[&inner] = true;
    ++report_.checks;
    const auto got_leaves = hlo::leaves(got), want_leaves = hlo::leaves(want);
    for (std::size_t l = 0; l < got_leaves.size(); ++l) {
      if (!got_leaves[l]->shape().is_array()) continue;
      auto problem = TRY(differs(inner, operands, *got_leaves[l], *want_leaves[l]));
      if (problem && report_.differences.size() < kMaxDifferences)
        report_.differences.push_back({inner.name(), outer.name() + ": " + std::string(hlo::name(inner.opcode())) + " " +
                                                         to_string(inner.shape(), false) + ", run " +
                                                         std::to_string(runs_[&outer]) + ": " + *problem});
    }
    values[&inner] = std::move(got);
    return {};
  }

  Literal leaf_range(const Instruction& outer, const Instruction& inner, std::int64_t first) {
    std::vector<Literal> flat;
    for (std::int64_t l = 0; l < num_leaves(inner.shape()); ++l) flat.push_back(value(outer, first + l));
    std::size_t at = 0;
    return assemble(inner.shape(), flat, at);
  }

  const Compiled& c_;
  const CheckOptions& options_;
  CheckReport report_;
  std::vector<base::AlignedBytes> memory_;
  std::unordered_map<const Instruction*, std::vector<const runtime::Step*>> steps_;
  std::unordered_map<const Instruction*, std::int64_t> runs_;
  std::unordered_map<const Instruction*, bool> checked_;
};

// The checker has all memory at once; what the system lacks would end the process.
Expected<> check_memory(const runtime::Program& program) {
  const std::int64_t available = sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
  std::int64_t bytes = 0;
  for (const runtime::Allocation& a : program.allocations) {
    bytes += std::min(a.size_bytes, available);
    if (bytes >= available)
      return fail(Code::ResourceExhausted, program.name, ": needs more memory than this machine's ", available >> 20,
                  " MiB");
  }
  return {};
}

}  // namespace

Expected<CheckReport> check(std::unique_ptr<hlo::Module> module, std::span<const Literal> arguments,
                            const CheckOptions& options) {
  Options compile_options;
  compile_options.threads = options.threads;
  compile_options.regions = false;
  compile_options.taps = true;
  const Compiled compiled = TRY(compile(std::move(module), compile_options));
  TRY(check_memory(compiled.program));
  return Checker(compiled, options).run(arguments);
}

}  // namespace hloom::compiler
