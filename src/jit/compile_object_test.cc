#include "jit/compile_object.h"

#include <gtest/gtest.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>

#include <atomic>
#include <string>

#include "base/fail.h"
#include "jit/code.h"

namespace hloom::jit {
namespace {

// void add_16(float* a, float* b, float* c): c[0:16] = a[0:16] * b[0:16] + c[0:16], not contracted.
std::unique_ptr<llvm::Module> multiply_add(llvm::LLVMContext& context, const std::string& name) {
  auto module = std::make_unique<llvm::Module>(name, context);
  llvm::IRBuilder<> b(context);
  auto* type = llvm::FunctionType::get(b.getVoidTy(), {b.getPtrTy(), b.getPtrTy(), b.getPtrTy()}, false);
  auto* f = llvm::Function::Create(type, llvm::Function::ExternalLinkage, name, *module);
  b.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", f));
  auto* vector = llvm::FixedVectorType::get(b.getFloatTy(), 16);
  const auto load = [&](unsigned i) { return b.CreateAlignedLoad(vector, f->getArg(i), llvm::Align(4)); };
  b.CreateAlignedStore(b.CreateFAdd(b.CreateFMul(load(0), load(1)), load(2)), f->getArg(2), llvm::Align(4));
  b.CreateRetVoid();
  return module;
}

BuildModule build(const std::string& name) {
  return [name](llvm::LLVMContext& context) { return multiply_add(context, name); };
}

std::string assembly(const base::Target& target) {
  llvm::LLVMContext context;
  const auto module = multiply_add(context, "f");
  const auto machine = *make_target_machine(target);
  return *emit_assembly(*module, *machine);
}

TEST(CompileObject, UsesTheFullVectorWidthOfEachProcessor) {
  if (host_target().triple.find("x86_64") != 0) GTEST_SKIP() << "names of x86 registers";
  const base::Target avx512 = *target_named("skylake-avx512");  // which LLVM would tune to 256 bits
  EXPECT_EQ(avx512.vector_bytes, 64);
  EXPECT_TRUE(avx512.has_masks);
  EXPECT_NE(assembly(avx512).find("zmm"), std::string::npos);
  const base::Target avx2 = *target_named("haswell");
  EXPECT_EQ(avx2.vector_bytes, 32);
  EXPECT_TRUE(avx2.has_fma);
  EXPECT_EQ(assembly(avx2).find("zmm"), std::string::npos);
  EXPECT_NE(assembly(avx2).find("ymm"), std::string::npos);
  EXPECT_EQ(target_named("x86-64")->vector_bytes, 16);
}

TEST(CompileObject, DoesNotContractAndHasNoUnwindTables) {
  const std::string text = assembly(host_target());
  EXPECT_EQ(text.find("fmadd"), std::string::npos);
  EXPECT_EQ(text.find("cfi"), std::string::npos);
}

TEST(CompileObject, UnknownProcessorIsAnError) {
  Expected<base::Target> target = target_named("pentium-9");
  ASSERT_FALSE(target);
  EXPECT_EQ(target.error().message(), "no processor is called 'pentium-9'");
}

TEST(CompileObject, ObjectsDoNotDependOnThreads) {
  std::vector<BuildModule> modules;
  for (int i = 0; i < 20; ++i) modules.push_back(build("f" + std::to_string(i)));
  const std::vector<Object> one = *compile_objects(modules, 1);
  ASSERT_EQ(one.size(), modules.size());
  for (int threads : {0, 2, 3, 64}) {
    const std::vector<Object> many = *compile_objects(modules, threads);
    ASSERT_EQ(many.size(), one.size());
    for (std::size_t i = 0; i < one.size(); ++i) {
      EXPECT_EQ(many[i].name, "f" + std::to_string(i));
      EXPECT_EQ(many[i].bytes, one[i].bytes);
    }
  }
  const Code code = *Code::link(one, {});
  const auto f = reinterpret_cast<void (*)(float*, float*, float*)>(*code.lookup("f19"));
  float a[16], b[16], c[16];
  for (int i = 0; i < 16; ++i) a[i] = static_cast<float>(i), b[i] = 2, c[i] = 1;
  f(a, b, c);
  for (int i = 0; i < 16; ++i) EXPECT_EQ(c[i], static_cast<float>(2 * i + 1));
}

TEST(CompileObject, TheFirstErrorIsToldAndOthersAreDrained) {
  for (int threads : {1, 4}) {
    std::atomic<int> under_way = 0, ended = 0;
    std::vector<BuildModule> modules;
    for (int i = 0; i < 40; ++i)
      modules.push_back([&, i](llvm::LLVMContext& context) -> Expected<std::unique_ptr<llvm::Module>> {
        ++under_way;
        auto module = multiply_add(context, "f");
        ++ended;
        if (i == 7 || i == 9) return fail(hloom::Code::Unimplemented, "fusion.", i, ": no");
        return module;
      });
    Expected<std::vector<Object>> objects = compile_objects(modules, threads);
    ASSERT_FALSE(objects);
    EXPECT_EQ(objects.error().message(), "fusion.7: no");
    EXPECT_EQ(under_way, ended);
    EXPECT_LT(ended, 40);
  }
}

TEST(CompileObject, LevelChangesTheCode) {
  const std::vector<Object> fast = *compile_objects({build("f")}, 1, host_target(), Level::None);
  const std::vector<Object> good = *compile_objects({build("f")}, 1);
  EXPECT_NE(fast[0].bytes, good[0].bytes);
}

// An error that LLVM finds in code generation comes back as ours. Inline assembly is the way to provoke one.
TEST(CompileObject, BackendErrorsComeBack) {
  const BuildModule bad = [](llvm::LLVMContext& context) {
    auto module = std::make_unique<llvm::Module>("bad", context);
    llvm::IRBuilder<> b(context);
    auto* type = llvm::FunctionType::get(b.getVoidTy(), false);
    auto* f = llvm::Function::Create(type, llvm::Function::ExternalLinkage, "f", *module);
    b.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", f));
    auto* in = llvm::FunctionType::get(b.getVoidTy(), {b.getInt64Ty()}, false);
    b.CreateCall(in, llvm::InlineAsm::get(in, "", "{no-such-register}", true), {b.getInt64(1)});
    b.CreateRetVoid();
    return module;
  };
  Expected<std::vector<Object>> objects = compile_objects({bad}, 1);
  ASSERT_FALSE(objects);
  EXPECT_EQ(objects.error().code(), hloom::Code::Internal);
  EXPECT_EQ(objects.error().message().find("bad: "), 0u);
}

}  // namespace
}  // namespace hloom::jit
