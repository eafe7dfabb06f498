"""Purpose: the rank test gives what tables of it give, and no run is done twice or lost.

Contract: the fuzz target is a script here. Each test says what fault makes it fail.
"""
import contextlib
import io
import json
import os
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import compare_search  # noqa: E402

# Finds after 7 inputs, guided after 3; leaves a line for each run of it.
TARGET = """#!/bin/sh
echo run >> "$(dirname "$0")/runs"
case "$*" in *--kv_unguided*) n=7;; *) n=3;; esac
echo "fuzz: input $n of this run: somewhere" >&2
exit 77
"""


class RankTest(unittest.TestCase):
    def test_apart(self):
        """Fails when the continuity correction or the variance is wrong: U = 9, z = 1.7457."""
        share, p = compare_search.rank_test([([1, 2, 3], [4, 5, 6])])
        self.assertEqual(share, 1)
        self.assertAlmostEqual(p, 0.0809, places=4)

    def test_ties(self):
        """Fails when ties are not taken out of the variance, 10.286 instead of 12: z = 1.7150."""
        share, p = compare_search.rank_test([([1, 1, 2, 2], [2, 2, 3, 3])])
        self.assertAlmostEqual(share, 14 / 16)
        self.assertAlmostEqual(p, 0.0864, places=4)

    def test_same(self):
        """Fails when equal samples differ, or runs without a finding break it."""
        never = [float("inf")] * 3
        self.assertEqual(compare_search.rank_test([(never, never)]), (0.5, 1.0))

    def test_strata(self):
        """Fails when runs of different bugs are compared: U = 2, expected 1, variance 0.5."""
        share, p = compare_search.rank_test([([1], [2]), ([100], [200])])
        self.assertEqual(share, 1)
        self.assertAlmostEqual(p, 0.4795, places=4)


class Resume(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.build = pathlib.Path(folder.name)
        (self.build / "bin").mkdir()
        (self.build / "bin" / "fuzz_attention").write_text(TARGET)
        (self.build / "bin" / "fuzz_attention").chmod(0o755)
        self.results = self.build / "results"

    def compare(self, runs, *more, only="301"):
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            status = compare_search.main([str(self.build), str(self.results), "--runs", str(runs),
                                          "--executions", "10", "--only", only, *more])
        return status, said.getvalue()

    def count(self):
        return len((self.build / "bin" / "runs").read_text().splitlines())

    def test_goes_on(self):
        """Fails when a run is done again, or a torn line hides a whole one or is believed."""
        self.assertEqual(self.compare(1)[0], 0)
        self.assertEqual(self.count(), 2)
        with open(self.results, "a", encoding="utf-8") as file:
            file.write('\n{"bug": "301_wi')
        status, said = self.compare(2)
        self.assertEqual((status, self.count()), (0, 4))
        self.assertIn("| 2 + 2 | 2, 2 | 3 | 7 | 100 % |", said)
        whole = [json.loads(line) for line in self.results.read_text().splitlines()
                 if line.endswith("}")]
        self.assertEqual(len(whole), 4)

    def test_another_build(self):
        """Fails when runs of another target, whose search may be another, are taken for these."""
        self.assertEqual(self.compare(1)[0], 0)
        (self.build / "bin" / "fuzz_attention").write_text(TARGET + "# rebuilt\n")
        self.assertEqual((self.compare(1)[0], self.count()), (0, 4))
        self.assertEqual((self.compare(1)[0], self.count()), (0, 4))

    def test_bad_input(self):
        """Fails when rubbish is a traceback, or when nothing compared passes."""
        self.assertEqual(self.compare(1, only="nosuch")[0], 2)
        self.assertEqual(self.compare(1, "--table")[0], 5)
        for rubbish in (b"3\n", b"{}\n", b"\xff\xfe\n"):
            self.results.write_bytes(rubbish)
            status, said = self.compare(1)
            self.assertEqual((status, said.count("\n")), (2, 1), said)
        self.results.unlink()
        (self.build / "bin" / "fuzz_attention").unlink()
        self.assertEqual(self.compare(1)[0], 3)

    def test_missed(self):
        """Fails when a bug that a guided run missed passes."""
        (self.build / "bin" / "fuzz_attention").write_text("#!/bin/sh\nexit 0\n")
        self.assertEqual(self.compare(1)[0], 1)


if __name__ == "__main__":
    unittest.main()
