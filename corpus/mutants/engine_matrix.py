#!/usr/bin/env python3
"""Purpose: the rows "engine:*" of matrix.json: who objects to which planted bug of an engine.

Contract: runs history_objectors (properties/) on the plugin of each bug of cache and engine, a few
at a time, each within a time limit, and rewrites what the rows say of the bugs that were measured.
A judge whose checks are passed over may crash on what it was told: what had spoken until then
counts. Rows that kill no bug alone take their reason from kept.json; without one it is an error.
Usage: corpus/mutants/engine_matrix.py BUILD [--histories N] [--jobs N] [--only PART] [--attention]
"""
import argparse
import concurrent.futures
import json
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
SECONDS_MAX = 240


def bugs(with_attention, part):
    for patch in sorted(HERE.glob("*.patch")):
        level = re.search(r"^Level: (.*)$", patch.read_text(), re.M)
        if level is None or part not in patch.stem:
            continue
        if with_attention or "attention" not in level.group(1):
            yield patch.stem


def objectors(build, bug, histories):
    command = [build / "bin/history_objectors", build / f"lib/mutants/lib{bug}.so", str(histories)]
    try:
        told = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_MAX,
                              check=False).stdout
    except subprocess.TimeoutExpired as late:
        told = (late.stdout or b"").decode()
    return [line.split()[0] for line in told.splitlines() if line.startswith("engine:")]


def write_rows(found):
    path = HERE / "matrix.json"
    matrix = json.loads(path.read_text())
    kept = json.loads((HERE / "kept.json").read_text())
    for name, row in matrix.items():
        if name.startswith("engine:"):
            row["kills"] = sorted({b for b in row["kills"] if b not in found} |
                                  {bug for bug, said in found.items() if name in said})
    faults = []
    for name, row in matrix.items():
        others = {b for other, r in matrix.items() if other != name for b in r["kills"]}
        row["only"] = [b for b in row["kills"] if b not in others]
        row.pop("because", None)
        if not row["only"]:
            row["because"] = kept.get(name, "")
            if not row["because"]:
                faults.append(f"{name}: kills no planted bug alone, and kept.json has no reason")
    lines = [f" {json.dumps(name)}: {json.dumps(row)}" for name, row in matrix.items()]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    return faults


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--histories", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", default="")
    parser.add_argument("--attention", action="store_true")
    o = parser.parse_args()
    names = list(bugs(o.attention, o.only))
    with concurrent.futures.ThreadPoolExecutor(o.jobs) as pool:
        runs = pool.map(lambda bug: objectors(o.build, bug, o.histories), names)
        found = dict(zip(names, runs))
    for bug, said in found.items():
        print(f"{bug}: {' '.join(said) or 'nobody objects'}")
    unfound = [bug for bug, said in found.items() if not said]
    faults = [f"{bug}: nobody objects" for bug in unfound]
    faults += write_rows({bug: said for bug, said in found.items() if said})
    for fault in faults:
        print(f"engine_matrix: {fault}", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
