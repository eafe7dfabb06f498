#!/usr/bin/env python3
"""kvattn_bench as its user meets it on a machine without a GPU: counters and a marked estimate, the
measurement's own path on the CPU device, and its exit codes.
Usage: kvattn_bench_test.py BUILD_FOLDER"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

BUILD = pathlib.Path(sys.argv.pop(1)).resolve()
STEP = "prefill_512_single_heads"


def bench(*arguments, build=BUILD):
    environment = os.environ | {"LD_LIBRARY_PATH": str(BUILD / "lib" / "simt")}
    return subprocess.run([str(build / "bin" / "kvattn_bench"), *arguments], env=environment,
                          capture_output=True, text=True, check=False)


class WithoutGpu(unittest.TestCase):
    def test_prints_counters_and_an_estimate_that_says_so(self):
        # Fails when the program measures times of the CPU device, or refuses.
        ran = bench(STEP)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn("roofline ESTIMATE", ran.stdout)
        self.assertIn("not a measurement", ran.stdout)
        self.assertEqual(ran.stdout.count(f"| {STEP} |"), 1)
        self.assertEqual(ran.stdout, bench("--counters", STEP).stdout)

    def test_a_trial_goes_through_the_measurement(self):
        # Fails when events, rotating caches or the rates do not work on any device.
        ran = bench("--trial", STEP)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn("copies: ", ran.stdout)
        self.assertRegex(ran.stdout, rf"{STEP} +prefill +\d")

    def test_bad_input(self):
        # Fails when an unknown name or option is taken for something else.
        for arguments in (["nothing"], ["--nothing"], ["--list", STEP], ["--once"],
                          ["--counters", "nothing"], ["--counters", "--check", "nothing"]):
            ran = bench(*arguments)
            self.assertEqual(ran.returncode, 2, arguments)
            self.assertEqual(len(ran.stderr.splitlines()), 1, ran.stderr)

    def test_a_missed_limit_and_a_missing_program(self):
        # Fails when the exit code of what counts is lost.
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "bin").mkdir()
            programs = pathlib.Path(folder) / "bin"
            shutil.copy(BUILD / "bin" / "kvattn_bench", programs)
            (programs / "kverify").symlink_to(BUILD / "bin" / "kverify")
            ran = bench("--counters", STEP, build=programs.parent)
            self.assertEqual(ran.returncode, 3, ran.stderr)
            self.assertIn("kvattn_counters", ran.stderr)
            text = (BUILD / "bin" / "kvattn_counters").read_text()
            strict = text.replace("PREFILL_READS_MAX = 1.02, 1.10", "PREFILL_READS_MAX = 1, 1")
            self.assertNotEqual(strict, text)
            counters = programs / "kvattn_counters"
            counters.write_text(strict)
            counters.chmod(0o755)
            ran = bench("--counters", "--check", STEP, build=programs.parent)
            self.assertEqual(ran.returncode, 1, ran.stderr)
            self.assertIn("at most 1", ran.stderr)

    def test_what_counts_lacks_its_programs(self):
        # Fails when a missing or failing kverify is taken for a missed limit.
        with tempfile.TemporaryDirectory() as folder:
            programs = pathlib.Path(folder) / "bin"
            programs.mkdir()
            shutil.copy(BUILD / "bin" / "kvattn_bench", programs)
            shutil.copy(BUILD / "bin" / "kvattn_counters", programs)
            ran = bench("--counters", STEP, build=programs.parent)
            self.assertEqual(ran.returncode, 3, ran.stderr)
            self.assertIn("bin/kverify", ran.stderr)
            self.assertEqual(len(ran.stderr.splitlines()), 1, ran.stderr)
            kverify = programs / "kverify"
            for script in ("#!/bin/sh\necho no device >&2\nexit 5\n", "no program"):
                kverify.write_text(script)
                kverify.chmod(0o755)
                ran = bench("--counters", STEP, build=programs.parent)
                self.assertEqual(ran.returncode, 3, ran.stderr)
                self.assertIn(STEP, ran.stderr)
            self.assertNotIn("Traceback", ran.stderr)

    def test_bad_input_of_what_counts(self):
        # Fails when it is said in more than a line.
        for arguments in (["nonsense"], ["--nonsense"]):
            ran = subprocess.run([str(BUILD / "bin" / "kvattn_counters"), "--build", str(BUILD),
                                  *arguments], capture_output=True, text=True, check=False)
            self.assertEqual(ran.returncode, 2, ran.stderr)
            self.assertEqual(len(ran.stderr.splitlines()), 1, ran.stderr)
            self.assertIn("nonsense", ran.stderr)


if __name__ == "__main__":
    unittest.main()
