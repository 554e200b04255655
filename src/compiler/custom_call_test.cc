// Custom calls from the text to the values: handlers of users, LAPACK in place, errors of a run.

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <map>
#include <optional>
#include <thread>

#include "compiler/check.h"
#include "compiler/check_tolerance.h"
#include "hloom/executable.h"
#include "hloom/ffi.h"
#include "interp/interpret.h"
#include "library/lapack_library.h"
#include "text/parse.h"

namespace hloom {
namespace {

using Floats = std::vector<float>;

std::span<std::byte> bytes(Floats& x) { return {reinterpret_cast<std::byte*>(x.data()), 4 * x.size()}; }

/// A handler for the time of a test.
class Registered {
 public:
  Registered(std::string target, ffi::Handler handler) : target_(target) {
    const Expected<> done = ffi::register_handler(std::move(target), std::move(handler));
    EXPECT_TRUE(done) << done.error().message();
  }
  ~Registered() { ffi::unregister_handler(target_); }

 private:
  std::string target_;
};

// result = factor·operand
Expected<> scale(const ffi::Call& call) {
  const auto factor = static_cast<float>(call.attributes.number("factor").value_or(1));
  const ffi::Buffer &x = call.operand(0), &y = call.result(0);
  if (x.dtype() != DType::F32 || x.dims() != y.dims()) return Error(Code::InvalidArgument, "takes floats");
  for (std::int64_t i = 0; i < x.shape().num_elements(); ++i) {
    if (x.data<float>()[i] < 0) return Error(Code::OutOfRange, "element " + std::to_string(i) + " is negative");
    y.data<float>()[i] = factor * x.data<float>()[i];
  }
  return {};
}

constexpr const char* kScale = R"(HloModule m
ENTRY e {
  p = f32[4] parameter(0)
  twice = f32[4] add(p, p)
  scaled.7 = f32[4] custom-call(twice), custom_call_target="test_scale", api_version=API_VERSION_TYPED_FFI, backend_config={factor = 10.0 : f32}
  ROOT r = f32[4] add(scaled.7, p)
}
)";

Expected<Floats> run(const Executable& program, Floats x) {
  Floats out(static_cast<std::size_t>(program.result_shapes()[0].num_elements()));
  const std::span<std::byte> in[] = {bytes(x)}, to[] = {bytes(out)};
  const Expected<> done = program.run(in, to);
  if (!done) return done.error();
  return out;
}

hlo::Literal literal(const Shape& shape, const Floats& x) {
  hlo::Literal l(shape);
  std::copy(x.begin(), x.end(), l.mutable_data<float>().begin());
  return l;
}

Expected<hlo::Literal> interpreted(const char* text, const Floats& x) {
  const auto module = text::parse_module(text, {.file_name = "test"});
  EXPECT_TRUE(module) << module.error().message();
  const hlo::Literal argument = literal((*module)->entry()->parameter(0)->shape(), x);
  return interp::interpret(**module, {&argument, 1});
}

TEST(CustomCall, HandlersOfUsersRun) {
  const Registered handler("test_scale", scale);
  const auto program = Executable::compile(kScale);
  ASSERT_TRUE(program) << program.error().message();
  EXPECT_EQ(*run(*program, {1, 2, 3, 4}), (Floats{21, 42, 63, 84}));
  const auto same = interpreted(kScale, {1, 2, 3, 4});
  ASSERT_TRUE(same) << same.error().message();
  EXPECT_EQ(same->data<float>()[3], 84);
}

TEST(CustomCall, AnErrorOfARunNamesTheInstruction) {
  const Registered handler("test_scale", scale);
  const auto program = Executable::compile(kScale);
  ASSERT_TRUE(program) << program.error().message();
  const auto failed = run(*program, {1, 2, -3, -4});
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code(), Code::OutOfRange);
  EXPECT_EQ(failed.error().message(), "scaled.7: element 2 is negative");
  EXPECT_EQ(interpreted(kScale, {1, 2, -3, -4}).error().message(), "scaled.7: element 2 is negative");
  EXPECT_EQ(*run(*program, {1, 2, 3, 4}), (Floats{21, 42, 63, 84}));  // and the next run is as the first
}

TEST(CustomCall, ProgramsKeepTheirHandler) {
  std::optional<Executable> program;
  {
    const Registered handler("test_scale", scale);
    program.emplace(*Executable::compile(kScale));
  }
  EXPECT_EQ(*run(*program, {1, 0, 0, 0}), (Floats{21, 0, 0, 0}));
  const auto unknown = Executable::compile(kScale);
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code(), Code::Unimplemented);
  EXPECT_EQ(unknown.error().message().find("scaled.7: nobody knows the custom call target test_scale"), 0u);
}

TEST(CustomCall, SeveralThreadsMayRunIt) {
  std::atomic<int> calls = 0;
  const Registered handler("test_scale", [&](const ffi::Call& call) {
    ++calls;
    return scale(call);
  });
  const auto program = Executable::compile(kScale);
  ASSERT_TRUE(program) << program.error().message();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) EXPECT_EQ(*run(*program, {1, 2, 3, 4}), (Floats{21, 42, 63, 84}));
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(calls, 200);
}

TEST(CustomCall, TargetsHaveOneHandler) {
  const Registered handler("test_scale", scale);
  EXPECT_EQ(ffi::register_handler("test_scale", scale).error().code(), Code::AlreadyExists);
  EXPECT_EQ(ffi::register_handler("lapack_spotrf_ffi", scale).error().code(), Code::AlreadyExists);
  EXPECT_EQ(ffi::register_handler("Sharding", scale).error().code(), Code::AlreadyExists);
  EXPECT_EQ(ffi::register_handler("", scale).error().code(), Code::InvalidArgument);
  EXPECT_EQ(ffi::register_handler("test_none", nullptr).error().code(), Code::InvalidArgument);
  EXPECT_FALSE(ffi::unregister_handler("test_none"));
}

// Several operands and results, tuples and tokens, other layouts than row-major.
TEST(CustomCall, BuffersAreLeavesInTheLayoutsThatAreAskedFor) {
  constexpr const char* kText = R"(HloModule m
ENTRY e {
  p = f32[2,3] parameter(0)
  t = token[] after-all()
  q = f32[2,3] negate(p)
  c = (f32[2,3]{0,1}, token[]) custom-call(q, t), custom_call_target="test_copy", operand_layout_constraints={f32[2,3]{0,1}, token[]}, custom_call_has_side_effect=true, backend_config="plain text"
  g = f32[2,3]{0,1} get-tuple-element(c), index=0
  ROOT r = f32[2,3]{1,0} add(g, p)
}
)";
  Floats seen;
  const Registered handler("test_copy", [&](const ffi::Call& call) -> Expected<> {
    EXPECT_EQ(call.instruction, "c");
    EXPECT_EQ(call.backend_config, "plain text");
    EXPECT_EQ(call.operands.size(), 2u);
    EXPECT_EQ(call.results.size(), 2u);
    EXPECT_EQ(call.operand(1).dtype(), DType::Token);
    seen.assign(call.operand(0).data<float>(), call.operand(0).data<float>() + 6);
    std::copy(seen.begin(), seen.end(), call.result(0).data<float>());
    return {};
  });
  const auto program = Executable::compile(kText);
  ASSERT_TRUE(program) << program.error().message();
  EXPECT_EQ(*run(*program, {1, 2, 3, 4, 5, 6}), Floats(6, 0));
  EXPECT_EQ(seen, (Floats{-1, -4, -2, -5, -3, -6}));
  seen.clear();
  const auto same = interpreted(kText, {1, 2, 3, 4, 5, 6});
  ASSERT_TRUE(same) << same.error().message();
  EXPECT_EQ(same->data<float>()[5], 0);
  EXPECT_EQ(seen, (Floats{-1, -4, -2, -5, -3, -6}));
}

// A result over its operand: in place where the operand dies, else the operand is copied first and keeps its value.
TEST(CustomCall, AliasedResultsOverwriteWhatDies) {
  for (const bool dies : {true, false}) {
    const std::string text = std::string(R"(HloModule m
ENTRY e {
  p = f32[4] parameter(0)
  q = f32[4] negate(p)
  c = f32[4] custom-call(q), custom_call_target="test_increment", output_to_operand_aliasing={{}: (0, {})}
  ROOT r = f32[4] subtract(c, )") + (dies ? "p" : "q") + ")\n}\n";
    const Registered handler("test_increment", [&](const ffi::Call& call) -> Expected<> {
      EXPECT_EQ(call.operand(0).data<float>(), call.result(0).data<float>());
      for (int i = 0; i < 4; ++i) call.result(0).data<float>()[i] += 1;
      return {};
    });
    const auto program = Executable::compile(text);
    ASSERT_TRUE(program) << program.error().message();
    EXPECT_EQ(*run(*program, {1, 2, 3, 4}), (dies ? Floats{-1, -3, -5, -7} : Floats(4, 1)));
  }
}

TEST(CustomCall, LapackGetsTheLayoutsThatItAsksFor) {
  if (!library::want_lapack()) GTEST_SKIP() << library::want_lapack().error().message();
  constexpr const char* kText = R"(HloModule m
ENTRY e {
  p = f32[3,3] parameter(0)
  f = (f32[3,3]{0,1}, s32[]) custom-call(p), custom_call_target="lapack_spotrf_ffi", operand_layout_constraints={f32[3,3]{0,1}},
    output_to_operand_aliasing={{0}: (0, {})}, api_version=API_VERSION_TYPED_FFI, backend_config={uplo = 76 : ui8}
  ROOT l = f32[3,3]{1,0} get-tuple-element(f), index=0
}
)";
  const auto program = Executable::compile(kText);
  ASSERT_TRUE(program) << program.error().message();
  const Floats l = *run(*program, {4, 9, 9, 2, 10, 9, 6, 9, 19});
  EXPECT_EQ(l[0], 2);
  EXPECT_EQ(l[3], 1);
  EXPECT_EQ(l[4], 3);
  EXPECT_EQ(l[6], 3);
  EXPECT_EQ(l[7], 2);
  EXPECT_EQ(l[8], std::sqrt(6.0f));
}

constexpr const char* kRoutines = R"(HloModule m
ENTRY e {
  p = c64[5,60] parameter(0)
  f = c64[5,60] fft(p), fft_type=FFT, fft_length={60}
  a = f32[40,40] parameter(1)
  t = f32[40,40] transpose(a), dimensions={1,0}
  s = f32[40,40] dot(a, t), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  l = f32[40,40] cholesky(s), lower=true
  x = f32[40,40] triangular-solve(l, a), left_side=true, lower=true, transpose_a=NO_TRANSPOSE
  i = c64[5,60] fft(f), fft_type=IFFT, fft_length={5,60}
  ROOT r = (c64[5,60], f32[40,40]) tuple(i, x)
}
)";

std::vector<hlo::Literal> routine_arguments(const hlo::Module& module) {
  std::vector<hlo::Literal> arguments;
  for (const hlo::Instruction* p : module.entry()->parameters()) {
    hlo::Literal l(p->shape());
    auto* numbers = reinterpret_cast<float*>(l.mutable_bytes().data());
    for (std::size_t i = 0; i < l.bytes().size() / 4; ++i) numbers[i] = static_cast<float>(static_cast<int>(i * 7919 % 1009) - 500) / 64;
    for (std::size_t i = 0; p->shape().dtype() == DType::F32 && i < 1600; i += 41) numbers[i] += 100;  // well-conditioned
    arguments.push_back(std::move(l));
  }
  return arguments;
}

// Transforms, factors and solutions are near in their own measure, not element by element.
TEST(Check, RoutinesAreHeldToTheBoundOfTheirErrors) {
  auto module = text::parse_module(kRoutines, {.file_name = "test"});
  ASSERT_TRUE(module) << module.error().message();
  const std::vector<hlo::Literal> arguments = routine_arguments(**module);
  const auto report = compiler::check(std::move(*module), arguments, {});
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_GE(report->checks, 5);
  for (const auto& d : report->differences) ADD_FAILURE() << d.instruction << " " << d.message;
}

// A value that is off by a thousand roundings is found.
TEST(Check, WrongRoutinesAreFound) {
  const auto module = text::parse_module(kRoutines, {.file_name = "test"});
  ASSERT_TRUE(module) << module.error().message();
  const std::vector<hlo::Literal> arguments = routine_arguments(**module);
  std::map<std::string, hlo::Literal> values = {{"p", arguments[0]}, {"a", arguments[1]}};
  for (const hlo::Instruction* i : (*module)->entry()->post_order()) {
    if (i->opcode() == hlo::Opcode::Parameter || i->opcode() == hlo::Opcode::Tuple) continue;
    std::vector<hlo::Literal> operands;
    for (const hlo::Instruction* o : i->operands()) operands.push_back(values.at(o->name()));
    const hlo::Literal want = *interp::evaluate_instruction(*i, operands);
    values[i->name()] = want;
    if (!compiler::is_bounded(*i)) continue;
    EXPECT_EQ(*compiler::differs(*i, operands, want, want), std::nullopt) << i->name();
    hlo::Literal wrong = want;
    reinterpret_cast<float*>(wrong.mutable_bytes().data())[0] *= 1.001f;
    EXPECT_NE(*compiler::differs(*i, operands, wrong, want), std::nullopt) << i->name();
  }
}

}  // namespace
}  // namespace hloom
