"""Purpose: proves that the minimiser brings planted bugs down to the minima written down beside it.

Contract: draws cases against one mutant, minimises the first finding of each fingerprint, and fails
when a result is larger than minima.json allows, takes more than 60 s, or does not fail every time.
The minima hold for every fingerprint of the mutant: mixed batches need two requests.
Usage: minima.py KVERIFY PLUGIN MUTANT FOLDER
"""
import glob
import json
import os
import subprocess
import sys
import time

SECONDS_MAX = 60


def sizes(path):
    """Of a case file."""
    with open(path, encoding="utf-8") as file:
        case = json.load(file)
    rows = [row for op in case["ops"] if op["op"] == "step" for row in op["rows"]]
    return {
        "operations": len(case["ops"]),
        "requests": sum(op["op"] == "admit" for op in case["ops"]),
        "slots": sum(row.get(k, 0) for row in rows for k in ("append", "pad_left", "pad_right")),
        "pages": case["pool"]["page_count"],
        "head_dim": case["shape"]["head_dim_k"],
    }


def main():
    kverify, plugin, mutant, folder = sys.argv[1:]
    with open(os.path.join(os.path.dirname(__file__), "minima.json"), encoding="utf-8") as file:
        expected = json.load(file)[mutant]
    subprocess.run([kverify, "check", "--plugin", plugin, "--cases", "120", "--seed", "1",
                    "--out", folder, "--minimize-attempts", "0"], stdout=subprocess.DEVNULL)
    seen, bad = set(), 0
    for path in sorted(glob.glob(os.path.join(folder, "*.json"))):
        smaller = os.path.join(folder, "smaller", os.path.basename(path))
        os.makedirs(os.path.dirname(smaller), exist_ok=True)
        started = time.monotonic()
        ran = subprocess.run([kverify, "minimize", path, "--plugin", plugin, "--out", smaller],
                             capture_output=True, text=True)
        took = time.monotonic() - started
        fingerprint = ran.stdout.split("\n", 1)[0]
        if fingerprint in seen:
            continue
        seen.add(fingerprint)
        got = sizes(smaller)
        large = {k: v for k, v in got.items() if v > expected[k]}
        ok = ran.returncode == 0 and not large and took <= SECONDS_MAX
        bad += not ok
        print(f"{'ok ' if ok else 'BAD'} {mutant}: {fingerprint}: {took:.1f} s, {got}"
              + (f", expected at most {expected}, exit {ran.returncode}" if not ok else ""))
    if not seen:
        print(f"BAD {mutant}: nothing was found")
    return 1 if bad or not seen else 0


if __name__ == "__main__":
    sys.exit(main())
