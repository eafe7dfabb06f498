#!/usr/bin/env python3
"""Purpose: gives every case of a folder to a plugin and counts the verdicts.
Contract: one line for the counts, one for each place in the source that a failure names first, in
order; the same lines on every machine. Exit 1 when a case ended neither in a pass nor in a failure.
Usage: judge.py TITLE KVERIFY PLUGIN CASES [OPTION...]     options of `kverify replay`"""
import collections
import json
import pathlib
import re
import subprocess
import sys
import tempfile


def place_of(verdict):
    """The file and line of "The device found: race in KERNEL at FOLDER/FILE:LINE. ..."."""
    named = re.search(r" at \S*?([\w]+\.\w+:\d+)\. ", verdict["message"])
    kind = verdict["failures"][0]["failure_class"]
    return f"{kind} at {named.group(1)}" if named else kind


def main():
    title, kverify, plugin, folder, *options = sys.argv[1:]
    outcomes, places, odd = collections.Counter(), collections.Counter(), 0
    with tempfile.TemporaryDirectory() as scratch:
        report = pathlib.Path(scratch) / "report.json"
        for case in sorted(pathlib.Path(folder).glob("*.json")):
            command = [kverify, "replay", "--plugin", plugin, "--json", str(report)]
            command += options + [str(case)]
            ran = subprocess.run(command, capture_output=True, text=True, check=False)
            if ran.returncode not in (0, 1):
                print(f"{case.name}: exit {ran.returncode}\n{ran.stdout[-2000:]}{ran.stderr}")
                odd += 1
                continue
            verdict = json.loads(report.read_text())
            outcomes[verdict["outcome"]] += 1
            if verdict["outcome"] == "fail":
                places[place_of(verdict)] += 1
    print(f"{title}: {outcomes['pass']} cases pass, {outcomes['fail']} fail")
    for place, count in sorted(places.items()):
        print(f"{title}: {place}: {count} cases")
    return 1 if odd else 0


if __name__ == "__main__":
    sys.exit(main())
