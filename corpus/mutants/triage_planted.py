"""Purpose: what the minimiser and `explain` make of the planted bugs that show as a wrong value.

Contract: of each bug in named.json, the first finding of `check` is minimised and explained. The
result is small (LIMITS, or what named.json says), came within a minute of processor time and fails
every time; explain leaves no bug out of a set that it prints: the names that are true of it stand
in named.json, none for a bug that the catalogue has no word for. It names, alone or among three,
SHARE of all. One line of JSON for each bug in FOLDER/triaged.jsonl; what is there for the same
plugin is not done again. A measurement, not a test: explain named 23 of 57 when it was written.
Usage: triage_planted.py KVERIFY FOLDER_OF_MUTANTS FOLDER [NAME...]
"""
import hashlib
import json
import os
import resource
import subprocess
import sys

SEED, CASES, SECONDS_MAX, SHARE = 1, 1000, 60, 0.8
# Beyond one admission and one step; a head dimension of 8 is the smallest that kvattn takes.
LIMITS = {"operations": 2 + 4, "requests": 2, "head_dim": 8, "pages": 2 + 2}


def sizes(case):
    rows = [row for op in case["ops"] if op["op"] == "step" for row in op["rows"]]
    return {"operations": len(case["ops"]),
            "requests": sum(op["op"] == "admit" for op in case["ops"]),
            "slots": sum(row.get(k, 0) for row in rows
                         for k in ("append", "pad_left", "pad_right")),
            "pages": case["pool"]["page_count"], "head_dim": case["shape"]["head_dim_k"]}


def used_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(*words):
    ran = subprocess.run(words, capture_output=True, text=True)
    return ran.returncode, ran.stdout + ran.stderr


def triage(kverify, library, folder):
    """What became of the first finding of one bug."""
    os.makedirs(folder, exist_ok=True)
    found, smaller, told = (os.path.join(folder, n) for n in ("found", "smaller.json", "explained"))
    run(kverify, "check", "--plugin", library, "--cases", str(CASES), "--seed", str(SEED),
        "--first", "--minimize-attempts", "0", "--out", folder, "--json", found)
    with open(found, encoding="utf-8") as file:
        failures = json.load(file)["failures"]
    if not failures:
        return {"problem": f"nothing found in {CASES} cases"}
    path, began = failures[0]["case"]["path"], used_seconds()
    code, said = run(kverify, "minimize", path, "--plugin", library, "--out", smaller)
    result = {"minimize_seconds": round(used_seconds() - began, 1)}
    if code != 0:
        return dict(result, problem=f"minimize: exit {code}: {said[-300:]}")
    with open(smaller, encoding="utf-8") as file:
        result["size"] = sizes(json.load(file))
    began = used_seconds()
    code, said = run(kverify, "explain", smaller, "--plugin", library, "--json", told)
    result["explain_seconds"] = round(used_seconds() - began, 1)
    if code != 0:
        return dict(result, explain_refused=said[-300:].strip())
    with open(told, encoding="utf-8") as file:
        explained = json.load(file)
    result["failure_class"] = explained["failure_class"]
    result["numeric"] = explained["numeric"]
    result["names"] = [h["name"] for h in explained["remain"]]
    return result


def judge(result, known):
    """What is wrong with it, and whether it is named."""
    if "problem" in result:
        return [result["problem"]], False
    limits = dict(LIMITS, **known.get("size", {}))
    bad = [f"{k}: {v}, at most {limits[k]} expected" for k, v in result["size"].items()
           if k in limits and v > limits[k]]
    if result["minimize_seconds"] > SECONDS_MAX:
        bad.append(f"minimised in {result['minimize_seconds']} s")
    names = [name for name in result.get("names", []) if name != "lse-wrong-only"]
    hit = any(name.startswith(tuple(known["true"])) for name in names)
    if names and not hit:
        bad.append(f"left out of {names}")
    return bad, hit and len(names) <= 3


def main():
    kverify, mutants, scratch, *only = sys.argv[1:]
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "named.json"), encoding="utf-8") as file:
        known = json.load(file)
    os.makedirs(scratch, exist_ok=True)
    path = os.path.join(scratch, "triaged.jsonl")
    done = {}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            done = {r["plugin"]: r for r in map(json.loads, filter(str.strip, file))}
    wrong = named = numeric = 0
    for name in only or sorted(known):
        library = os.path.join(mutants, f"lib{name}.so")
        with open(library, "rb") as file:
            digest = hashlib.sha256(file.read()).hexdigest()[:16]
        if digest not in done:
            result = triage(kverify, library, os.path.join(scratch, name))
            done[digest] = dict(result, bug=name, plugin=digest)
            with open(path, "a", encoding="utf-8") as file:
                file.write(json.dumps(done[digest]) + "\n")
        result = done[digest]
        bad, is_named = judge(result, known[name])
        wrong += bool(bad)
        numeric, named = numeric + result.get("numeric", True), named + is_named
        print(f"{'BAD' if bad else 'ok '} {name:<34} {result.get('minimize_seconds', 0):>5} s "
              f"{result.get('size', {})} {result.get('names', result.get('explain_refused', ''))}"
              f" {'; '.join(bad)}", flush=True)
    print(f"{wrong} too large, too late or left out; named alone or among three: {named} of "
          f"{numeric} numeric ones")
    return 1 if wrong or named < SHARE * numeric else 0


if __name__ == "__main__":
    sys.exit(main())
