#!/usr/bin/env python3
"""against_xla.py over stand-ins for hloom and XLA: turns, medians, ratios, errors."""
import contextlib
import io
import json
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

import against_xla

STAND_IN = """#!{python}
import json, pathlib, sys
log = pathlib.Path({log!r})
log.write_text((log.read_text() if log.exists() else "") + {name!r} + " ")
n = log.read_text().split().count({name!r})
if {fails}:
    sys.exit("bench: no kernel for fft.3")
print(json.dumps({{"run_s_median": {run} * n, "compile_s": {compile}, "temp_bytes": {temp}}}))
"""


class AgainstXla(unittest.TestCase):
    def run_with(self, **hloom):
        """Exit status, lines printed, order of calls and the JSON file of three rounds on one folder."""
        with tempfile.TemporaryDirectory() as name:
            root = pathlib.Path(name)
            log = root / "log"
            (root / "tools").mkdir()
            (root / "r99-example").mkdir()
            xla = {"run": 0.004, "compile": 0.5, "temp": 1000, "fails": False}
            for path, who, figures in ((root / "hloom", "hloom", {**xla, **hloom}), (root / "tools/xla_run.py", "xla", xla)):
                path.write_text(STAND_IN.format(python=sys.executable, log=str(log), name=who, **figures))
                path.chmod(0o755)
            words = ["against_xla", "r99", "--corpus", name, "--hloom", str(root / "hloom"), "--rounds", "3", "--scale", "check",
                     "--json", str(root / "out.json")]
            printed = io.StringIO()
            with mock.patch.object(sys, "argv", words), contextlib.redirect_stdout(printed):
                status = against_xla.main()
            return status, printed.getvalue().splitlines(), log.read_text().split(), json.loads((root / "out.json").read_text())

    def test_ratios_of_medians_in_turns(self):
        status, lines, calls, figures = self.run_with(run=0.002, compile=0.25, temp=3000)
        self.assertEqual(0, status)
        self.assertEqual(["hloom", "xla"] * 3, calls)
        self.assertEqual(["r99-example", "0.50", "0.50", "3.00", "4.000", "8.000"], lines[1].split()[:6])
        self.assertEqual(3, len(figures["r99-example"]["xla"]))

    def test_an_error_is_told(self):
        status, lines, calls, _ = self.run_with(fails=True)
        self.assertEqual(1, status)
        self.assertEqual(["hloom"], calls)
        self.assertIn("hloom: bench: no kernel for fft.3", lines[1])


if __name__ == "__main__":
    unittest.main()
