#include "jit/llvm_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "jit/target.h"

namespace hloom::jit {
namespace {

using testing::HasSubstr;

constexpr const char* kAdd = R"(define float @add(float %a, float %b) {
  %c = fadd float %a, %b
  ret float %c
}
)";

Expected<std::string> assembly(const std::string& text) { return asm_of_text(text, "x.ll", host_target()); }

TEST(LlvmText, PrintsAgainWhatItPrinted) {
  const std::string once = *llvm_of_text(kAdd, "x.ll", host_target());
  EXPECT_THAT(once, HasSubstr("fadd float %a, %b"));
  EXPECT_EQ(*llvm_of_text(once, "x.ll", host_target()), once);
}

TEST(LlvmText, BecomesAssembly) {
  EXPECT_THAT(*assembly(kAdd), HasSubstr("add:"));
  EXPECT_THAT(*assembly(kAdd), HasSubstr("ret"));
}

TEST(LlvmText, ErrorsHaveTheirPlace) {
  const Expected<std::string> wrong = assembly("define float @f(float %a) {\n  ret double %a\n}\n");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code(), Code::InvalidArgument);
  EXPECT_THAT(wrong.error().message(), testing::StartsWith("x.ll:2:"));
  EXPECT_THAT(wrong.error().message(), HasSubstr("\n  ret double %a\n             ^"));
}

TEST(LlvmText, OtherArchitecturesAreRefusedByName) {
  const Expected<std::string> other = assembly(std::string("target triple = \"s390x-linux-gnu\"\n") + kAdd);
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().message(), HasSubstr("is for s390x-linux-gnu"));
}

// It would end the process without care.
TEST(LlvmText, WhatEndsLlvmIsAnError) {
  for (int i = 0; i < 3; ++i) {
    const Expected<std::string> bad = assembly(
        "define i32 @f(i32 %x) {\n  %y = call i32 @llvm.aarch64.crc32b(i32 %x, i32 %x)\n  ret i32 %y\n}\n"
        "declare i32 @llvm.aarch64.crc32b(i32, i32)\n");
    ASSERT_FALSE(bad);
    EXPECT_EQ(bad.error().code(), Code::Internal);
    EXPECT_THAT(bad.error().message(), HasSubstr("x.ll: LLVM fails over it: "));
    EXPECT_TRUE(assembly(kAdd)) << "and the next one is as any";
  }
}

TEST(LlvmText, DeepNestsDoNotOverflowTheStack) {
  const Expected<std::string> deep = assembly("@x = external global " + std::string(1'000'000, '{'));
  ASSERT_FALSE(deep);
  EXPECT_THAT(deep.error().message(), HasSubstr("nest deeper than 500"));
  const std::string brackets(1000, '{');
  EXPECT_TRUE(assembly("; " + brackets + "\n@x = constant [1000 x i8] c\"" + brackets + "\"\n")) << "none of types";
}

}  // namespace
}  // namespace hloom::jit
