#!/usr/bin/env python3
"""Checks who includes whom: every #include in src/ and include/ against src/layers.txt.

  check_layers.py [ROOT]      ROOT is the repository; by default the one this file is in

Prints one line for each include that is not allowed; exit status 1 if there is one.
"""
import pathlib
import re
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')
TEST_FILE = re.compile(r"_(test|bench|fuzz)\.cc$|(^|_)test[^/]*\.h$")
TEST_EXTRA = {"text", "interp", "arrays", "jit", "generate"}
MARKED = ("llvm", "mlir")  # headers that only folders marked "+llvm", "+mlir" include


def read_layers(path):
    """The file's lines "folders: what they may include" as {folder: set of folders and marks}."""
    allowed = {}
    for line in path.read_text().splitlines():
        line = line.split("#")[0].strip()
        if not line:
            continue
        folders, _, may = line.partition(":")
        for folder in folders.split():
            allowed[folder] = set(may.split()) | {folder}
    return allowed


def includes_of(path):
    """(line number, whether in quotes, included path) of each #include."""
    for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
        match = INCLUDE.match(line)
        if match:
            yield number, match[1] == '"', match[2]


def problem(folder, allowed, is_test, quoted, included):
    """Why a file of `folder` (None: a public header) may not include this, or None."""
    top = included.split("/")[0]
    if top == "hloom":
        return None if quoted else "write hloom's own headers in quotes"
    if top in MARKED or top in ("llvm-c", "mlir-c"):
        mark = "+" + top.split("-")[0]
        return None if folder and mark in allowed[folder] else f"only folders marked {mark} include {top}'s headers"
    if not quoted:
        return None
    if folder is None:
        return "public headers include nothing of src/"
    if top not in allowed:
        return f"{top}/ is no folder of src/layers.txt (other libraries' headers stand in <>)"
    if top in allowed[folder] or (is_test and top in TEST_EXTRA):
        return None
    return f"{folder}/ may include: " + " ".join(sorted(allowed[folder]))


def check(root):
    """All problems under `root`, as lines "path:line: includes x: why"."""
    allowed = read_layers(root / "src" / "layers.txt")
    found = []
    files = [p for p in (root / "src").rglob("*") if p.suffix in (".h", ".cc", ".def")]
    files += (root / "include").rglob("*.h")
    for path in sorted(files):
        relative = path.relative_to(root)
        folder = relative.parts[1] if relative.parts[0] == "src" else None
        if folder is not None and folder not in allowed:
            found.append(f"{relative}: src/layers.txt does not know the folder {folder}/")
            continue
        is_test = bool(TEST_FILE.search(path.name))
        for number, quoted, included in includes_of(path):
            why = problem(folder, allowed, is_test, quoted, included)
            if why:
                found.append(f"{relative}:{number}: includes {included}: {why}")
    return found


def main():
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent
    found = check(root)
    print("\n".join(found) if found else "all includes keep to src/layers.txt")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
