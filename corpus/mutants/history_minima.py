"""Purpose: the minimiser brings what is found of a planted bug of cache or engine down to a history
that a person can follow.

Contract: of each bug in history_minima.json (the fewest operations that can show it), the first
finding of a campaign is minimised: within a minute, to at most BEYOND operations more, failing in
the same way. Prints the table.
Usage: history_minima.py KVERIFY FOLDER_OF_MUTANTS FOLDER [NAME...]
"""
import json
import os
import subprocess
import sys
import time

BEYOND, SEED, HISTORIES, SECONDS_MAX = 5, 1, 500, 75


def minimize(kverify, library, folder):
    """The fingerprint and the smaller case of its first finding, and how long that took."""
    os.makedirs(folder, exist_ok=True)
    result = os.path.join(folder, "result")
    subprocess.run([kverify, "check", "--level", "engine", "--seed", str(SEED), "--cases",
                    str(HISTORIES), "--first", "--minimize-attempts", "0", "--plugin", library,
                    "--out", folder, "--json", result], capture_output=True, cwd=folder)
    with open(result, encoding="utf-8") as file:
        failures = json.load(file)["failures"]
    if not failures:
        return "nothing was found", None, 0, 0
    path = failures[0]["case"]["path"]
    with open(path, encoding="utf-8") as file:
        before = len(json.load(file)["ops"])
    smaller = os.path.join(folder, "smaller.json")
    started = time.monotonic()
    ran = subprocess.run([kverify, "minimize", path, "--plugin", library, "--out", smaller],
                         capture_output=True, text=True)
    took = time.monotonic() - started
    if ran.returncode != 0:
        return f"minimize ended with {ran.returncode}: {ran.stdout}{ran.stderr}", None, before, took
    with open(smaller, encoding="utf-8") as file:
        return ran.stdout.split("\n", 1)[0], json.load(file), before, took


def main():
    kverify, mutants, scratch, *names = sys.argv[1:]
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "history_minima.json"), encoding="utf-8") as file:
        necessary = json.load(file)
    bad = 0
    for name in names or sorted(necessary):
        fault, case, before, took = minimize(kverify, f"{mutants}/lib{name}.so",
                                             os.path.join(scratch, name))
        got = None if case is None else len(case["ops"])
        ok = got is not None and got <= necessary[name] + BEYOND and took <= SECONDS_MAX
        bad += not ok
        print(f"{'ok ' if ok else 'BAD'} {name:<32}{before:>4} -> {got} operations, necessary "
              f"{necessary[name]}, {took:.1f} s: {fault}", flush=True)
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
