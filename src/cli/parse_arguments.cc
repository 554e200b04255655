// The words and their help. The only file that calls CLI11, which throws.
#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdio>

#include "cli/options.h"
#include "cli/version.h"
#include "compiler/show.h"
#include "passes/all.h"

namespace hloom::cli {
namespace {

constexpr const char* kFooter =
    R"(PROGRAM is HLO text, a .kernel or .ll that hloom printed, or a folder with program.hlo, inputs.npz, expected.npz and
meta.json; - is standard input. Exit status: 0 good, 1 the input is wrong or values differ, 2 the command line is wrong.
hloom COMMAND --help has examples.)";

constexpr const char* kRunExamples = R"(Examples:
  hloom run step.hlo --inputs in.npz --output out.npz       arrays arg0, arg1, … in, out0, out1, … out
  hloom run step.hlo                                        made-up inputs, results as text
  hloom run step.hlo --inputs in.npz --expect want.npz --rtol 1e-5
  hloom run tests/programs/r35-kmeans                       the folder's own inputs, values and tolerances
  hloom run step.hlo --interpret                            slowly, by the meaning of each instruction
  hloom run step.hlo --random=7 --dump=stages --time        each stage to a file, passes by cost
  hloom run step.hlo --require-in-place --memory-limit=2GB  or refused, with the reason and the owners
  python lower.py | hloom run - --random)";

constexpr const char* kBenchExamples = R"(Examples:
  hloom bench step.hlo --inputs in.npz --seconds 5
  hloom bench ../corpus/r05-gpt-decode-step --threads 1     its bench.hlo where there is one
  hloom bench step.hlo --json                               one line of JSON on standard output)";

constexpr const char* kCheckExamples = R"(Examples:
  hloom check step.hlo --inputs in.npz      each instruction, compiled, against the interpreter on the same operands
  hloom check tests/programs/r35-kmeans --scale=check
  hloom check step.hlo --bisect-passes      which pass is at fault
  hloom check fusion.2.kernel               machine code against the kernel run in plain C++)";

constexpr const char* kOptExamples = R"(Examples:
  hloom opt step.hlo --passes=simplify-algebra,remove-dead
  hloom opt step.hlo --passes=standard | hloom run - --random
  hloom opt --list)";

constexpr const char* kShowExamples = R"(Examples:
  hloom show step.hlo --stage=fusions       what became one kernel, and why the rest did not
  hloom show step.hlo --stage=memory        the peak, and what is updated in place or copied
  hloom show step.hlo --stage=memory --format=html >memory.html     the same to look at in a browser
  hloom show step.hlo --stage=memory --write-budget=step.budget     then run, bench or show --budget=step.budget
  hloom show step.hlo --stage=memory --against=before.json          who owns the peak now, and what became a copy
  hloom show step.hlo --stage=fusions --format=dot | dot -Tsvg >fusions.svg
  hloom show fusion.2.kernel --stage=asm    also of fusion.2.ll)";

constexpr const char* kReduceExamples = R"(The script gets the path of a program as its last word; status 0 says that the fault is still there. Examples:
  hloom reduce step.hlo --script='! hloom check' > small.hlo
  hloom reduce step.hlo --script=./still-wrong.sh --output small.hlo)";

std::optional<std::uint64_t> seed_of(const std::string& word) {
  std::uint64_t seed = 0;
  const char* end = word.data() + word.size();
  const auto [rest, error] = std::from_chars(word.data(), end, seed);
  if (error != std::errc() || rest != end) return std::nullopt;
  return seed;
}

// Without the default value that CLI11 wants in a flag's name.
class Help : public CLI::Formatter {
  std::string make_option_name(const CLI::Option* option, bool positional) const override {
    std::string name = CLI::Formatter::make_option_name(option, positional);
    return name.substr(0, name.find('{'));
  }
};

void add_program(CLI::App& app, Options& o, bool required = true) {
  CLI::Option* program = app.add_option("PROGRAM", o.program, "HLO text, .kernel, .ll or folder; - is standard input");
  program->required(required)->option_text(" ");
  app.add_option("--module", o.module, "Which of a file's modules: its name, or its number from 0")
      ->option_text("NAME|N");
  app.add_flag("--fill-elided", o.fill_elided, "Fill constants written {...} with a fixed pattern");
}

void add_scale(CLI::App& app, Options& o) {
  app.add_option_function<std::string>(
         "--scale", [&o](const std::string& word) { o.bench_scale = word == "bench"; },
         "Of a folder: check (program.hlo) or bench (bench.hlo)")
      ->option_text("check|bench")
      ->check(CLI::IsMember({"check", "bench"}));
}

void add_inputs(CLI::App& app, Options& o) {
  app.add_option("--inputs", o.inputs, ".npz with arg0, arg1, … (leaves of the parameters), or one .npy")
      ->option_text("FILE");
  // A string, for CLI11 reads numbers of flags as yes or no.
  app.add_flag("--random{0}", o.random, "Make up parameters that have no array; also done, and said, without it")
      ->option_text("[=SEED]")
      ->check([](const std::string& seed) { return seed_of(seed) ? "" : seed + " is no number from 0 to 2^64 - 1"; });
}

void add_threads(CLI::App& app, Options& o) {
  app.add_option("--threads", o.threads, "Threads; values do not depend on it. Default: all that the process may use")
      ->option_text("N")
      ->check(CLI::Range(1, 4096));
}

void add_cache(CLI::App& app, Options& o) {
  app.add_flag("--cache{*}", o.cache,
               "Keep machine code in this folder for later; without one in $XDG_CACHE_HOME/hloom or ~/.cache/hloom")
      ->option_text("[=DIR]")
      ->envname("HLOOM_CACHE");
}

void add_cpu(CLI::App& app, Options& o) {
  app.add_option("--cpu", o.cpu, "Make code for this processor, as LLVM names it (haswell). Default: this machine's")
      ->option_text("NAME");
}

void add_perf(CLI::App& app, Options& o) {
  app.add_flag("--perf", o.perf, "Tell perf (/tmp/perf-PID.map) and GDB the kernels' names");
}

void add_debug_memory(CLI::App& app, Options& o, const std::string& help) {
  app.add_flag("--debug-memory", o.debug_memory, help);
}

void add_devices(CLI::App& app, Options& o) {
  app.add_option("--replicas", o.replicas, "Default: as the program says")->option_text("R")->check(CLI::Range(1, 1024));
  app.add_option("--partitions", o.partitions, "Default: as the program says. Device k reads IN.devK.npz if it exists")
      ->option_text("P")
      ->check(CLI::Range(1, 1024));
  app.add_option("--collective-timeout", o.collective_timeout_s,
                 "The longest wait for other devices in a collective; default 300, 0: for ever")
      ->option_text("S")
      ->check(CLI::Range(0.0, 86400.0));
}

void add_memory(CLI::App& app, Options& o) {
  app.add_flag("--require-in-place{*}", o.require_in_place,
               "Refuse a program in which these updates are copied; without names: any")
      ->option_text("[=NAME,…]");
  app.add_option("--memory-limit", o.memory_limit, "Make values again instead of keeping them, or refuse, where a program takes more bytes;\ndefault: what the "
                 "control group may have")
      ->option_text("SIZE")
      ->transform(CLI::AsSizeValue(false));
  app.add_option("--concurrency-memory", o.concurrency_memory,
                 "Bytes that the arena may take beyond the fewest so that independent steps need not wait for memory")
      ->option_text("SIZE")
      ->transform(CLI::AsSizeValue(false));
  app.add_option("--budget", o.budget, "Refuse a program that takes more, or copies more, than this file allows")
      ->option_text("FILE");
}

void add_host_in(CLI::App& command, Options& o) {
  command.add_option("--host-in", o.host_in, "What infeeds take: infeed0, infeed1, … of this .npz; recvC_0, … for channel C")
      ->option_text("FILE");
}

void add_run(CLI::App& app, Options& o) {
  CLI::App* run = app.add_subcommand("run", "Run a program once")->footer(kRunExamples);
  run->callback([&o] { o.command = Command::Run; });
  add_program(*run, o);
  add_scale(*run, o);
  add_inputs(*run, o);
  run->add_option("--output", o.output, "Write results as out0, out1, … to this .npz (or one to this .npy)")
      ->option_text("FILE");
  run->add_option("--expect", o.expect, "Compare results with those of this file")->option_text("FILE");
  run->add_option("--rtol", o.rtol, "Relative tolerance; default 0, or the folder's")
      ->option_text("X")
      ->check(CLI::NonNegativeNumber);
  run->add_option("--atol", o.atol, "Absolute tolerance; default 0, or the folder's")
      ->option_text("X")
      ->check(CLI::NonNegativeNumber);
  add_host_in(*run, o);
  run->add_option("--host-out", o.host_out, "Write what outfeeds and sends give, outfeed0, …, sendC_0, …, to this .npz")
      ->option_text("FILE");
  run->add_flag("--interpret", o.interpret, "Interpret instead of compiling");
  run->add_flag("--check-nans", o.check_nans, "Name the first instruction that makes a NaN or an infinity; slowly");
  add_debug_memory(*run, o, "Watch what each step does to memory, and name the first that does wrong; slowly");
  add_threads(*run, o);
  add_devices(*run, o);
  add_cpu(*run, o);
  add_cache(*run, o);
  add_memory(*run, o);
  run->add_flag("--profile", o.profile, "Time of each kernel, on standard error");
  add_perf(*run, o);
  run->add_flag("--time", o.time, "Time of stages and passes, on standard error");
  run->add_option("--dump", o.dump, "Write each stage to a file in this folder")->option_text("DIR");
}

void add_bench(CLI::App& app, Options& o) {
  CLI::App* bench = app.add_subcommand("bench", "Compile time, run time, bytes")->footer(kBenchExamples);
  bench->callback([&o] { o.command = Command::Bench; });
  add_program(*bench, o);
  add_scale(*bench, o);
  add_inputs(*bench, o);
  bench->add_option("--seconds", o.seconds, "How long to run; default 2")
      ->option_text("S")
      ->check(CLI::Range(0.0, 86400.0));
  add_threads(*bench, o);
  add_cpu(*bench, o);
  add_cache(*bench, o);
  add_memory(*bench, o);
  add_perf(*bench, o);
  add_devices(*bench, o);
  add_debug_memory(*bench, o, "Run once under the watch of run --debug-memory before");
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
  add_cpu(*check, o);
  add_cache(*check, o);
  add_devices(*check, o);
  add_host_in(*check, o);
  check->add_option("--work", o.work, "Of instructions that take the interpreter more steps a sample is checked; default: all of all")
      ->option_text("STEPS")
      ->check(CLI::PositiveNumber);
  add_debug_memory(*check, o, "Run once under the watch of run --debug-memory before");
  check->add_flag("--bisect-passes", o.bisect_passes, "Name the stage after which the results part");
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
      ->allow_extra_args(false)
      ->option_text("A,B")
      ->check(CLI::IsMember(names));
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
  show->callback([&o] {
    o.command = Command::Show;
    const compiler::Stage& stage = *compiler::stage_named(o.stage);
    if ((o.format == "json" && !stage.has_json) || (o.format == "html" && !stage.has_html) ||
        (o.format == "dot" && !stage.has_dot))
      throw CLI::ValidationError("--format", "there is no " + o.format + " for " + o.stage);
    if (o.stage != "memory" && !(o.write_budget + o.against).empty())
      throw CLI::ValidationError("--stage", "--write-budget and --against are of --stage=memory");
  });
  add_program(*show, o);
  show->add_option("--stage", o.stage, help)->option_text("NAME")->required()->check(CLI::IsMember(names));
  show->add_option("--format", o.format,
                   "text (default), json for buffers and memory, html, a page with a picture, for memory, or dot, a graph "
                   "for Graphviz, for hlo and fusions")
      ->option_text("text|json|dot|html")
      ->check(CLI::IsMember({"text", "json", "dot", "html"}));
  add_cpu(*show, o);
  add_memory(*show, o);
  show->add_option("--write-budget", o.write_budget, "Write the budget that the memory stage just meets to this file")
      ->option_text("FILE");
  show->add_option("--against", o.against, "What changed in memory since this report, written by --format=json")
      ->option_text("FILE");
}

void add_reduce(CLI::App& app, Options& o) {
  CLI::App* reduce = app.add_subcommand("reduce", "The smallest program that still has a fault")->footer(kReduceExamples);
  reduce->callback([&o] { o.command = Command::Reduce; });
  add_program(*reduce, o);
  reduce->add_option("--script", o.script, "Shell command that says whether the fault is there")
      ->option_text("CMD")
      ->required();
  reduce->add_option("--output", o.output, "Write the program to this file instead of standard output")
      ->option_text("FILE");
}

// CLI11 would only say that a command is missing.
bool names_no_command(const CLI::App& app, int argc, const char* const* argv) {
  if (argc < 2 || argv[1][0] == '-') return false;
  std::string names;
  for (const CLI::App* command : app.get_subcommands(nullptr)) {
    if (command->get_name() == argv[1]) return false;
    names.append(names.empty() ? "" : ", ").append(command->get_name());
  }
  std::fprintf(stderr, "hloom: there is no command %s; there are %s\n", argv[1], names.c_str());
  return true;
}

}  // namespace

Parsed parse_arguments(int argc, const char* const* argv) {
  Parsed parsed;
  try {
    CLI::App app("hloom compiles and runs HLO programs on CPUs, and shows what it does to memory.", "hloom");
    app.footer(kFooter);
    app.formatter(std::make_shared<Help>());  // before the commands, which take it over
    app.set_version_flag("--version", version_text());
    app.require_subcommand(1);
    add_run(app, parsed.options);
    add_bench(app, parsed.options);
    add_check(app, parsed.options);
    add_opt(app, parsed.options);
    add_show(app, parsed.options);
    add_reduce(app, parsed.options);
    if (names_no_command(app, argc, argv)) {
      parsed.exit = kWrongWords;
      return parsed;
    }
    try {
      app.parse(argc, argv);
    } catch (const CLI::ParseError& e) {
      // Help and version, which are good, come this way too.
      parsed.exit = app.exit(e) == 0 ? kGood : kWrongWords;
    }
    if (!parsed.exit && !parsed.options.random.empty()) parsed.options.random_seed = *seed_of(parsed.options.random);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "hloom: %s\n", e.what());
    parsed.exit = kWrongWords;
  }
  return parsed;
}

}  // namespace hloom::cli
