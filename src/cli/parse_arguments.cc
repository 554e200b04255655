// The words and their help. The only file that calls CLI11, which throws.
#include <CLI/CLI.hpp>
#include <charconv>

#include "cli/options.h"
#include "cli/version.h"
#include "compiler/show.h"
#include "passes/all.h"

namespace hloom::cli {
namespace {

constexpr const char* kFooter =
    R"(PROGRAM is HLO text, a .kernel that hloom printed, or a folder with program.hlo, inputs.npz, expected.npz and
meta.json; - is standard input. Exit status: 0 good, 1 the input is wrong or values differ, 2 the command line is wrong.
hloom COMMAND --help has examples.)";

constexpr const char* kRunExamples = R"(Examples:
  hloom run step.hlo --inputs in.npz --output out.npz       arrays arg0, arg1, … in, out0, out1, … out
  hloom run step.hlo                                        made-up inputs, results as text
  hloom run step.hlo --inputs in.npz --expect want.npz --rtol 1e-5
  hloom run tests/programs/r35-kmeans                       the folder's own inputs, values and tolerances
  hloom run step.hlo --interpret                            slowly, by the meaning of each instruction
  hloom run step.hlo --random=7 --dump=stages --time        each stage to a file, passes by cost
  python lower.py | hloom run - --random)";

constexpr const char* kBenchExamples = R"(Examples:
  hloom bench step.hlo --inputs in.npz --seconds 5
  hloom bench ../corpus/r05-gpt-decode-step --threads 1     its bench.hlo where there is one
  hloom bench step.hlo --json                               one line of JSON on standard output)";

constexpr const char* kCheckExamples = R"(Examples:
  hloom check step.hlo --inputs in.npz      each instruction, compiled, against the interpreter on the same operands
  hloom check tests/programs/r35-kmeans --scale=check
  hloom check fusion.2.kernel               machine code against the kernel run in plain C++)";

constexpr const char* kOptExamples = R"(Examples:
  hloom opt step.hlo --passes=simplify-algebra,remove-dead
  hloom opt step.hlo --passes=standard | hloom run - --random
  hloom opt --list)";

constexpr const char* kShowExamples = R"(Examples:
  hloom show step.hlo --stage=fusions       what became one kernel, and why the rest did not
  hloom show step.hlo --stage=memory        the peak, and what is updated in place or copied
  hloom show fusion.2.kernel --stage=asm)";

void add_program(CLI::App& app, Options& o, bool required = true) {
  CLI::Option* program = app.add_option("PROGRAM", o.program, "HLO text, .kernel or folder; - is standard input");
  if (required) program->required();
  app.add_option("--module", o.module, "Which of a file's modules: its name, or its number from 0");
  app.add_flag("--fill-elided", o.fill_elided, "Fill constants written {...} with a fixed pattern");
}

void add_scale(CLI::App& app, Options& o) {
  const std::map<std::string, std::optional<bool>> scales{{"check", false}, {"bench", true}};
  app.add_option_function<std::string>(
         "--scale", [&o](const std::string& word) { o.bench_scale = word == "bench"; },
         "Of a folder: check (program.hlo) or bench (bench.hlo)")
      ->check(CLI::IsMember({"check", "bench"}));
}

void add_inputs(CLI::App& app, Options& o) {
  app.add_option("--inputs", o.inputs, ".npz with arg0, arg1, … (leaves of the parameters), or one .npy");
  app.add_flag_function(
      "--random{0}",
      [&o](std::int64_t seed) {
        o.random = true;
        o.random_seed = static_cast<std::uint64_t>(seed);
      },
      "--random[=SEED]: make up parameters that have no array; also done, and said, without it");
}

void add_threads(CLI::App& app, Options& o) {
  app.add_option("--threads", o.threads, "Threads; values do not depend on it. Default: all that the process may use")
      ->check(CLI::Range(1, 4096));
}

void add_run(CLI::App& app, Options& o) {
  CLI::App* run = app.add_subcommand("run", "Run a program once")->footer(kRunExamples);
  run->callback([&o] { o.command = Command::Run; });
  add_program(*run, o);
  add_scale(*run, o);
  add_inputs(*run, o);
  run->add_option("--output", o.output, "Write results as out0, out1, … to this .npz (or one to this .npy)");
  run->add_option("--expect", o.expect, "Compare results with those of this file");
  run->add_option("--rtol", o.rtol, "Relative tolerance; default 0, or the folder's")->check(CLI::NonNegativeNumber);
  run->add_option("--atol", o.atol, "Absolute tolerance; default 0, or the folder's")->check(CLI::NonNegativeNumber);
  run->add_flag("--interpret", o.interpret, "Interpret instead of compiling");
  add_threads(*run, o);
  run->add_option("--replicas", o.replicas, "Default: as the program says")->check(CLI::Range(1, 1024));
  run->add_option("--partitions", o.partitions, "Default: as the program says. Device k reads IN.devK.npz if it exists")
      ->check(CLI::Range(1, 1024));
  run->add_flag("--profile", o.profile, "Time of each kernel, on standard error");
  run->add_flag("--time", o.time, "Time of stages and passes, on standard error");
  run->add_option("--dump", o.dump, "Write each stage to a file in this folder");
}

void add_bench(CLI::App& app, Options& o) {
  CLI::App* bench = app.add_subcommand("bench", "Compile time, run time, bytes")->footer(kBenchExamples);
  bench->callback([&o] { o.command = Command::Bench; });
  add_program(*bench, o);
  add_scale(*bench, o);
  add_inputs(*bench, o);
  bench->add_option("--seconds", o.seconds, "How long to run; default 2")->check(CLI::Range(0.0, 86400.0));
  add_threads(*bench, o);
  bench->add_flag("--json", o.json, "One line of JSON");
}

void add_check(CLI::App& app, Options& o) {
  CLI::App* check =
      app.add_subcommand("check", "Compiled against interpreted, instruction by instruction")->footer(kCheckExamples);
  check->callback([&o] { o.command = Command::Check; });
  add_program(*check, o);
  add_scale(*check, o);
  add_inputs(*check, o);
  add_threads(*check, o);
}

void add_opt(CLI::App& app, Options& o) {
  std::vector<std::string> names{"standard"};
  for (const passes::Pass& pass : passes::all()) names.emplace_back(pass.name);
  CLI::App* opt = app.add_subcommand("opt", "Rewrite a program and print it")->footer(kOptExamples);
  opt->callback([&o, opt] {
    o.command = Command::Opt;
    if (o.list) return;
    if (o.program.empty()) throw CLI::RequiredError("PROGRAM");
    if (o.passes.empty()) throw CLI::RequiredError("--passes");
  });
  add_program(*opt, o, false);
  opt->add_option("--passes", o.passes, "Passes in order, with commas; standard is all that compiling runs")
      ->delimiter(',')
      ->check(CLI::IsMember(names).description(""));
  opt->add_flag("--list", o.list, "The passes, with what each does");
}

void add_show(CLI::App& app, Options& o) {
  std::vector<std::string> names;
  std::string help = "What to show:";
  for (const compiler::Stage& stage : compiler::stages()) {
    names.emplace_back(stage.name);
    help.append("\n").append(stage.name).append(": ").append(stage.help);
  }
  CLI::App* show = app.add_subcommand("show", "Print what a stage of the compiler made")->footer(kShowExamples);
  show->callback([&o] { o.command = Command::Show; });
  add_program(*show, o);
  show->add_option("--stage", o.stage, help)->required()->check(CLI::IsMember(names).description(""));
  show->add_option("--format", o.format, "text (default), or json for buffers and memory")
      ->check(CLI::IsMember({"text", "json"}).description(""));
}

}  // namespace

Parsed parse_arguments(int argc, const char* const* argv) {
  Parsed parsed;
  try {
    CLI::App app("hloom compiles and runs HLO programs on CPUs, and shows what it does to memory.", "hloom");
    app.footer(kFooter);
    app.set_version_flag("--version", version_text());
    app.require_subcommand(1);
    add_run(app, parsed.options);
    add_bench(app, parsed.options);
    add_check(app, parsed.options);
    add_opt(app, parsed.options);
    add_show(app, parsed.options);
    try {
      app.parse(argc, argv);
    } catch (const CLI::ParseError& e) {
      // Help and version, which are good, come this way too.
      parsed.exit = app.exit(e) == 0 ? kGood : kWrongWords;
    }
  } catch (const std::exception& e) {
    std::fprintf(stderr, "hloom: %s\n", e.what());
    parsed.exit = kWrongWords;
  }
  return parsed;
}

}  // namespace hloom::cli
