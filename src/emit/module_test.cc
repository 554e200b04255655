// What the IR says of memory and of functions.
#include "emit/module.h"

#include <gtest/gtest.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Operator.h>
#include <llvm/IR/Verifier.h>

#include <algorithm>
#include <map>
#include <set>

#include "emit/symbol_name.h"
#include "jit/target.h"
#include "kernels/print.h"

namespace hloom::emit {
namespace {

using kernels::Kernel;

std::unique_ptr<llvm::Module> module_of(llvm::LLVMContext& context, const std::vector<Kernel>& kernels) {
  std::vector<const Kernel*> pointers;
  for (const Kernel& k : kernels) pointers.push_back(&k);
  auto module = *emit_module(context, pointers, jit::host_target());
  EXPECT_FALSE(llvm::verifyModule(*module)) << print_module(*module);
  return module;
}

std::set<const llvm::Metadata*> nodes(const llvm::Instruction& i, unsigned kind) {
  std::set<const llvm::Metadata*> result;
  if (const llvm::MDNode* list = i.getMetadata(kind))
    for (const llvm::MDOperand& node : list->operands()) result.insert(node.get());
  return result;
}

// What LLVM concludes from two accesses' scopes.
bool apart(const llvm::Instruction& a, const llvm::Instruction& b) {
  const auto excludes = [](const llvm::Instruction& x, const llvm::Instruction& y) {
    const auto scopes = nodes(x, llvm::LLVMContext::MD_alias_scope), others = nodes(y, llvm::LLVMContext::MD_noalias);
    return !scopes.empty() && std::ranges::includes(others, scopes);
  };
  return excludes(a, b) || excludes(b, a);
}

TEST(Module, AccessesAreApartWhereArgumentsAre) {
  llvm::LLVMContext context;
  const auto module = module_of(context, {*kernels::parse(R"(
kernel k(a: f32[8], b: f32[8], o: f32[8] overlap) -> (y: f32[8], z: f32[8], p: f32[8] overlap) scratch 64 {
  t = load f32 a[0]
  u = load f32 b[0]
  v = load f32 o[0]
  w = load f32 y[1]
  s = load f32 scratch[0]
  store y[0], t
  store z[0], u
  store p[0], v
  store scratch[1], w
  store z[2], s
})")});
  // The accesses behind the pointers' loads, by argument.
  std::multimap<std::string, const llvm::Instruction*> accesses;
  for (const llvm::BasicBlock& block : *module->getFunction("hloom_k"))
    for (const llvm::Instruction& i : block) {
      const llvm::Value* pointer = llvm::getLoadStorePointerOperand(&i);
      if (pointer == nullptr || llvm::getLoadStoreType(&i)->isPointerTy()) continue;
      accesses.emplace(pointer->stripInBoundsConstantOffsets()->getName().str(), &i);
    }
  EXPECT_EQ(accesses.size(), 10u);
  const std::set<std::string> written = {"y", "z", "p", "scratch"}, overlapping = {"o", "p"};
  for (const auto& [x, i] : accesses)
    for (const auto& [y, j] : accesses) {
      const bool may_meet = x == y || (!written.contains(x) && !written.contains(y)) || overlapping.contains(x) ||
                            overlapping.contains(y);
      EXPECT_EQ(apart(*i, *j), !may_meet) << x << " and " << y;
    }
}

TEST(Module, PointersSayAlignmentAndSize) {
  llvm::LLVMContext context;
  const auto module = module_of(
      context, {*kernels::parse("kernel k(a: f32[8] align 32, b: bytes[24], e: f32[0]) { x = load f32 a[0] }")});
  const std::string text = print_module(*module);
  const auto number = [&](unsigned i, unsigned kind) -> std::int64_t {
    for (const llvm::BasicBlock& block : *module->getFunction("hloom_k"))
      for (const llvm::Instruction& load : block)
        if (load.getType()->isPointerTy() && llvm::isa<llvm::LoadInst>(load) && i-- == 0) {
          const llvm::MDNode* node = load.getMetadata(kind);
          return node ? llvm::mdconst::extract<llvm::ConstantInt>(node->getOperand(0))->getSExtValue() : -1;
        }
    return -2;
  };
  EXPECT_EQ(number(0, llvm::LLVMContext::MD_align), 32) << text;
  EXPECT_EQ(number(0, llvm::LLVMContext::MD_dereferenceable), 32) << text;
  EXPECT_EQ(number(1, llvm::LLVMContext::MD_dereferenceable), 24) << text;
  EXPECT_EQ(number(2, llvm::LLVMContext::MD_dereferenceable), -1) << text;
}

TEST(Module, HasOneVisibleFunctionForEachKernel) {
  llvm::LLVMContext context;
  // The first calls the second, which is emitted after.
  const auto module = module_of(context, *kernels::parse_kernels(R"(
kernel a.1(x: f32[8]) { call b(x) blocks 2 }
kernel b(x: f32[8]) blocks 2 { }
)"));
  add_alias(*module, "c", "b");
  std::set<std::string> visible;
  for (const llvm::GlobalValue& value : module->global_values())
    if (!value.isDeclaration()) visible.insert(value.getName().str());
  EXPECT_EQ(visible, (std::set<std::string>{"hloom_a_2e1", "hloom_b", "hloom_c"}));
  EXPECT_NE(module->getFunction(kForkJoin), nullptr);
}

// Of few functions the bodies stand where they are used.
TEST(Module, HasManyFunctionsBodiesOnce) {
  const auto functions_of = [](int lines) {
    std::string text = "kernel k(a: f32[99]) -> (y: f32[99]) {\n  for i in 0..99 by 16 {\n    x0 = load f32 a[i]\n";
    for (int n = 0; n < lines; ++n) text += "    x" + std::to_string(n + 1) + " = tanh f32 x" + std::to_string(n) + "\n";
    llvm::LLVMContext context;
    const auto module = module_of(context, {*kernels::parse(text + "    store y[i], x" + std::to_string(lines) + "\n  }\n}")});
    return std::ranges::count_if(*module, [](const llvm::Function& f) { return !f.isDeclaration(); });
  };
  EXPECT_EQ(functions_of(5), 1);
  EXPECT_EQ(functions_of(50), 2);
}

TEST(Module, HasNoFastMath) {
  llvm::LLVMContext context;
  const auto module = module_of(context, {*kernels::parse(R"(
kernel k(a: f32[99]) -> (y: f32[99]) {
  zero = constant f32 0
  for i in 0..99 by 16 fold add s = zero {
    x = load f32 a[i]
    e = exponential f32 x
    t = tanh f32 e
    d = divide f32 t, x
    store y[i], d
    n = add f32 s, d
    next n
  } -> r
})")});
  for (const llvm::BasicBlock& block : *module->getFunction("hloom_k"))
    for (const llvm::Instruction& i : block)
      EXPECT_FALSE(llvm::isa<llvm::FPMathOperator>(i) && i.getFastMathFlags().any());
}

}  // namespace
}  // namespace hloom::emit
