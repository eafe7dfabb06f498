#!/usr/bin/env python3
"""Purpose: how long planted bugs of corpus/mutants/pairs hide from guided and from unguided search,
both from nothing, and whether the one is faster: Mann-Whitney's rank test.

Contract: ten bugs (CHOSEN), two runs of each in each mode: 20 runs of a mode. Every run is one line
of JSON in RESULTS (bug, digest of its patch, of the target with the bug's library, mode, seed,
limit, executions, CPU seconds, found); what is there for the same digests and limit is not run
again, so a stopped comparison goes on where it was. A run ends with its finding, after 10 minutes
of processor time, or after the given executions. The test is made over executions, which are the
same on every machine, and over processor time; a run without a finding counts as longer than all
others. Exit 1 when a guided run does not find its bug, 2 for bad input, 3 when a target is not
there or ends otherwise than it should, 5 when nothing was compared.
Usage: compare_search.py BUILD RESULTS [--runs 2] [--jobs 2] [--executions 1000000] [--all]
       [--only NAME]... [--table]          after ninja -C BUILD fuzz_targets mutant_pairs
"""
import argparse
import collections
import concurrent.futures
import hashlib
import json
import math
import os
import pathlib
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import threading

CPU_SECONDS_MAX = 600
MODES = ("guided", "unguided")
# Eight of kernels, the two of the cache; each needs two relations at once.
CHOSEN = ("301", "302", "303", "304", "305", "306", "307", "309", "313", "314")
# Rows of K and V are short: none of the bugs is about them, and more cases run in the time.
LIMITS = {"fuzz_attention": ["--kv_limit_head_dim=16"], "fuzz_history": []}
INPUT = re.compile(rb"fuzz: input (\d+) of this run")
Bug = collections.namedtuple("Bug", "name digest target")
FIELDS = {"patch": str, "build": str, "mode": str, "seed": int, "limit": int, "executions": int,
          "cpu_seconds": (int, float), "found": bool}


class Refused(Exception):
    def __init__(self, status, sentence):
        super().__init__(sentence)
        self.status = status


def read_bugs(folder, only):
    """Those whose names hold one of the words; all without any."""
    bugs = []
    for path in sorted(folder.glob("*.patch")):
        text = path.read_bytes()
        target = "fuzz_history" if b"\nLevel: engine" in text else "fuzz_attention"
        if not only or any(word in path.stem for word in only):
            # What the patch does, not what its header says.
            body = text[text.index(b"\n--- "):]
            bugs.append(Bug(path.stem, hashlib.sha256(body).hexdigest()[:16], target))
    return bugs


def read_results(path):
    """Lines that are whole; a torn one is a run that is done again."""
    results = []
    try:
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    except (OSError, UnicodeDecodeError) as error:
        raise Refused(2, f"{path}: expected lines of JSON: {error}") from error
    for number, line in enumerate(lines, 1):
        try:
            run = json.loads(line)
        except ValueError:
            continue
        if not isinstance(run, dict) or any(not isinstance(run.get(name), kind)
                                            for name, kind in FIELDS.items()):
            raise Refused(2, f"{path}:{number}: expected a run with {', '.join(FIELDS)}, got "
                             f"{line[:80]}")
        results.append(run)
    return results


def library_of(build, bug):
    return build / "lib" / "mutants" / f"lib{bug.name}.so"


def digest_of(build, bug):
    """Of what runs: the target, and the plugin with the bug where it is there."""
    target, library = build / "bin" / bug.target, library_of(build, bug)
    try:
        digest = hashlib.sha256(target.read_bytes())
    except OSError as error:
        raise Refused(3, f"{target}: the target cannot be read: {error.strerror}") from error
    if library.exists():
        digest.update(library.read_bytes())
    return digest.hexdigest()[:16]


def search(build, bug, mode, seed, most):
    """One run from nothing. Refuses a target that ends neither way that is known."""
    plugin = library_of(build, bug)
    with tempfile.TemporaryDirectory(prefix="compare_search_") as folder:
        words = [f"-artifact_prefix={folder}/", *LIMITS[bug.target]]
        if mode == "guided":
            os.mkdir(folder + "/corpus")
            words += [f"-seed={seed}", f"-runs={most}", "-timeout=120", folder + "/corpus"]
        else:
            words += [f"--kv_seed={seed}", f"--kv_unguided={most}"]
        child = subprocess.Popen([build / "bin" / bug.target, *words], stdout=subprocess.DEVNULL,
                                 stderr=subprocess.PIPE,
                                 env=dict(os.environ, KVERIFY_FUZZ_PLUGIN=str(plugin)))
        resource.prlimit(child.pid, resource.RLIMIT_CPU, (CPU_SECONDS_MAX, CPU_SECONDS_MAX + 5))
        with child.stderr:
            said = child.stderr.read()
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    found = INPUT.search(said)
    cpu = round(used.ru_utime + used.ru_stime, 2)
    if not found and child.returncode != 0 and cpu < CPU_SECONDS_MAX - 1:
        raise Refused(3, f"{bug.name}, {mode}, seed {seed}: exit {child.returncode}: "
                         f"{said[-500:].decode(errors='replace')}")
    return {"bug": bug.name, "patch": bug.digest, "build": digest_of(build, bug), "mode": mode,
            "seed": seed, "limit": most, "executions": int(found[1]) if found else most,
            "cpu_seconds": cpu, "found": found is not None}


def missing_runs(options, bugs, builds, results):
    """First every bug once in each mode: what is there when it is stopped says something of all."""
    done = {(r["patch"], r["build"], r["mode"], r["seed"], r["limit"]) for r in results}
    return [(bug, mode, seed) for seed in range(1, options.runs + 1) for bug in bugs
            for mode in MODES
            if (bug.digest, builds[bug], mode, seed, options.executions) not in done]


def run_missing(options, bugs, builds, results):
    todo, writing = missing_runs(options, bugs, builds, results), threading.Lock()

    def one(which):
        bug, mode, seed = which
        result = search(options.build, bug, mode, seed, options.executions)
        with writing:
            results.append(result)
            # A line that was torn by a kill stays alone.
            with open(options.results, "a", encoding="utf-8") as file:
                file.write("\n" + json.dumps(result))
            print(f"{len(results)}: {bug.name}, {mode}, seed {seed}: "
                  f"{'found' if result['found'] else 'NOT found'} after {result['executions']} "
                  f"executions, {result['cpu_seconds']} s", file=sys.stderr, flush=True)

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        running = [pool.submit(one, which) for which in todo]
        try:
            for future in running:
                future.result()
        except Refused:
            pool.shutdown(cancel_futures=True)
            raise


def rank_test(strata):
    """Mann-Whitney of pairs (first, second) of samples, each bug a stratum: the share of pairs of
    one stratum in which `first` is smaller (ties count half), and the two-sided p of the normal
    approximation, ties and continuity corrected."""
    wins = pairs = variance = 0
    for first, second in strata:
        n, m = len(first), len(second)
        wins += sum((a < b) + 0.5 * (a == b) for a in first for b in second)
        pairs += n * m
        ties = sum(t ** 3 - t for t in collections.Counter([*first, *second]).values())
        variance += n * m / 12 * (n + m + 1 - ties / ((n + m) * (n + m - 1)))
    if variance <= 0:
        return wins / pairs, 1.0
    z = max(abs(wins - pairs / 2) - 0.5, 0) / math.sqrt(variance)
    return wins / pairs, math.erfc(z / math.sqrt(2))


def lengths_of(runs, what):
    return [r[what] if r["found"] else math.inf for r in runs]


def median(runs):
    middle = statistics.median_high(lengths_of(runs, "executions"))
    return "more" if middle == math.inf else f"{middle:.0f}"


def runs_of(options, bug, builds, results):
    mine = [r for r in results if r["patch"] == bug.digest and r["build"] == builds[bug] and
            r["limit"] == options.executions and r["seed"] <= options.runs]
    return [[r for r in mine if r["mode"] == mode] for mode in MODES]


def print_bug(bug, guided, unguided):
    share, p = rank_test([[lengths_of(runs, "executions") for runs in (guided, unguided)]])
    found = [sum(r["found"] for r in runs) for runs in (guided, unguided)]
    cpu = [[r["cpu_seconds"] for r in runs] for runs in (guided, unguided)]
    print(f"| `{bug.name}` | {len(guided)} + {len(unguided)} | {found[0]}, {found[1]} | "
          f"{median(guided)} | {median(unguided)} | {100 * share:.0f} % | {p:.3f} | "
          f"{statistics.median(cpu[0]):.1f} | {max(cpu[0]):.1f} | {max(cpu[1]):.1f} |")


def print_all(compared):
    for what in ("executions", "cpu_seconds"):
        share, p = rank_test([[lengths_of(runs, what) for runs in pair] for pair in compared])
        print(f"all bugs, each a stratum, by {what}: guided needs less in {100 * share:.0f} % of "
              f"pairs of runs, p = {p:.3f}")
    for i, mode in enumerate(MODES):
        runs = [r for pair in compared for r in pair[i]]
        print(f"{mode}: {sum(r['found'] for r in runs)} of {len(runs)} runs find, "
              f"{sum(r['executions'] for r in runs)} executions, "
              f"{sum(r['cpu_seconds'] for r in runs):.0f} s of processor time")


def print_table(options, bugs, builds, results):
    """Returns how many bugs were compared, and how many a guided run missed."""
    print("| bug | runs | found guided, unguided | executions, median: guided | unguided | "
          "guided needs fewer in | p | CPU s guided: median | most | unguided: most |\n"
          "|---|---|---|---|---|---|---|---|---|---|")
    compared, missed = [], 0
    for bug in bugs:
        guided, unguided = runs_of(options, bug, builds, results)
        if not guided or not unguided:
            continue
        compared.append((guided, unguided))
        missed += any(not r["found"] for r in guided)
        print_bug(bug, guided, unguided)
    if compared:
        print()
        print_all(compared)
    return len(compared), missed


def count(text):
    value = int(text)
    if value < 1:
        raise ValueError(text)
    return value


def compare(options):
    tree = pathlib.Path(__file__).resolve().parent.parent
    only = options.only or ([] if options.all else CHOSEN)
    bugs = read_bugs(tree / "corpus" / "mutants" / "pairs", only)
    if not bugs:
        raise Refused(2, f"--only: expected parts of names of corpus/mutants/pairs, got "
                         f"{' '.join(options.only)}")
    builds = {bug: digest_of(options.build, bug) for bug in bugs}
    results = read_results(options.results)
    if not options.table:
        run_missing(options, bugs, builds, results)
    compared, missed = print_table(options, bugs, builds, results)
    return 5 if compared == 0 else 1 if missed else 0


def main(words):
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("results", type=pathlib.Path)
    parser.add_argument("--runs", type=count, default=2, help="of each bug in each mode")
    parser.add_argument("--jobs", type=count, default=2)
    parser.add_argument("--executions", type=count, default=1000000)
    parser.add_argument("--all", action="store_true", help="every bug, not ten of them")
    parser.add_argument("--only", action="append")
    parser.add_argument("--table", action="store_true", help="run nothing")
    try:
        return compare(parser.parse_args(words))
    except Refused as refused:
        print(f"compare_search: {refused}", file=sys.stderr)
        return refused.status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
