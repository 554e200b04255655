#!/usr/bin/env python3
"""Runs hloom and XLA:CPU in turns on corpus folders and prints the ratios of their times and bytes.

  against_xla.py [FOLDER ...] [--corpus ../shared/corpus] [--rounds 5] [--scale bench] [--seconds 3] [--json OUT]

Without folders: all below --corpus that have a bench.hlo. Each round runs `hloom bench` and the corpus' tools/xla_run.py once
each, so that what else the machine does falls on both; the table has the median of the rounds. Ratios are hloom / XLA:
below 1 hloom is better. Needs: make build, and jax for XLA.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
KEYS = ("run_s_median", "compile_s", "temp_bytes")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=pathlib.Path)
    parser.add_argument("--corpus", type=pathlib.Path, default=ROOT.parent / "shared" / "corpus")
    parser.add_argument("--hloom", default=str(ROOT / "build/release/bin/hloom"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--scale", default="bench", choices=("check", "bench"))
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--threads", type=int, default=0, help="CPUs for both; 0 is all")
    parser.add_argument("--json", type=pathlib.Path, help="write all figures of all rounds here")
    options = parser.parse_args()
    if not options.folders:
        options.folders = sorted(p.parent for p in options.corpus.glob("*/bench.hlo"))
    options.folders = [find_folder(f, options.corpus) for f in options.folders]
    return options


def find_folder(folder, corpus):
    """A path as it stands, else the folder of the corpus with that name or number: r05."""
    if folder.is_dir():
        return folder
    found = sorted(corpus.glob(f"{folder}-*")) or [corpus / folder]
    if not found[0].is_dir():
        sys.exit(f"against_xla: no folder {folder}, here or in {corpus}")
    return found[0]


def last_json(command):
    """The JSON line that the command ends with, or {"error": its last words}."""
    done = subprocess.run(command, capture_output=True, text=True)
    lines = done.stdout.strip().splitlines()
    if done.returncode == 0 and lines:
        try:
            return json.loads(lines[-1])
        except json.JSONDecodeError:
            return json.loads(done.stdout)
    words = (done.stderr.strip() or done.stdout.strip() or f"exit status {done.returncode}").splitlines()
    return {"error": words[-1]}


def commands(folder, options):
    seconds, threads = ["--seconds", str(options.seconds)], ["--threads", str(options.threads)] if options.threads else []
    inputs = []
    if options.scale == "bench":  # bench inputs come from recipes, which only the corpus' own tool carries out
        path = bench_inputs(folder, options)
        inputs = ["--inputs", path] if path else []
    hloom = [options.hloom, "bench", str(folder), "--scale", options.scale, "--json", *inputs, *seconds, *threads]
    xla = [sys.executable, str(options.corpus / "tools/xla_run.py"), str(folder), "--scale", options.scale, *seconds, *threads]
    return {"hloom": hloom, "xla": xla}


def bench_inputs(folder, options):
    """Writes the inputs of the bench size below build/, once."""
    path = ROOT / "build" / "bench-inputs" / (folder.name + ".npz")
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run([sys.executable, str(options.corpus / "tools/bench_inputs.py"), str(folder), str(path)], check=True,
                       stdout=subprocess.DEVNULL)
    return str(path)


def measure(folder, options):
    """{"hloom": [figures of each round], "xla": […]}; stops at the first error."""
    rounds = {"hloom": [], "xla": []}
    for _ in range(options.rounds):
        for who, command in commands(folder, options).items():
            figures = last_json(command)
            rounds[who].append(figures)
            if "error" in figures:
                return rounds
    return rounds


def error_of(rounds):
    return next((f"{who}: {f['error']}" for who, figures in rounds.items() for f in figures if "error" in f), None)


def median(figures, key):
    return statistics.median(f[key] for f in figures)


def ratio(ours, theirs):
    return f"{ours / theirs:7.2f}" if theirs else ("   same" if ours == theirs else "    inf")


def row(name, rounds):
    error = error_of(rounds)
    if error:
        return f"{name:28} {error}"
    value = {(who, key): median(rounds[who], key) for who in rounds for key in KEYS}
    cells = [ratio(value["hloom", key], value["xla", key]) for key in KEYS]
    absolute = [f"{value[who, 'run_s_median'] * 1e3:10.3f}" for who in ("hloom", "xla")]
    absolute += [f"{value[who, 'compile_s'] * 1e3:9.0f}" for who in ("hloom", "xla")]
    absolute += [f"{value[who, 'temp_bytes']:12.0f}" for who in ("hloom", "xla")]
    return f"{name:28} " + " ".join(cells) + "   " + " ".join(absolute)


def main():
    options = arguments()
    if not os.access(options.hloom, os.X_OK):
        sys.exit(f"against_xla: {options.hloom} is not there; run `make build`")
    print(f"{'hloom / XLA:CPU':28} {'run':>7} {'compile':>7} {'temp':>7}   {'hloom ms':>10} {'XLA ms':>10} "
          f"{'comp. ms':>9} {'XLA ms':>9} {'temp bytes':>12} {'XLA':>12}")
    everything = {}
    for folder in options.folders:
        everything[folder.name] = measure(folder, options)
        print(row(folder.name, everything[folder.name]), flush=True)
    if options.json:
        options.json.write_text(json.dumps(everything, indent=1) + "\n")
    return 1 if any(error_of(rounds) for rounds in everything.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
