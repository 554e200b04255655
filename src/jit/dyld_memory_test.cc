#include "jit/dyld_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/TargetParser/Triple.h>

#include <cstring>

#include "base/fail.h"
#include "jit/target.h"

namespace hloom::jit {
namespace {

using testing::HasSubstr;

base::Target windows() {
  base::Target target = *target_named("x86-64");
  target.triple = "x86_64-pc-windows-msvc";
  return target;
}

// i64 f(i64 x) = g(x) + table[x] + (variable += 1), with unwind tables: their references are image-relative.
Object coff(const std::string& callee) {
  const auto machine = *make_target_machine(windows());
  llvm::LLVMContext context;
  llvm::Module module("m", context);
  module.setTargetTriple(machine->getTargetTriple());
  module.setDataLayout(machine->createDataLayout());
  llvm::IRBuilder<> b(context);
  auto* type = llvm::FunctionType::get(b.getInt64Ty(), {b.getInt64Ty()}, false);
  auto* f = llvm::Function::Create(type, llvm::Function::ExternalLinkage, "f", module);
  f->setUWTableKind(llvm::UWTableKind::Async);
  b.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", f));
  std::vector<llvm::Constant*> elements;
  for (int i = 0; i < 16; ++i) elements.push_back(b.getInt64(static_cast<std::uint64_t>(i * i)));
  auto* array = llvm::ArrayType::get(b.getInt64Ty(), 16);
  auto* table = new llvm::GlobalVariable(module, array, true, llvm::GlobalValue::PrivateLinkage,
                                         llvm::ConstantArray::get(array, elements), "table");
  auto* variable = new llvm::GlobalVariable(module, b.getInt64Ty(), false, llvm::GlobalValue::InternalLinkage,
                                            b.getInt64(100), "variable");
  llvm::Value* x = f->getArg(0);
  llvm::Value* call = b.CreateCall(module.getOrInsertFunction(callee, type), {x});
  llvm::Value* element = b.CreateLoad(b.getInt64Ty(), b.CreateGEP(array, table, {b.getInt64(0), x}));
  llvm::Value* count = b.CreateAdd(b.CreateLoad(b.getInt64Ty(), variable), b.getInt64(1));
  b.CreateStore(count, variable);
  b.CreateRet(b.CreateAdd(b.CreateAdd(call, element), count));
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream out(bytes);
  llvm::legacy::PassManager passes;
  EXPECT_FALSE(machine->addPassesToEmitFile(passes, out, nullptr, llvm::CodeGenFileType::ObjectFile));
  passes.run(module);
  return {"m", {bytes.begin(), bytes.end()}};
}

using Function = std::int64_t(__attribute__((ms_abi)) *)(std::int64_t);

__attribute__((ms_abi)) std::int64_t triple(std::int64_t x) { return 3 * x; }

const Symbol kExternals[] = {{"g", reinterpret_cast<void*>(&triple)}};

bool is_x86() { return host_target().triple.starts_with("x86_64"); }

std::uintptr_t number(const void* p) { return reinterpret_cast<std::uintptr_t>(p); }

TEST(DyldMemory, ImageRelativeReferencesOfCoffFit) {
  if (!is_x86()) GTEST_SKIP() << "code for x86";
  ContiguousSections sections;
  const auto code = DyldCode::load(coff("g"), sections, kExternals);
  ASSERT_TRUE(code) << code.error().message();
  void* f = *code->lookup("f");
  EXPECT_EQ(reinterpret_cast<Function>(f)(3), 9 + 9 + 101);
  EXPECT_EQ(reinterpret_cast<Function>(f)(4), 12 + 16 + 102);
  // A row of .pdata: where the function begins and ends, and its unwind data, all as distances from the first section.
  const PlacedSection *pdata = nullptr, *xdata = nullptr;
  std::uintptr_t base = ~std::uintptr_t{0};
  for (const PlacedSection& s : code->placed()) {
    base = std::min(base, number(s.begin));
    if (s.name == ".pdata") pdata = &s;
    if (s.name == ".xdata") xdata = &s;
  }
  ASSERT_TRUE(pdata != nullptr && xdata != nullptr);
  std::uint32_t row[3];
  std::memcpy(row, pdata->begin, sizeof(row));
  EXPECT_EQ(base + row[0], number(f));
  EXPECT_GT(row[1], row[0]);
  EXPECT_EQ(base + row[2], number(xdata->begin));
  EXPECT_GE(pdata->begin, sections.begin(Section::ReadOnly)) << "behind the code";
}

TEST(DyldMemory, UnresolvedSymbolsAreNamed) {
  if (!is_x86()) GTEST_SKIP() << "code for x86";
  ContiguousSections sections;
  const auto code = DyldCode::load(coff("no_such_function"), sections, kExternals);
  ASSERT_FALSE(code);
  EXPECT_THAT(code.error().message(), HasSubstr("no_such_function"));
  sections.release();
  EXPECT_EQ(DyldCode::load({"junk", {'j'}}, sections, {}).error().code(), hloom::Code::InvalidArgument);
}

/// Maps nothing.
class Poor final : public Mapper {
 public:
  Expected<std::byte*> map(std::int64_t) override { return fail(hloom::Code::ResourceExhausted, "no memory"); }
  Expected<> protect(std::byte*, std::int64_t, Access) override { return {}; }
  void advise_huge(std::byte*, std::int64_t) override {}
  void unmap(std::byte*, std::int64_t) override {}
};

// LLVM would end the process for each of these.
TEST(DyldMemory, WithoutMemoryThereIsAnError) {
  if (!is_x86()) GTEST_SKIP() << "code for x86";
  Poor poor;
  ContiguousSections none(poor);
  const auto code = DyldCode::load(coff("g"), none, kExternals);
  ASSERT_FALSE(code);
  EXPECT_EQ(code.error().message(), "no memory");
  ContiguousSections taken;
  ASSERT_TRUE(taken.reserve({.code = {10, 1}, .read_only = {}, .read_write = {}}));
  EXPECT_EQ(DyldCode::load(coff("g"), taken, kExternals).error().code(), hloom::Code::FailedPrecondition);
}

TEST(DyldMemory, SectionsOutOfOrderAreRefused) {
  const auto at = [](std::uintptr_t address) { return reinterpret_cast<const std::byte*>(address); };
  const PlacedSection text{".text", Section::Code, at(0x10000), 0x100}, data{".rdata", Section::ReadOnly, at(0x11000), 8};
  const PlacedSection before{".pdata", Section::ReadOnly, at(0xf000), 12}, far{".bss", Section::ReadWrite, at(0x90000000), 8};
  EXPECT_TRUE(check_order(std::vector{text, data}));
  EXPECT_TRUE(check_order(std::vector{data, text}));
  EXPECT_EQ(check_order(std::vector{text, before}).error().message(),
            "section .text (code) does not lie before .pdata (read-only)");
  EXPECT_EQ(check_order(std::vector{text, data, far}).error().message(), "sections .text and .bss are 2 GiB apart");
}

}  // namespace
}  // namespace hloom::jit
