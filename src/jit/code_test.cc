#include "jit/code.h"

#include <gtest/gtest.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>

#include <atomic>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <optional>
#include <string>
#include <unistd.h>
#include <unwind.h>
#include <vector>

#include "base/fail.h"
#include "jit/compile_object.h"

namespace hloom::jit {
namespace {

using llvm::Value;
using Function = std::int64_t (*)(std::int64_t);

// Starts `i64 name(i64)` in the module; finish with CreateRet.
llvm::Function* start(llvm::Module& module, llvm::IRBuilder<>& b, const std::string& name) {
  auto* type = llvm::FunctionType::get(b.getInt64Ty(), {b.getInt64Ty()}, false);
  auto* function = llvm::Function::Create(type, llvm::Function::ExternalLinkage, name, module);
  b.SetInsertPoint(llvm::BasicBlock::Create(module.getContext(), "entry", function));
  return function;
}

// name(x) = table[x] + x * factor + (variable += 1), so that all three sections are in use.
void add_function(llvm::Module& module, const std::string& name, std::int64_t factor) {
  llvm::IRBuilder<> b(module.getContext());
  llvm::Function* function = start(module, b, name);
  std::vector<llvm::Constant*> elements;
  for (int i = 0; i < 16; ++i) elements.push_back(b.getInt64(i * i));
  auto* array = llvm::ArrayType::get(b.getInt64Ty(), 16);
  auto* table = new llvm::GlobalVariable(module, array, true, llvm::GlobalValue::PrivateLinkage,
                                         llvm::ConstantArray::get(array, elements), "table");
  auto* variable = new llvm::GlobalVariable(module, b.getInt64Ty(), false, llvm::GlobalValue::InternalLinkage,
                                            b.getInt64(100), "variable");
  Value* x = function->getArg(0);
  Value* element = b.CreateLoad(b.getInt64Ty(), b.CreateGEP(array, table, {b.getInt64(0), x}));
  Value* count = b.CreateAdd(b.CreateLoad(b.getInt64Ty(), variable), b.getInt64(1));
  b.CreateStore(count, variable);
  b.CreateRet(b.CreateAdd(b.CreateAdd(element, b.CreateMul(x, b.getInt64(factor))), count));
}

// name(x) = callee(x) + 1
void add_call(llvm::Module& module, const std::string& name, const std::string& callee) {
  llvm::IRBuilder<> b(module.getContext());
  llvm::Function* function = start(module, b, name);
  llvm::FunctionCallee target = module.getOrInsertFunction(callee, function->getFunctionType());
  b.CreateRet(b.CreateAdd(b.CreateCall(target, {function->getArg(0)}), b.getInt64(1)));
}

Object compile(const std::string& name, const std::function<void(llvm::Module&)>& fill) {
  static const std::unique_ptr<llvm::TargetMachine> machine = *make_target_machine();
  llvm::LLVMContext context;
  llvm::Module module(name, context);
  fill(module);
  return *compile_object(module, *machine);
}

Function function(const Code& code, const std::string& name) {
  return reinterpret_cast<Function>(*code.lookup(name));
}

std::int64_t num_mappings() {
  std::ifstream maps("/proc/self/maps");
  return std::count(std::istreambuf_iterator<char>(maps), {}, '\n');
}

std::int64_t resident_pages() {
  std::int64_t total = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;
  return resident;
}

TEST(Code, ConstantsAndVariablesOfAnObject) {
  const Code code = *Code::link({compile("m", [](auto& m) { add_function(m, "f", 7); })}, {});
  EXPECT_EQ(function(code, "f")(3), 9 + 21 + 101);
  EXPECT_EQ(function(code, "f")(4), 16 + 28 + 102);
}

TEST(Code, SectionsLieInOrderPackedInOneBlock) {
  std::vector<Object> objects;
  for (int i = 0; i < 100; ++i)
    objects.push_back(compile("m", [&](auto& m) { add_function(m, "f" + std::to_string(i), i); }));
  const Code code = *Code::link(objects, {});
  EXPECT_LT(code.begin(Section::Code), code.begin(Section::ReadOnly));
  EXPECT_LT(code.begin(Section::ReadOnly), code.begin(Section::ReadWrite));
  for (int i = 0; i < 100; ++i) {
    auto* at = static_cast<const std::byte*>(*code.lookup("f" + std::to_string(i)));
    EXPECT_GE(at, code.begin(Section::Code));
    EXPECT_LT(at, code.begin(Section::ReadOnly));
    EXPECT_EQ(function(code, "f" + std::to_string(i))(2), 4 + 2 * i + 101);
  }
  EXPECT_LT(code.statistics().carved_bytes[0], 100 * 128);  // packed: not a page for each
  EXPECT_EQ(code.statistics().protect_calls, 3);
}

TEST(Code, ObjectsCallEachOtherInBothDirections) {
  const std::vector<Object> objects = {
      compile("a", [](auto& m) { add_call(m, "f", "g"); add_function(m, "h", 1); }),
      compile("b", [](auto& m) { add_call(m, "g", "h"); }),
  };
  const Code code = *Code::link(objects, {});
  EXPECT_EQ(function(code, "f")(3), 9 + 3 + 101 + 1 + 1);
}

std::int64_t triple(std::int64_t x) { return 3 * x; }

TEST(Code, ExternalsComeFromTheTableOnly) {
  const Object object = compile("m", [](auto& m) { add_call(m, "f", "getpid"); });
  Expected<Code> without = Code::link({object}, {});
  ASSERT_FALSE(without);
  EXPECT_EQ(without.error().code(), hloom::Code::NotFound);
  EXPECT_EQ(without.error().message(), "unresolved symbol 'getpid' of m");
  const Symbol table[] = {{"unused", nullptr}, {"getpid", reinterpret_cast<void*>(&triple)}};
  const Code code = *Code::link({object}, table);
  EXPECT_EQ(function(code, "f")(5), 16);
}

TEST(Code, AllUnresolvedSymbolsAreNamed) {
  Expected<Code> code = Code::link({compile("m", [](auto& m) { add_call(m, "f", "u"); add_call(m, "g", "v"); }),
                                    compile("n", [](auto& m) { add_call(m, "h", "u"); })}, {});
  ASSERT_FALSE(code);
  EXPECT_EQ(code.error().message(), "unresolved symbol 'u' of m, 'u' of n, 'v' of m");
}

TEST(Code, DefinitionsWinOverTheTable) {
  const Symbol table[] = {{"h", nullptr}};
  const Code code = *Code::link({compile("a", [](auto& m) { add_call(m, "f", "h"); }),
                                 compile("b", [](auto& m) { add_function(m, "h", 1); })}, table);
  EXPECT_EQ(function(code, "f")(3), 9 + 3 + 101 + 1);
}

TEST(Code, WrongObjectsAreErrors) {
  EXPECT_EQ(Code::link({{"junk", {'j', 'u', 'n', 'k'}}}, {}).error().code(), hloom::Code::InvalidArgument);
  Object cut = compile("m", [](auto& m) { add_function(m, "f", 7); });
  cut.bytes.resize(cut.bytes.size() / 2);
  EXPECT_EQ(Code::link({cut}, {}).error().code(), hloom::Code::InvalidArgument);
  const Object object = compile("m", [](auto& m) { add_function(m, "f", 7); });
  Expected<Code> twice = Code::link({object, object}, {});
  ASSERT_FALSE(twice);
  EXPECT_EQ(twice.error().code(), hloom::Code::AlreadyExists);
  EXPECT_NE(twice.error().message().find("f"), std::string::npos);
}

TEST(Code, NothingToLinkIsNoError) {
  const Code code = *Code::link({}, {});
  EXPECT_EQ(code.lookup("f").error().code(), hloom::Code::NotFound);
}

// bfloat and half need helpers on processors without the instructions; x86-64 is one.
TEST(Code, KnownHelpersConvertAsIeeeSays) {
  const base::Target plain = *target_named("x86-64");
  const std::unique_ptr<llvm::TargetMachine> machine = *make_target_machine(plain);
  llvm::LLVMContext context;
  llvm::Module module("m", context);
  llvm::IRBuilder<> b(context);
  auto* type = llvm::FunctionType::get(b.getInt16Ty(), {b.getDoubleTy()}, false);
  for (llvm::Type* narrow : {b.getHalfTy(), b.getBFloatTy()}) {
    const char* name = narrow->isHalfTy() ? "half" : "bfloat";
    auto* f = llvm::Function::Create(type, llvm::Function::ExternalLinkage, name, module);
    b.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", f));
    b.CreateRet(b.CreateBitCast(b.CreateFPTrunc(f->getArg(0), narrow), b.getInt16Ty()));
  }
  const Code code = *Code::link({*compile_object(module, *machine)}, {});
  const auto half = reinterpret_cast<std::uint16_t (*)(double)>(*code.lookup("half"));
  const auto bfloat = reinterpret_cast<std::uint16_t (*)(double)>(*code.lookup("bfloat"));
  EXPECT_EQ(half(1.0), 0x3c00);
  EXPECT_EQ(bfloat(1.0), 0x3f80);
  EXPECT_EQ(bfloat(-1.0), 0xbf80);
  EXPECT_EQ(bfloat(INFINITY), 0x7f80);
  EXPECT_EQ(bfloat(1e300), 0x7f80);
  EXPECT_EQ(bfloat(NAN) & 0x7fc0, 0x7fc0);
  // Just above a tie of bfloat16 by less than a float can tell: rounding twice would give 0x3f80.
  EXPECT_EQ(bfloat(1.0 + 0x1p-8 + 0x1p-40), 0x3f81);
  EXPECT_EQ(bfloat(1.0 + 0x1p-8), 0x3f80);
  EXPECT_EQ(bfloat(1.0 + 0x1p-8 - 0x1p-40), 0x3f80);
  EXPECT_EQ(bfloat(1.0 + 0x3p-8), 0x3f82);
  EXPECT_EQ(bfloat(1.0 + 0x3p-8 - 0x1p-40), 0x3f81);
}

// Programs come and go: what a round maps and touches, it gives back.
TEST(Code, FiveThousandFunctionsUnderChurn) {
  std::vector<Object> objects;
  for (int i = 0; i < 500; ++i)
    objects.push_back(compile("m" + std::to_string(i), [&](llvm::Module& m) {
      for (int j = 0; j < 10; ++j) add_function(m, "f" + std::to_string(i * 10 + j), j);
    }));
  const auto round = [&] {
    const Code code = *Code::link(objects, {});
    for (int i = 0; i < 5000; ++i) ASSERT_EQ(function(code, "f" + std::to_string(i))(1), 1 + i % 10 + 101);
  };
  for (int i = 0; i < 3; ++i) round();
  const std::int64_t mappings = num_mappings(), pages = resident_pages();
  {
    const Code code = *Code::link(objects, {});
    EXPECT_LE(num_mappings(), mappings + 8);  // one block of three protections and its guards
  }
  for (int i = 0; i < 5; ++i) round();
  EXPECT_LE(num_mappings(), mappings + 2);
  EXPECT_LE(resident_pages(), pages + 2048);  // 8 MiB of the allocator's own slack
}

std::int64_t address_space_pages() {
  std::int64_t total = 0;
  std::ifstream("/proc/self/statm") >> total;
  return total;
}

// As in a server: some programs live at any time, each new one takes the place of the oldest.
TEST(Code, TenThousandProgramsLeaveNoTrace) {
  std::vector<Object> objects;
  for (int i = 0; i < 8; ++i)
    objects.push_back(compile("m" + std::to_string(i), [&](llvm::Module& m) { add_function(m, "f", i); }));
  std::vector<std::unique_ptr<Code>> live(50);
  std::int64_t pages = 0, space = 0, mappings = 0;
  for (std::size_t i = 0; i < 10'000; ++i) {
    live[i % live.size()] = std::make_unique<Code>(*Code::link({objects[i % objects.size()]}, {}));
    const auto factor = static_cast<std::int64_t>(i % objects.size());
    ASSERT_EQ(function(*live[i % live.size()], "f")(2), 4 + 2 * factor + 101);
    if (i == 2000) pages = resident_pages(), space = address_space_pages(), mappings = num_mappings();
  }
  EXPECT_LE(num_mappings(), mappings + 2);
  EXPECT_LE(resident_pages(), pages + 256);
  EXPECT_LE(address_space_pages(), space + 256);
}

TEST(Code, MoveKeepsAddresses) {
  Code code = *Code::link({compile("m", [](auto& m) { add_function(m, "f", 7); })}, {});
  const Function f = function(code, "f");
  const Code moved(std::move(code));
  EXPECT_EQ(function(moved, "f"), f);
  EXPECT_EQ(f(3), 9 + 21 + 101);
}

// --- Walks of the stack -----------------------------------------------------------------------------------------------

std::vector<void*> walked;  // where the functions of the last walk begin, innermost first

_Unwind_Reason_Code note_frame(_Unwind_Context* context, void*) {
  if (void* function = reinterpret_cast<void*>(_Unwind_GetRegionStart(context))) walked.push_back(function);
  return _URC_NO_REASON;
}

std::int64_t walk(std::int64_t x) {
  walked.clear();
  _Unwind_Backtrace(note_frame, nullptr);
  return x;
}

// Who stands on the other side of the compiled code.
[[gnu::noinline]] std::int64_t enter(Function compiled, std::int64_t x) {
  const std::int64_t result = compiled(x);
  asm volatile("" ::: "memory");  // no tail call
  return result;
}

bool is_walked_in_order(const std::vector<void*>& functions) {
  auto at = walked.begin();
  for (void* function : functions) {
    at = std::find(at, walked.end(), function);
    if (at == walked.end()) return false;
  }
  return true;
}

TEST(Unwind, WalksGoThroughCompiledCode) {
  std::vector<Object> objects;
  objects.push_back(compile("m0", [](llvm::Module& m) { add_call(m, "outer", "inner"); }));
  objects.push_back(compile("m1", [](llvm::Module& m) { add_call(m, "inner", "walk"); }));
  const Code code = *Code::link(objects, std::vector<Symbol>{{"walk", reinterpret_cast<void*>(&walk)}});
  EXPECT_EQ(enter(function(code, "outer"), 5), 7);
  EXPECT_TRUE(is_walked_in_order({reinterpret_cast<void*>(&walk), *code.lookup("inner"), *code.lookup("outer"),
                                  reinterpret_cast<void*>(&enter)}));
}

// As a profiler that interrupts: in a function that calls nothing.
TEST(Unwind, WalksBeginAnywhere) {
  const Object object = compile("m", [](llvm::Module& m) {
    llvm::IRBuilder<> b(m.getContext());
    llvm::Function* f = start(m, b, "leaf");
    b.CreateIntrinsic(llvm::Intrinsic::debugtrap, {});
    b.CreateRet(f->getArg(0));
  });
  const Code code = *Code::link({object}, {});
  const auto before = std::signal(SIGTRAP, [](int) { walk(0); });
  EXPECT_EQ(enter(function(code, "leaf"), 5), 5);
  std::signal(SIGTRAP, before);
  EXPECT_TRUE(is_walked_in_order({*code.lookup("leaf"), reinterpret_cast<void*>(&enter)}));
}

TEST(Unwind, TablesGoWithTheirCode) {
  std::vector<std::optional<Code>> programs;
  std::vector<void*> functions;
  for (int i = 0; i < 3; ++i) {
    const Object object = compile("m", [](llvm::Module& m) { add_call(m, "f", "walk"); });
    programs.emplace_back(*Code::link({object}, std::vector<Symbol>{{"walk", reinterpret_cast<void*>(&walk)}}));
    functions.push_back(*programs.back()->lookup("f"));
    EXPECT_EQ(enter(reinterpret_cast<Function>(functions.back()), 5), 6);
    EXPECT_TRUE(is_walked_in_order({functions.back(), reinterpret_cast<void*>(&enter)}));
  }
  for (const std::size_t gone : {1, 0, 2}) {
    void* const inside = static_cast<std::byte*>(functions[gone]) + 1;
    EXPECT_EQ(_Unwind_FindEnclosingFunction(inside), functions[gone]);
    programs[gone].reset();
    EXPECT_EQ(_Unwind_FindEnclosingFunction(inside), nullptr);
  }
}

TEST(Code, PerfFindsTheNames) {
  const std::string path = "/tmp/perf-" + std::to_string(getpid()) + ".map";
  {
    const Code code = *Code::link({compile("m", [](auto& m) { add_function(m, "fusion.7", 7); })}, {}, {.perf = true});
    std::ifstream file(path);
    std::uintptr_t address = 0, size = 0;
    std::string name;
    file >> std::hex >> address >> size >> name;
    EXPECT_EQ(reinterpret_cast<void*>(address), *code.lookup("fusion.7"));
    EXPECT_GT(size, 0u);
    EXPECT_EQ(name, "fusion.7");
  }
  std::remove(path.c_str());
}

}  // namespace

// GDB's interface: a list of object files that the debugger reads. Declared as GDB documents it.
extern "C" {
struct jit_code_entry {
  jit_code_entry *next_entry, *prev_entry;
  const char* symfile_addr;
  std::uint64_t symfile_size;
};
struct jit_descriptor {
  std::uint32_t version, action_flag;
  jit_code_entry *relevant_entry, *first_entry;
};
extern jit_descriptor __jit_debug_descriptor;
}

namespace {

TEST(Code, DebuggerIsToldAndTheEntryGoes) {
  jit_code_entry* before = __jit_debug_descriptor.first_entry;
  {
    const Code code = *Code::link({compile("m", [](auto& m) { add_function(m, "fusion.7", 7); })}, {}, {.debugger = true});
    jit_code_entry* entry = __jit_debug_descriptor.first_entry;
    ASSERT_NE(entry, before);
    EXPECT_NE(std::string(entry->symfile_addr, entry->symfile_size).find("fusion.7"), std::string::npos);
    EXPECT_EQ(function(code, "fusion.7")(3), 9 + 21 + 101);
  }
  EXPECT_EQ(__jit_debug_descriptor.first_entry, before);
}

using CodeDeathTest = testing::Test;

TEST(CodeDeathTest, WritingToCodeFaults) {
  const Code code = *Code::link({compile("m", [](auto& m) { add_function(m, "f", 7); })}, {});
  auto* at = static_cast<volatile char*>(*code.lookup("f"));
  EXPECT_EXIT(*at = 1, testing::KilledBySignal(SIGSEGV), "");
  auto* constant = reinterpret_cast<volatile char*>(const_cast<std::byte*>(code.begin(Section::ReadOnly)));
  EXPECT_EXIT(*constant = 1, testing::KilledBySignal(SIGSEGV), "");
}

}  // namespace
}  // namespace hloom::jit
