// The program as a shell sees it: words in, output, messages and exit status out.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "arrays/npz.h"
#include "cli/arguments.h"
#include "cli/random_values.h"
#include "cli/source.h"

namespace hloom::cli {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

constexpr const char* kProgram = R"(HloModule two

ENTRY e {
  a = f32[4] parameter(0)
  b = f32[4] parameter(1)
  sum = f32[4] add(a, b)
  product = f32[4] multiply(a, b)
  ROOT r = (f32[4], f32[4]) tuple(sum, product)
}
)";

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

/// A folder of its own for each test, in which the program is run.
class CommandLine : public testing::Test {
 protected:
  struct Outcome {
    int status = 0;
    std::string out, err;
  };

  void SetUp() override {
    std::string pattern = testing::TempDir() + "/hloom-cli-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    write("two.hlo", kProgram);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void write(const std::string& name, const std::string& text) { std::ofstream(folder_ + "/" + name) << text; }
  std::string read(const std::string& name) { return contents(folder_ + "/" + name); }
  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  bool exists(const std::string& name) { return std::filesystem::exists(folder_ + "/" + name); }

  /// `words` are for the shell, hloom's in place of "hloom".
  Outcome shell(const std::string& words) {
    const std::string command = "cd '" + folder_ + "' && hloom() { " HLOOM_PROGRAM " \"$@\"; } && { " + words +
                                "; } >stdout.txt 2>stderr.txt </dev/null";
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read("stdout.txt"), read("stderr.txt")};
  }
  Outcome hloom(const std::string& words) { return shell("hloom " + words); }

  std::string folder_;
};

TEST_F(CommandLine, DebugMemoryWatchesARunAndChangesNoValue) {
  const Outcome plain = hloom("run two.hlo --random=3"), watched = hloom("run two.hlo --random=3 --debug-memory");
  EXPECT_EQ(watched.status, 0) << watched.err;
  EXPECT_EQ(watched.out, plain.out);
  for (const std::string command : {"check", "bench --seconds 0"}) {
    const Outcome before = hloom(command + " two.hlo --random=3 --debug-memory");
    EXPECT_EQ(before.status, 0) << before.err;
    EXPECT_THAT(before.err, HasSubstr("two.hlo: each step keeps to its memory"));
  }
  EXPECT_EQ(hloom("run two.hlo --debug-memory --interpret").status, 2);
  EXPECT_EQ(hloom("run two.hlo --debug-memory --profile").status, 2);
}

TEST_F(CommandLine, HelpIsGoodAndHasExamples) {
  EXPECT_THAT(hloom("--help").out, HasSubstr("bench"));
  for (const std::string command : {"run", "bench", "check", "opt", "show", "reduce"}) {
    const Outcome help = hloom(command + " --help");
    EXPECT_EQ(help.status, 0) << command;
    EXPECT_THAT(help.out, HasSubstr("Examples:\n  hloom " + command));
    EXPECT_THAT(help.err, IsEmpty());
  }
}

TEST_F(CommandLine, ReduceKeepsWhatTheScriptLooksFor) {
  const Outcome outcome = hloom("reduce two.hlo --script='grep -q multiply'");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("ROOT %product"));
  EXPECT_THAT(outcome.out, Not(HasSubstr("add(")));
  EXPECT_THAT(outcome.err, HasSubstr("5 instructions, now "));

  EXPECT_EQ(hloom("reduce two.hlo --script='grep -q multiply' --output small.hlo").status, 0);
  EXPECT_THAT(read("small.hlo"), HasSubstr("multiply"));
  EXPECT_EQ(hloom("run small.hlo").status, 0);
}

TEST_F(CommandLine, ReduceSaysWhyItCannot) {
  const Outcome absent = hloom("reduce two.hlo --script='grep -q divide'");
  EXPECT_EQ(absent.status, 1);
  EXPECT_THAT(absent.err, HasSubstr("does not end with status 0"));
  const Outcome missing = hloom("reduce two.hlo --script=./no-such-script");
  EXPECT_EQ(missing.status, 1);
  EXPECT_THAT(missing.err, HasSubstr("no-such-script: cannot be run"));
  EXPECT_EQ(hloom("reduce two.hlo").status, 2);
}

TEST_F(CommandLine, CheckNansNamesTheFirstInstruction) {
  write("root.hlo", "HloModule m\nENTRY e {\n  x = f32[3] constant({1, 4, -4})\n  p = f32[3] parameter(0)\n"
                    "  z = f32[3] constant({0, 0, 0})\n  y = f32[3] multiply(p, z)\n  w = f32[3] add(x, y)\n"
                    "  q = f32[3] sqrt(w)\n  ROOT n = f32[3] negate(q)\n}\n");
  const Outcome bad = hloom("run root.hlo --check-nans --random=1");
  EXPECT_EQ(bad.status, 1);
  EXPECT_THAT(bad.err, ContainsRegex("first NaN or infinity: .*sqrt f32\\[3\\].*element 2 is nan"));
  const Outcome good = hloom("run two.hlo --check-nans --random=1");
  EXPECT_EQ(good.status, 0);
  EXPECT_THAT(good.err, HasSubstr("no instruction makes a NaN"));
  EXPECT_EQ(hloom("run two.hlo --check-nans --interpret").status, 2);
}

TEST_F(CommandLine, BisectPassesSaysThatAllAgree) {
  const Outcome outcome = hloom("check two.hlo --bisect-passes");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("all give the same results"));
}

TEST_F(CommandLine, VersionNamesItsParts) {
  const Outcome version = hloom("--version");
  EXPECT_EQ(version.status, 0);
  EXPECT_THAT(version.out, StartsWith("hloom "));
  EXPECT_THAT(version.out, HasSubstr("LLVM 22"));
  EXPECT_THAT(version.out, HasSubstr("LAPACK: "));
}

TEST_F(CommandLine, WrongWordsHaveStatus2) {
  for (const char* words : {"",
                            "rnu two.hlo",
                            "run",
                            "run two.hlo --no-such-option",
                            "run two.hlo extra",
                            "run two.hlo --threads 0",
                            "run two.hlo --threads many",
                            "run two.hlo --rtol -1",
                            "run two.hlo --random=x",
                            "run two.hlo --random=-1",
                            "show two.hlo",
                            "show two.hlo --stage=nothing",
                            "opt two.hlo",
                            "opt --passes=remove-dead",
                            "opt two.hlo --passes=no-such-pass",
                            "bench two.hlo --scale huge",
                            "run two.hlo --interpret --profile",
                            "run two.hlo --interpret --perf",
                            "run two.hlo --interpret --cpu=haswell",
                            "run two.hlo --interpret --require-in-place",
                            "run two.hlo --interpret --memory-limit=1G",
                            "run two.hlo --memory-limit=much",
                            "compile two.hlo"}) {
    const Outcome outcome = hloom(words);
    EXPECT_EQ(outcome.status, 2) << words;
    EXPECT_THAT(outcome.out, IsEmpty()) << words;
    EXPECT_THAT(outcome.err, Not(IsEmpty())) << words;
  }
}

TEST_F(CommandLine, WrongFilesHaveStatus1AndAreNamed) {
  std::filesystem::create_directory(folder_ + "/empty");
  for (const char* name : {"none.hlo", "empty"}) {
    const Outcome outcome = hloom(std::string("run ") + name);
    EXPECT_EQ(outcome.status, 1);
    EXPECT_THAT(outcome.err, StartsWith(std::string("hloom: ") + name + ": "));
  }
  EXPECT_EQ(hloom("run two.hlo --inputs none.npz").status, 1);
  EXPECT_EQ(hloom("run two.hlo --inputs two.hlo").status, 1);
  EXPECT_EQ(hloom("run two.hlo --random --output no/such/folder.npz").status, 1);
  EXPECT_EQ(hloom("run two.hlo --random --dump=two.hlo/stages").status, 1);
}

TEST_F(CommandLine, WrongProgramsAreToldWithTheirPlace) {
  write("wrong.hlo", "HloModule m\nENTRY e {\n  a = f32[4] parameter(0)\n  ROOT b = f32[5] negate(a)\n}\n");
  for (const std::string command :
       {"run", "run --interpret", "bench", "check", "opt --passes=standard", "show --stage=asm"}) {
    const Outcome outcome = hloom(command + " wrong.hlo");
    EXPECT_EQ(outcome.status, 1) << command;
    EXPECT_THAT(outcome.err, StartsWith("hloom: wrong.hlo:4:")) << command;
    EXPECT_THAT(outcome.err, HasSubstr("^")) << command;
  }
}

TEST_F(CommandLine, ForeignFormsAreToldByName) {
  write("bytecode", "ML\xEFR and so on");
  EXPECT_THAT(hloom("run bytecode").err, HasSubstr("MLIR"));
  write("empty.hlo", "");
  EXPECT_EQ(hloom("run empty.hlo").status, 1);
}

TEST_F(CommandLine, CompiledAndInterpretedGiveTheSameText) {
  const Outcome compiled = hloom("run two.hlo --random=3"), interpreted = hloom("run two.hlo --random=3 --interpret");
  EXPECT_EQ(compiled.status, 0) << compiled.err;
  EXPECT_THAT(compiled.out, StartsWith("out0 = f32[4] {"));
  EXPECT_THAT(compiled.out, HasSubstr("\nout1 = f32[4] {"));
  EXPECT_EQ(compiled.out, interpreted.out);
  EXPECT_THAT(compiled.err, IsEmpty());
  EXPECT_NE(compiled.out, hloom("run two.hlo --random=4").out);
  EXPECT_EQ(compiled.out, hloom("run --threads 1 --random=3 two.hlo").out);
  EXPECT_EQ(hloom("run --random two.hlo").out, hloom("run two.hlo --random=0").out);
}

TEST_F(CommandLine, SaysThatItMadeUpInputs) {
  const Outcome outcome = hloom("run two.hlo");
  EXPECT_EQ(outcome.out, hloom("run two.hlo --random").out);
  EXPECT_THAT(outcome.err, HasSubstr("made up 2 of 2 arguments, as --random=0 does"));
}

TEST_F(CommandLine, ReadsStandardInput) {
  const Outcome outcome = shell("hloom run - --random <two.hlo");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.out, hloom("run two.hlo --random").out);
  EXPECT_THAT(shell("echo nonsense | hloom run -").err, StartsWith("hloom: <stdin>:1:"));
}

TEST_F(CommandLine, FilesGoRound) {
  ASSERT_EQ(hloom("run two.hlo --random --output out.npz").status, 0);
  EXPECT_EQ(hloom("run two.hlo --random --expect out.npz").status, 0);
  EXPECT_EQ(hloom("run two.hlo --random --interpret --expect out.npz").status, 0);
  const Outcome other = hloom("run two.hlo --random=1 --expect out.npz");
  EXPECT_EQ(other.status, 1);
  EXPECT_THAT(other.err, ContainsRegex("two.hlo: result 0.* differ.* instead of "));
  EXPECT_EQ(hloom("run two.hlo --random=1 --expect out.npz --atol 9").status, 0);

  write("sum.hlo", "HloModule sum\nENTRY e {\n  a = f32[4] parameter(0)\n  ROOT b = f32[4] add(a, a)\n}\n");
  ASSERT_EQ(hloom("run sum.hlo --random --output a.npy").status, 0);
  EXPECT_EQ(hloom("run sum.hlo --inputs a.npy --output b.npy").status, 0);
  EXPECT_EQ(hloom("run two.hlo --random --output two.npy").status, 1);  // two results
  const Outcome partly = hloom("run two.hlo --inputs a.npy");
  EXPECT_THAT(partly.err, HasSubstr("made up 1 of 2 arguments"));
  const Outcome unknown = hloom("run sum.hlo --inputs out.npz");
  EXPECT_EQ(unknown.status, 1);
  EXPECT_THAT(unknown.err, HasSubstr("out.npz: has an array out0"));
}

TEST_F(CommandLine, UnknownCustomCallsAreRefusedByName) {
  write("call.hlo",
        "HloModule m\nENTRY e {\n  a = f32[2] parameter(0)\n"
        "  ROOT b = f32[2] custom-call(a), custom_call_target=\"strange\"\n}\n");
  for (const std::string way : {"", " --interpret"}) {
    const Outcome outcome = hloom("run call.hlo --random" + way);
    EXPECT_EQ(outcome.status, 1);
    EXPECT_THAT(outcome.err, HasSubstr("strange"));
  }
}

TEST_F(CommandLine, TokensHaveNoArrays) {
  write("token.hlo",
        "HloModule m\nENTRY e {\n  t = token[] parameter(0)\n  a = s4[3] parameter(1)\n  b = f32[0,3] parameter(2)\n"
        "  ROOT r = (token[], s4[3], f32[0,3]) tuple(t, a, b)\n}\n");
  for (const std::string way : {"", " --interpret"}) {
    const Outcome outcome = hloom("run token.hlo --random --output out.npz" + way);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(hloom("run token.hlo --random --expect out.npz" + way).status, 0);
    EXPECT_THAT(hloom("run token.hlo --random" + way).out, StartsWith("out0 = token[] \nout1 = s4[3] {"));
  }
}

TEST_F(CommandLine, RunsAFolder) {
  const std::string folder = HLOOM_SOURCE_DIR "/tests/programs/r35-kmeans";
  const Outcome outcome = hloom("run '" + folder + "'");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("as expected"));
  EXPECT_THAT(outcome.out, IsEmpty());
  EXPECT_EQ(hloom("run '" + folder + "' --rtol 0 --atol 1e-30").status, 1);
}

constexpr const char* kRing = R"(HloModule ring, num_partitions=2

ENTRY e {
  a = f32[2] parameter(0)
  ROOT b = f32[2] collective-permute(a), channel_id=1, source_target_pairs={{0,1},{1,0}}
}
)";

TEST_F(CommandLine, RunsSeveralDevices) {
  write("ring.hlo", kRing);
  write("identity.hlo", "HloModule identity\nENTRY e {\n  ROOT a = f32[2] parameter(0)\n}\n");
  ASSERT_EQ(hloom("run identity.hlo --random=1 --output in.dev0.npy").status, 0);
  ASSERT_EQ(hloom("run identity.hlo --random=2 --output in.dev1.npy").status, 0);
  for (const std::string how : {"", "--interpret ", "--threads=1 --profile "}) {
    const Outcome outcome = hloom("run ring.hlo " + how + "--inputs in.npy --output got.npy");
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(read("got.dev0.npy"), read("in.dev1.npy"));
    EXPECT_EQ(read("got.dev1.npy"), read("in.dev0.npy"));
    const Outcome wrong = hloom("run ring.hlo " + how + "--inputs in.npy --expect in.npy");
    EXPECT_EQ(wrong.status, 1);
    EXPECT_THAT(wrong.err, HasSubstr("device 0: result 0"));
    EXPECT_THAT(wrong.err, HasSubstr("device 1: result 0"));
  }
  const Outcome bench = hloom("bench ring.hlo --inputs in.npy --seconds=0 --json");
  EXPECT_EQ(bench.status, 0) << bench.err;
}

// Adds up what infeeds give; feeds the sum back.
constexpr const char* kFed = R"(HloModule fed

ENTRY e {
  t = token[] after-all()
  i = (bf16[2], token[]) infeed(t)
  x = bf16[2] get-tuple-element(i), index=0
  u = token[] get-tuple-element(i), index=1
  j = (bf16[2], token[]) infeed(u)
  y = bf16[2] get-tuple-element(j), index=0
  v = token[] get-tuple-element(j), index=1
  s = bf16[2] add(x, y)
  o = token[] outfeed(s, v), outfeed_shape=bf16[2]
  c = (bf16[2], u32[], token[]) send(x, o), channel_id=4, is_host_transfer=true
  d = token[] send-done(c), channel_id=4, is_host_transfer=true
  ROOT r = () tuple()
}
)";

TEST_F(CommandLine, FilesServeAsTheHost) {
  write("fed.hlo", kFed);
  const auto array = [](std::uint16_t a, std::uint16_t b) {
    arrays::Array bits{DType::U16, {2}, std::vector<std::byte>(4)};
    std::memcpy(bits.bytes.data(), &a, 2);
    std::memcpy(bits.bytes.data() + 2, &b, 2);
    return bits;
  };
  arrays::Npz in, want;
  in.add("infeed0", array(0x3f80, 0x4000));  // 1, 2
  in.add("infeed1", array(0x4040, 0x4080));  // 3, 4
  want.add("outfeed0", array(0x4080, 0x40c0));
  want.add("send4_0", array(0x3f80, 0x4000));
  ASSERT_TRUE(arrays::write_npz(path("in.npz"), in));
  for (const std::string how : {"", " --interpret"}) {
    const Outcome outcome = hloom("run fed.hlo --host-in in.npz --host-out out.npz" + how);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    const auto got = arrays::read_npz(path("out.npz"));
    ASSERT_TRUE(got);
    EXPECT_EQ(got->names().size(), 2u);
    for (const std::string& name : want.names()) {
      ASSERT_TRUE(got->contains(name));
      EXPECT_EQ(*got->find(name), *want.find(name));
    }
    EXPECT_THAT(hloom("run fed.hlo" + how).err, HasSubstr("i: takes from the host's infeed: the queue is closed"));
  }
  EXPECT_THAT(hloom("check fed.hlo --host-in in.npz").out + hloom("check fed.hlo --host-in in.npz").err, HasSubstr("all agree"));
  EXPECT_THAT(hloom("check fed.hlo").err, HasSubstr("i: takes from the host's infeed: the queue is closed"));
  EXPECT_EQ(hloom("run fed.hlo --check-nans --host-in in.npz").status, 0);
  in.add("infeed2", array(0, 0));
  ASSERT_TRUE(arrays::write_npz(path("more.npz"), in));
  EXPECT_THAT(hloom("run fed.hlo --host-in more.npz").err, HasSubstr("left 1 values of infeed"));
  in.add("infeed9", array(0, 0));
  ASSERT_TRUE(arrays::write_npz(path("wrong.npz"), in));
  EXPECT_THAT(hloom("run fed.hlo --host-in wrong.npz").err, HasSubstr("nothing takes the array infeed9"));
}

TEST_F(CommandLine, WordsSayHowManyDevicesThereAre) {
  write("number.hlo", "HloModule n\nENTRY e { ROOT r = u32[] replica-id() }\n");
  EXPECT_EQ(hloom("run number.hlo").out, "out0 = u32[] 0\n");
  EXPECT_EQ(hloom("run number.hlo --replicas=3").out, "dev0.out0 = u32[] 0\ndev1.out0 = u32[] 1\ndev2.out0 = u32[] 2\n");
  EXPECT_EQ(hloom("run number.hlo --replicas=0").status, 2);
}

TEST_F(CommandLine, TakesOneOfSeveralModules) {
  write("three.hlo", std::string(kProgram) + "// -----\nHloModule second\nENTRY e { ROOT c = s32[] constant(2) }\n" +
                         "// -----\nHloModule third\nENTRY e { ROOT c = s32[] constant(3) }\n");
  EXPECT_THAT(hloom("run three.hlo --module=second").out, StartsWith("out0 = s32[] 2"));
  EXPECT_THAT(hloom("run three.hlo --module=2").out, StartsWith("out0 = s32[] 3"));
  EXPECT_THAT(hloom("run three.hlo").err, HasSubstr("--module"));
  EXPECT_EQ(hloom("run three.hlo --module=fourth").status, 1);
}

TEST_F(CommandLine, FillsElidedConstantsWhenAsked) {
  write("elided.hlo", "HloModule m\nENTRY e { ROOT c = f32[3] constant({...}) }\n");
  EXPECT_THAT(hloom("run elided.hlo").err, HasSubstr("elided.hlo:2:"));
  EXPECT_EQ(hloom("run elided.hlo --fill-elided").status, 0);
}

// A parameter that is not donated has to be copied before a window of it is written.
constexpr const char* kCopied = R"(HloModule copied

ENTRY e {
  x = f32[100] parameter(0)
  u = f32[4] parameter(1)
  i = s32[] parameter(2)
  ROOT written = f32[100] dynamic-update-slice(x, u, i), metadata={source_file="step.py" source_line=7}
}
)";

TEST_F(CommandLine, RefusesCopiesAndMemoryThatMustNotBe) {
  write("copied.hlo", kCopied);
  write("counted.hlo",
        "HloModule m, input_output_alias={ {}: (0, {}, may-alias) }\n"
        "body { q = (s32[], f32[100]) parameter(0) i = s32[] get-tuple-element(q), index=0 x = f32[100] get-tuple-element(q), index=1\n"
        "o = s32[] constant(1) j = s32[] add(i, o) u = f32[1] constant({7}) y = f32[100] dynamic-update-slice(x, u, i)\n"
        "ROOT t = (s32[], f32[100]) tuple(j, y) }\n"
        "cond { q = (s32[], f32[100]) parameter(0) i = s32[] get-tuple-element(q), index=0 n = s32[] constant(9)\n"
        "ROOT c = pred[] compare(i, n), direction=LT }\n"
        "ENTRY e { x = f32[100] parameter(0) z = s32[] constant(0) t = (s32[], f32[100]) tuple(z, x)\n"
        "w = (s32[], f32[100]) while(t), condition=cond, body=body ROOT r = f32[100] get-tuple-element(w), index=1 }\n");
  for (const std::string command : {"run", "bench --seconds 0"}) {
    const Outcome copied = hloom(command + " copied.hlo --random --require-in-place");
    EXPECT_EQ(copied.status, 1);
    EXPECT_THAT(copied.err, ContainsRegex("written.*400 bytes, because parameter x is not donated"));
    EXPECT_EQ(hloom(command + " two.hlo --random --require-in-place").status, 0);
    EXPECT_EQ(hloom(command + " counted.hlo --random --require-in-place").status, 0) << "a counter starts as a constant";
    const Outcome unknown = hloom(command + " copied.hlo --random --require-in-place=a,b");
    EXPECT_EQ(unknown.status, 1);
    EXPECT_THAT(unknown.err, HasSubstr("name: a"));
    EXPECT_THAT(hloom(command + " two.hlo --random --memory-limit=63").err,
                HasSubstr("takes 64 bytes, the limit is 63"));
    EXPECT_EQ(hloom(command + " two.hlo --random --memory-limit=64").status, 0);
    EXPECT_EQ(hloom(command + " two.hlo --random --memory-limit=1MB").status, 0);
  }
}

TEST_F(CommandLine, ABudgetIsWrittenAndKept) {
  write("copied.hlo", kCopied);
  EXPECT_EQ(hloom("show copied.hlo --stage=memory --write-budget=copied.budget").status, 0);
  for (const std::string command : {"run --random", "bench --seconds 0", "show --stage=memory"})
    EXPECT_EQ(hloom(command + " copied.hlo --budget=copied.budget").status, 0) << command;
  write("less.budget", "{\"peak_bytes\": 100}");
  EXPECT_THAT(hloom("run copied.hlo --random --budget=less.budget").err, HasSubstr("the budget has 100"));
  write("none.budget", "{\"temp_bytes\": 0, \"in_place\": [\"written_fusion\"]}");
  EXPECT_THAT(hloom("run copied.hlo --random --budget=none.budget").err, HasSubstr("written_fusion: "));
  for (const std::string bad : {"[]", "{\"peak\": 1}", "{\"peak_bytes\": -1}", "{\"in_place\": 1}", "{\"in_place\": [1]}", "{"}) {
    write("bad.budget", bad);
    const Outcome outcome = hloom("run copied.hlo --random --budget=bad.budget");
    EXPECT_EQ(outcome.status, 1) << bad;
    EXPECT_THAT(outcome.err, HasSubstr("bad.budget: ")) << bad;
  }
}

TEST_F(CommandLine, SaysWhatChangedInMemory) {
  write("copied.hlo", kCopied);
  std::string donated = kCopied;
  donated.replace(donated.find("copied\n"), 6, "copied, input_output_alias={ {}: (0, {}, may-alias) }");
  write("donated.hlo", donated);
  write("before.json", hloom("show copied.hlo --stage=memory --format=json").out);
  EXPECT_EQ(hloom("show copied.hlo --stage=memory --against=before.json").out, "no change\n");
  EXPECT_THAT(hloom("show donated.hlo --stage=memory --against=before.json").out,
              HasSubstr("written_fusion: window update of leaf 0: now in place"));
  write("after.json", hloom("show donated.hlo --stage=memory --format=json").out);
  EXPECT_THAT(hloom("show copied.hlo --stage=memory --against=after.json").out,
              HasSubstr("written_fusion: window update of leaf 0: now copied, because parameter x is not donated"));
  for (const std::string bad : {"", "{}", "{\"peak\": {\"owners\": [1]}, \"updates\": []}", "[1, 2]"}) {
    write("bad.json", bad);
    EXPECT_EQ(hloom("show copied.hlo --stage=memory --against=bad.json").status, 1) << bad;
  }
  EXPECT_EQ(hloom("show copied.hlo --stage=hlo --against=before.json").status, 2);
}

TEST_F(CommandLine, ShowsMemoryAsAPage) {
  write("copied.hlo", kCopied);
  const Outcome page = hloom("show copied.hlo --stage=memory --format=html");
  EXPECT_EQ(page.status, 0) << page.err;
  EXPECT_THAT(page.out, StartsWith("<!doctype html>"));
  EXPECT_THAT(page.out, HasSubstr("\"source\":\"step.py:7\""));
  EXPECT_THAT(page.out, Not(ContainsRegex("(src|href)="))) << "it needs nothing else";
  EXPECT_EQ(hloom("show two.hlo --stage=buffers --format=html").status, 2);
}

TEST_F(CommandLine, PerfGetsTheNamesOfKernels) {
  for (const std::string command : {"run", "bench --seconds 0"}) {
    const Outcome outcome = shell(HLOOM_PROGRAM " " + command +
                                  " two.hlo --random --perf & wait $!; status=$?; "
                                  "cat /tmp/perf-$!.map && rm /tmp/perf-$!.map; (exit $status)");
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_THAT(outcome.out, ContainsRegex("[0-9a-f]+ [0-9a-f]+ [a-z]+"));
  }
}

TEST_F(CommandLine, DumpsEachStage) {
  const Outcome outcome = hloom("run two.hlo --random --dump=stages --time --profile");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("pass "));
  EXPECT_THAT(outcome.err, HasSubstr("kernel "));
  EXPECT_TRUE(exists("stages/00-parsed.hlo"));
  int kernels = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder_ + "/stages")) {
    const std::string path = file.path().string();
    if (path.ends_with(".hlo")) {
      EXPECT_EQ(hloom("opt --passes=remove-dead '" + path + "'").status, 0) << path;
    }
    if (path.ends_with(".ll")) {
      EXPECT_EQ(hloom("show --stage=llvm '" + path + "'").out, contents(path));
      EXPECT_EQ(hloom("show --stage=asm '" + path + "'").out, contents(path.substr(0, path.size() - 2) + "s"));
      EXPECT_THAT(hloom("show --stage=memory '" + path + "'").err, HasSubstr("LLVM IR has no stage memory"));
      for (const char* command : {"run", "bench", "check", "opt --passes=cse", "reduce --script=true"})
        EXPECT_THAT(hloom(command + (" '" + path + "'")).err, HasSubstr("is LLVM IR; `hloom show` takes it")) << command;
    }
    if (!path.ends_with(".kernel")) continue;
    ++kernels;
    EXPECT_EQ(hloom("check '" + path + "'").status, 0) << path;
    EXPECT_EQ(hloom("show --stage=kernels '" + path + "'").out, contents(path));
    EXPECT_THAT(hloom("show --stage=llvm '" + path + "'").out, HasSubstr("define"));
    EXPECT_THAT(hloom("show --stage=asm '" + path + "'").out, HasSubstr("ret"));
    EXPECT_EQ(hloom("show --stage=hlo '" + path + "'").status, 1);
    EXPECT_EQ(hloom("run '" + path + "'").status, 1);
  }
  EXPECT_GE(kernels, 1);
}

TEST_F(CommandLine, ShowsEachStage) {
  for (const std::string stage : {"hlo", "fusions", "buffers", "memory", "kernels", "program", "llvm", "asm"}) {
    const Outcome outcome = hloom("show two.hlo --stage=" + stage);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_THAT(outcome.out, Not(IsEmpty())) << stage;
    EXPECT_THAT(outcome.err, IsEmpty()) << stage;
  }
  EXPECT_THAT(hloom("show two.hlo --stage=memory --format=json").out, HasSubstr("\"arena_bytes\": 0"));
  EXPECT_THAT(hloom("show two.hlo --stage=buffers --format=json").out, HasSubstr("\"allocations\": ["));
  EXPECT_EQ(hloom("show two.hlo --stage=asm --format=json").status, 2);
  EXPECT_THAT(hloom("show two.hlo --stage=asm --format=dot").err, HasSubstr("there is no dot for asm"));
  for (const std::string stage : {"hlo", "fusions"})
    EXPECT_THAT(hloom("show two.hlo --format=dot --stage=" + stage).out, StartsWith("digraph \"two\" {"));
}

TEST_F(CommandLine, MakesCodeForOtherProcessors) {
  if (hloom("show two.hlo --stage=asm --cpu=haswell").status != 0) GTEST_SKIP() << "names of x86 processors";
  EXPECT_THAT(hloom("show two.hlo --stage=llvm --cpu=haswell").out, HasSubstr("\"target-cpu\"=\"haswell\""));
  EXPECT_EQ(hloom("run two.hlo --random=1 --cpu=x86-64").out, hloom("run two.hlo --random=1").out);
  EXPECT_EQ(hloom("bench two.hlo --random=1 --cpu=x86-64 --seconds 0").status, 0);
  EXPECT_EQ(hloom("check two.hlo --random=1 --cpu=x86-64").status, 0);
  EXPECT_THAT(hloom("run two.hlo --cpu=pentium-9").err, HasSubstr("no processor is called 'pentium-9'"));
}

TEST_F(CommandLine, KeepsCodeInAFolder) {
  const std::string cold = "\"cached_kernels\":0,", warm = "\"cached_kernels\":1,", bench = "bench two.hlo --seconds 0 --json";
  EXPECT_THAT(hloom(bench + " --cache=made/cache").out, HasSubstr(cold));
  EXPECT_THAT(hloom(bench + " --cache=made/cache").out, HasSubstr(warm));
  EXPECT_THAT(shell("HLOOM_CACHE=made/cache hloom " + bench).out, HasSubstr(warm));
  EXPECT_THAT(hloom(bench + " --cache=other").out, HasSubstr(cold));
  EXPECT_THAT(hloom(bench).out, HasSubstr(cold)) << "nothing is kept unasked";
  EXPECT_THAT(shell("XDG_CACHE_HOME=$PWD/home hloom " + bench + " --cache").out, HasSubstr(cold));
  EXPECT_THAT(shell("XDG_CACHE_HOME=$PWD/home hloom " + bench + " --cache").out, HasSubstr(warm));
  EXPECT_TRUE(exists("home/hloom"));
  EXPECT_EQ(hloom("run two.hlo --random=1 --cache=other").out, hloom("run two.hlo --random=1").out);
  EXPECT_EQ(hloom("check two.hlo --random=1 --cache=other").status, 0);
  EXPECT_THAT(hloom("run two.hlo --random --cache=other --time").err, HasSubstr("code: 1 kernel, 1 of them from the cache"));
  EXPECT_THAT(hloom(bench + " --cache=other --cpu=x86-64").out, HasSubstr(cold)) << "which is other code";

  for (const auto& file : std::filesystem::directory_iterator(folder_ + "/other"))
    std::filesystem::resize_file(file.path(), 100);
  EXPECT_THAT(hloom("run two.hlo --random --cache=other --time").err,
              ContainsRegex("1 kernel, 0 of them from the cache\ncache: other/.*: is damaged"));
  EXPECT_THAT(hloom(bench + " --cache=other").out, HasSubstr(warm));
}

// Also where the code is tuned: a Skylake shuns gathers, with AVX-512 it prefers narrower vectors.
TEST_F(CommandLine, TheNextProcessMakesNoCode) {
  write("three.hlo", R"(HloModule three
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b) }
ENTRY e {
  x = f32[512,512] parameter(0)
  i = s32[64] parameter(1)
  zero = f32[] constant(0)
  d = f32[512,512] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  s = f32[512] reduce(d, zero), dimensions={1}, to_apply=add
  ROOT g = f32[64] gather(s, i), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1}
})");
  const auto kernels = [](const std::string& messages) {
    const std::size_t at = messages.find("code: ");
    return at == std::string::npos ? "" : messages.substr(at + 6, messages.find(' ', at + 6) - at - 6);
  };
  int tried = 0;
  for (const std::string cpu : {"", "x86-64", "skylake", "skylake-avx512"}) {
    const std::string words = "run three.hlo --random=1 --time --cache=kept" + (cpu.empty() ? "" : " --cpu=" + cpu);
    const Outcome first = hloom(words), next = hloom(words);
    if (first.status != 0 && !cpu.empty()) continue;  // not this machine's
    ++tried;
    const std::string all = kernels(first.err);
    EXPECT_GT(all, "1") << cpu;
    EXPECT_THAT(first.err, HasSubstr("code: " + all + " kernels, 0 of them from the cache")) << cpu;
    EXPECT_THAT(next.err, HasSubstr("code: " + all + " kernels, " + all + " of them from the cache")) << cpu;
    EXPECT_EQ(next.out, first.out) << cpu;
  }
  EXPECT_GE(tried, 1);
}

TEST_F(CommandLine, CacheFoldersThatCannotBeUsed) {
  std::filesystem::create_directory_symlink(folder_, folder_ + "/link");
  for (const std::string where : {"/proc/hloom", "two.hlo", "link"}) {
    const Outcome named = hloom("run two.hlo --random --cache=" + where);
    EXPECT_EQ(named.status, 1) << where;
    EXPECT_THAT(named.err, HasSubstr("hloom: " + where + ": ")) << "it is named";
    EXPECT_EQ(shell("HLOOM_CACHE=" + where + " hloom run two.hlo --random --interpret").status, 0);
  }
  for (const std::string home : {"/proc/hloom", "$PWD/two.hlo"}) {
    const Outcome own = shell("XDG_CACHE_HOME=" + home + " hloom run two.hlo --random --cache");
    EXPECT_EQ(own.status, 0);
    EXPECT_THAT(own.err, IsEmpty());
  }
  EXPECT_EQ(shell("env -u HOME -u XDG_CACHE_HOME " HLOOM_PROGRAM " run two.hlo --random --cache").status, 0);
}

TEST_F(CommandLine, OptimizedTextRunsAlike) {
  const Outcome outcome = shell("hloom opt two.hlo --passes=remove-dead,standard | hloom run - --random");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.out, hloom("run two.hlo --random").out);
  EXPECT_THAT(hloom("opt --list").out, HasSubstr("\nremove-dead: "));
}

TEST_F(CommandLine, ChecksAgainstTheInterpreter) {
  const Outcome outcome = hloom("check two.hlo --random");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("2 instructions, 2 checks: all agree"));
}

TEST_F(CommandLine, BenchPrintsFigures) {
  const Outcome text = hloom("bench two.hlo --seconds 0 --threads 1");
  EXPECT_EQ(text.status, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("bandwidth"));
  const Outcome json = hloom("bench two.hlo --seconds 0 --random --json");
  EXPECT_EQ(json.status, 0) << json.err;
  for (const char* name : {"compile_s", "kernels", "cached_kernels", "run_s_min", "run_s_median", "call_runs", "temp_bytes", "scratch_bytes",
                           "peak_rss_bytes", "page_faults"})
    EXPECT_THAT(json.out, HasSubstr(std::string("\"") + name + "\":"));
}

TEST_F(CommandLine, AClosedPipeEndsItQuietly) {
  const Outcome outcome = shell("{ hloom show two.hlo --stage=asm; echo $? >&2; } | true");
  EXPECT_THAT(outcome.err, testing::AnyOf("0\n", "1\n"));  // 0 where all was written before the reader went
}

constexpr const char* kEndless = R"(HloModule endless

goes_on {
  p = s32[] parameter(0)
  ROOT yes = pred[] constant(true)
}

same {
  ROOT p = s32[] parameter(0)
}

ENTRY e {
  zero = s32[] constant(0)
  ROOT loop = s32[] while(zero), condition=goes_on, body=same
}
)";

TEST_F(CommandLine, AnInterruptIsToldAndEndsIt) {
  write("endless.hlo", kEndless);
  const Outcome outcome = shell("timeout --preserve-status -s INT 1 " HLOOM_PROGRAM " run --interpret endless.hlo");
  EXPECT_EQ(outcome.status, 130);
  EXPECT_THAT(outcome.err, HasSubstr("hloom: interrupted"));
}

TEST_F(CommandLine, AFullDiskIsTold) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full";
  const Outcome outcome = shell("hloom show two.hlo --stage=hlo >/dev/full");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.err, StartsWith("hloom: standard output: No space left"));
  EXPECT_EQ(shell("hloom run two.hlo --random >&-").status, 1);
}

TEST_F(CommandLine, ArraysLargerThanMemoryAreRefused) {
  write("huge.hlo",
        "HloModule m\nENTRY e {\n  a = f32[1099511627776] parameter(0)\n"
        "  ROOT b = f32[1099511627776] negate(a)\n}\n");
  for (const std::string command : {"run", "run --interpret", "bench", "check"}) {
    const Outcome outcome = hloom(command + " huge.hlo");
    EXPECT_EQ(outcome.status, 1) << command;
    EXPECT_THAT(outcome.err, HasSubstr("memory")) << command;
  }
}

TEST(Source, FormsAreToldByTheirFirstWord) {
  EXPECT_EQ(form_of("// RUN: x\n\n  kernel f() {\n}\n"), Form::Kernel);
  for (const char* text : {"; ModuleID = 'x'\n", "target triple = \"x\"", "source_filename = \"x\"", "define void @f() {", "@x = global i8 0", "!0 = !{}",
                           "\n declare void @f()"})
    EXPECT_EQ(form_of(text), Form::Llvm) << text;
  for (const char* text : {"", "//", "// kernel", "kernel", "define", "kernels = f32[] parameter(0)", "HloModule kernel",
                           "define (a: f32[]) -> f32[] {", "target {", "targets x", "kernel (x: f32[]) -> f32[] {"})
    EXPECT_EQ(form_of(text), Form::Module) << text;
}

TEST(Arguments, DevicesHaveFilesOfTheirOwn) {
  EXPECT_EQ(device_path("a.b/in.npz", 3), "a.b/in.dev3.npz");
  EXPECT_EQ(device_path("in", 0), "in.dev0");
}

TEST(RandomValues, AreSmallAndDependOnSeedAndNumber) {
  for (int t = 1; t <= static_cast<int>(DType::F8E8M0FNU); ++t) {
    const auto type = static_cast<DType>(t);
    if (!is_array_type(type)) continue;
    const Shape shape = Shape::array(type, {1000});
    const hlo::Literal a = random_literal(shape, 1, 2);
    EXPECT_EQ(a, random_literal(shape, 1, 2)) << type;
    if (type != DType::S1) {  // whose only value that is not negative is 0
      EXPECT_FALSE(a == random_literal(shape, 1, 3)) << type;
      EXPECT_FALSE(a == random_literal(shape, 2, 2)) << type;
    }
    for (std::int64_t i = 0; i < 1000; ++i) {
      const double x = element_as_double(a, i);
      if (type == DType::F8E8M0FNU) {
        EXPECT_TRUE(x > 0 && x <= 1) << x;
      } else if (is_floating(type) || is_complex(type)) {
        EXPECT_TRUE(x >= -1 && x < 1) << type << " " << x;
      } else {
        EXPECT_TRUE(x >= 0 && x < 8) << type << " " << x;
      }
    }
  }
}

}  // namespace
}  // namespace hloom::cli
