"""Purpose: every planted bug of cache and engine is found in random histories, by its check.

Contract: gives each plugin to history_campaign, or to `kverify check --level engine` where it
attends (`Level: engine with attention`), and holds the class of check that found the bug against
those that the patch names (`Found by:`, up to the first colon); the correct plugins must pass.
Prints the table. Fails also when more than half of them needed a comparison of values.
Usage: histories.py CAMPAIGN PLUGIN KVERIFY ATTENDING_PLUGIN FOLDER_OF_MUTANTS FOLDER
"""
import glob
import json
import os
import re
import subprocess
import sys

HISTORIES, SEED, SECONDS_MAX = 500, 1, 400
# As the headers have it: as harness/history/finding.h has it.
CHECKS = {name: name for name in ("partition", "lengths", "fence", "index", "provenance",
                                  "atomicity", "answer", "progress", "leak", "values")}
CHECKS |= {"references": "reference counts", "write-set": "write set"}


def expected(patch):
    with open(patch, encoding="utf-8") as file:
        header = file.read().split("\n--- ", 1)[0]
    said = re.search(r"^Found by: (.*?)(?::|\Z|\n\n)", header, re.DOTALL | re.MULTILINE).group(1)
    return {CHECKS[word] for word in re.findall(r"[a-z-]+", said) if word in CHECKS}


def run_attending(kverify, plugin, folder):
    """As run(), on the device of kverify, and with values."""
    result = os.path.join(folder, "result.json")
    os.makedirs(folder, exist_ok=True)
    try:
        ran = subprocess.run([kverify, "check", "--level", "engine", "--seed", str(SEED), "--cases",
                              str(HISTORIES), "--plugin", plugin, "--out", folder, "--json",
                              result], capture_output=True, timeout=SECONDS_MAX)
    except subprocess.TimeoutExpired:
        return "time limit", None, None
    if ran.returncode not in (0, 1):
        return ran.returncode, None, None
    with open(result, encoding="utf-8") as file:
        failures = json.load(file)["failures"]
    if not failures:
        return ran.returncode, None, None
    history = re.search(r"history-\d+-(\d+)", failures[0]["case"]).group(1)
    return ran.returncode, failures[0]["check"], history


def run(campaign, plugin):
    """Its exit status, and the class of check and the history of the finding, if there is one."""
    try:
        ran = subprocess.run([campaign, plugin, str(HISTORIES), str(SEED)], capture_output=True,
                             text=True, timeout=SECONDS_MAX)
    except subprocess.TimeoutExpired:
        return "time limit", None, None
    found = re.match(r"history (\d+) of seed \d+: found by ([a-z ]+):", ran.stdout)
    return ran.returncode, found and found.group(2), found and found.group(1)


def main():
    campaign, plugin, kverify, attending, folder, scratch = sys.argv[1:]
    here = os.path.dirname(os.path.abspath(__file__))
    bad, count, by_values = 0, 0, 0
    print(f"{'planted bug':<34}{'found by':<20}{'in history':<12}expected")
    for patch in sorted(glob.glob(os.path.join(here, "*.patch"))):
        with open(patch, encoding="utf-8") as file:
            header = file.read()
        if re.search(r"^Sources: ", header, re.MULTILINE):
            continue  # of a kernel: see `kverify mutants`
        attends = re.search(r"^Level: engine with attention", header, re.MULTILINE)
        name = os.path.basename(patch).removesuffix(".patch")
        if not os.path.exists(f"{folder}/lib{name}.so"):
            print(f"{name:<34}not built (`ninja history_mutants`)")
            bad += 1
            continue
        want = expected(patch)
        library = f"{folder}/lib{name}.so"
        status, check, history = (run_attending(kverify, library, scratch) if attends
                                  else run(campaign, library))
        ok = status == 1 and check in want
        print(f"{name:<34}{check or '-':<20}{history or '-':<12}{' or '.join(sorted(want))}"
              + ("" if ok else f"   BAD, exit {status}"))
        count, bad, by_values = count + 1, bad + (not ok), by_values + (check == "values")
    for what, outcome in (("none: the correct plugin", run(campaign, plugin)),
                          ("none, with attention", run_attending(kverify, attending, scratch))):
        status, check, history = outcome
        bad += status != 0
        print(f"{what:<34}{check or '-':<20}{history or '-':<12}nothing"
              + ("" if status == 0 else f"   BAD, exit {status}"))
    print(f"{count} planted bugs, {by_values} found by values; {HISTORIES} histories each")
    return 1 if bad or count < 20 or 2 * by_values > count else 0


if __name__ == "__main__":
    sys.exit(main())
