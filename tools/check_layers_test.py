#!/usr/bin/env python3
"""Planted violations are found, and only these."""
import pathlib
import tempfile
import unittest

import check_layers

LAYERS = """# a comment
base:
hlo text: base hlo
emit: base hlo +llvm
interp: base hlo
compiler: base hlo text emit
"""


class CheckLayers(unittest.TestCase):
    def problems(self, files):
        """What check() says of a tree of these files, given as {path: content}."""
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, content in {"src/layers.txt": LAYERS, "include/hloom/a.h": "", **files}.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(content)
            return check_layers.check(root)

    def test_what_is_allowed(self):
        self.assertEqual([], self.problems({
            "src/text/parser.cc": '#include "text/parser.h"\n#include <vector>\n#include "hlo/module.h"\n#include "hloom/error.h"\n',
            "src/emit/loop.cc": '#include <llvm/IR/IRBuilder.h>\n#include "llvm/IR/Module.h"\n',
            "src/hlo/module_test.cc": '#include "text/parser.h"\n#include "interp/interpret.h"\n#include <gtest/gtest.h>\n'}))

    def planted(self, path, line, expected):
        found = self.problems({path: "// two lines before\n\n" + line + "\n"})
        self.assertEqual(1, len(found), found)
        self.assertTrue(found[0].startswith(f"{path}:3: "), found[0])
        self.assertIn(expected, found[0])

    def test_a_folder_above(self):
        self.planted("src/hlo/module.cc", '#include "compiler/pipeline.h"', "hlo/ may include: base hlo")

    def test_what_only_tests_may(self):
        self.planted("src/hlo/module.cc", '#include "interp/interpret.h"', "hlo/ may include")

    def test_tests_may_not_include_all(self):
        self.planted("src/hlo/module_test.cc", '#include "emit/loop.h"', "hlo/ may include")

    def test_llvm_in_quotes_and_brackets(self):
        self.planted("src/compiler/pipeline.cc", '#include "llvm/IR/Module.h"', "+llvm")
        self.planted("src/compiler/pipeline.cc", "#include <llvm/IR/Module.h>", "+llvm")
        self.planted("src/emit/loop.cc", "# include <mlir/IR/MLIRContext.h>", "+mlir")

    def test_public_headers(self):
        self.planted("include/hloom/executable.h", '#include "base/check.h"', "public headers")
        self.planted("include/hloom/executable.h", '#include "llvm/IR/Module.h"', "+llvm")

    def test_unknown_folders(self):
        self.planted("src/hlo/module.cc", '#include "util/strings.h"', "no folder")
        self.assertIn("does not know", self.problems({"src/util/a.h": ""})[0])


if __name__ == "__main__":
    unittest.main()
