#!/usr/bin/env python3
"""Temporary bytes of the corpus' programs as hloom plans them, against XLA:CPU's.

  tools/temp_bytes.py build/release/bin/hloom [--corpus=../shared/corpus] [--gate]

One line a program and size: the arena, the scratch of a worker beside it, what is in use at its peak, XLA's temporaries (from meta.json: the lower of its
schedulers' where both are known), hloom's share of them, and the arena's distance from the peak. Then the geometric
means. With --gate the status is 1 if a program with that scratch takes more than XLA, or more than its own limit, or the means are above theirs.
"""
import argparse
import json
import math
import os
import subprocess
import sys

LIMITS = {("r37b-joint-counts", "bench"): 8_000_000, ("r02-resnet18-train", "bench"): 36_000_000,
          ("r15-lj-md", "bench"): 51_000_000}
LARGEST_MEANS = {"check": 0.49, "bench": 0.37}
SCALES = (("check", "program.hlo", "xla_cpu"), ("bench", "bench.hlo", "xla_cpu_bench"))


def xla_bytes(meta, key):
    """The fewest temporary bytes that meta.json has of XLA at this size, or None."""
    found = [of[name] for k, of in meta.items() if k.startswith(key) and isinstance(of, dict)
             and (k == key or not k.startswith(key + "_bench"))
             for name in of if name.startswith("temp_bytes") and isinstance(of[name], (int, float))]
    return min(found, default=None)


def plan(hloom, path):
    done = subprocess.run([hloom, "show", path, "--stage=memory", "--format=json"], capture_output=True, text=True)
    if done.returncode:
        return None, done.stderr.strip().splitlines()[0][:100]
    return json.loads(done.stdout), ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("hloom")
    parser.add_argument("--corpus", default=os.path.join(os.path.dirname(__file__), "../../shared/corpus"))
    parser.add_argument("--gate", action="store_true")
    args = parser.parse_args()
    shares = {scale: [] for scale, _, _ in SCALES}
    worse = 0
    print(f"{'program':28} {'size':6} {'arena':>12} {'scratch':>8} {'peak':>12} {'XLA':>12} {'share':>6} {'gaps':>6}")
    for name in sorted(os.listdir(args.corpus)):
        folder = os.path.join(args.corpus, name)
        if not os.path.exists(os.path.join(folder, "meta.json")):
            continue
        with open(os.path.join(folder, "meta.json"), encoding="utf-8") as file:
            meta = json.load(file)
        for scale, program, key in SCALES:
            path = os.path.join(folder, program)
            if not os.path.exists(path):
                continue
            memory, error = plan(args.hloom, path)
            if memory is None:
                print(f"{name:28} {scale:6} {error}")
                worse += 1
                continue
            arena, peak, xla = memory["arena_bytes"], memory["peak"]["arena_bytes"], xla_bytes(meta, key)
            scratch = memory["scratch_bytes"]
            share = arena / xla if xla else None
            gaps = 1 - peak / arena if arena else 0
            is_worse = arena + scratch > min(LIMITS.get((name, scale), math.inf), xla or math.inf)
            print(f"{name:28} {scale:6} {arena:12} {scratch:8} {peak:12} {xla if xla else '-':>12} "
                  f"{f'{share:.2f}' if share is not None else '-':>6} {gaps:6.1%}{'  <' if is_worse else ''}", flush=True)
            worse += is_worse
            if share:
                shares[scale].append(math.log(share))
    for scale, logs in shares.items():
        if logs:
            mean = math.exp(sum(logs) / len(logs))
            print(f"{scale}: geometric mean {mean:.3f} of {len(logs)} programs, at most {LARGEST_MEANS[scale]}")
            worse += mean > LARGEST_MEANS[scale]
    print(f"{worse} of programs and means take more than XLA or their limits, or fail")
    return 1 if args.gate and worse else 0


if __name__ == "__main__":
    sys.exit(main())
