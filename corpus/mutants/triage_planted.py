"""Purpose: what the minimiser makes of every planted bug, and `explain` of those that show as a
wrong value.

Contract: of each bug, the first finding of `check` is minimised, within a minute of processor time,
to a case that fails every time and is no larger than planted_minima.json (the smallest that is
known to show it) and BEYOND allow. Those in named.json are explained too: explain leaves no bug out
of a set that it prints: the names that are true of it stand there, none for a bug that the
catalogue has no word for. It names, alone or among three, SHARE of all. One line of JSON for each
bug in FOLDER/triaged.jsonl; what is there for the same plugin and the same kverify is not done
again. Exit 1 when that does not hold, 2 for bad input, 3 when `check` cannot run. A measurement,
not a test. Three of the 60 of named.json (13, 18, 126) are undefined data on the CPU device before
they are a value, and not counted.
Usage: triage_planted.py KVERIFY FOLDER_OF_MUTANTS FOLDER [NAME...]
"""
import glob
import hashlib
import json
import os
import resource
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from minima import sizes  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
SEED, CASES, SECONDS_MAX, SHARE = 1, 1000, 60, 0.8
WALL_SECONDS = 900  # SECONDS_MAX is of processor time: others may use the machine
# A head dimension that is larger than need be is a minimiser that stopped.
BEYOND = {"operations": 4, "pages": 2, "requests": 0, "head_dim": 0}
REQUESTS_MIN = 2  # as many a case may always have


def refuse(status, sentence):
    print(f"triage_planted: {sentence}", file=sys.stderr)
    sys.exit(status)


def digest_of(*paths):
    digest = hashlib.sha256()
    for path in paths:
        try:
            with open(path, "rb") as file:
                digest.update(file.read())
        except OSError as error:
            refuse(2, f"{path}: {error.strerror}")
    return digest.hexdigest()[:16]


def read_done(path):
    """By digest; a line that was torn by a kill is done again."""
    done = {}
    if os.path.exists(path):
        with open(path, encoding="utf-8", errors="replace") as file:
            for line in file:
                try:
                    result = json.loads(line)
                    done[result["plugin"]] = result
                except (ValueError, KeyError, TypeError):
                    continue
    return done


def used_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(*words):
    ran = subprocess.run(words, capture_output=True, text=True)
    return ran.returncode, ran.stdout + ran.stderr


def planted():
    """Names of those that must be killed, and whether they are an engine's."""
    found = {}
    for path in glob.glob(os.path.join(HERE, "*.patch")):
        with open(path, encoding="utf-8") as file:
            text = file.read()
        if "\nExpect: killed" in text:
            found[os.path.basename(path)[:-len(".patch")]] = "\nLevel: engine" in text
    return found


def triage(kverify, library, folder, engine, explained):
    """What became of the first finding of one bug."""
    os.makedirs(folder, exist_ok=True)
    found, smaller, told = (os.path.join(folder, n) for n in ("found", "smaller.json", "explained"))
    if os.path.exists(found):
        os.remove(found)  # of another kverify
    level = ["--level", "engine"] if engine else []
    code, said = run(kverify, "check", *level, "--plugin", library, "--cases", str(CASES), "--seed",
                     str(SEED), "--first", "--minimize-attempts", "0", "--out", folder, "--json",
                     found)
    if code not in (0, 1):
        refuse(3, f"check of {library}: exit {code}: {said[-300:].strip()}")
    with open(found, encoding="utf-8") as file:
        failures = json.load(file)["failures"]
    if not failures:
        return {"problem": f"nothing found in {CASES} cases"}
    path, began = failures[0]["case"]["path"], used_seconds()
    code, said = run(kverify, "minimize", path, "--plugin", library, "--out", smaller,
                     "--seconds", str(WALL_SECONDS))
    result = {"minimize_seconds": round(used_seconds() - began, 1)}
    if code != 0:
        return dict(result, problem=f"minimize: exit {code}: {said[-300:]}")
    result["size"] = sizes(smaller)
    result["fault"] = said.split("\n", 1)[0]
    if not explained:
        return result
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


def too_large(size, least):
    """What of a minimised case is larger than the smallest that is known, and how much may be."""
    most = {key: least[key] + beyond for key, beyond in BEYOND.items() if key in least}
    if "requests" in most:
        most["requests"] = max(most["requests"], REQUESTS_MIN)
    return [f"{key}: {size[key]}, at most {limit} expected" for key, limit in most.items()
            if size[key] > limit]


def judge_size(result, least):
    if "problem" in result:
        return [result["problem"]]
    bad = too_large(result["size"], least) if least else ["no expected minimum"]
    if result["minimize_seconds"] > SECONDS_MAX:
        bad.append(f"minimised in {result['minimize_seconds']} s")
    return bad


def judge_names(result, true):
    """Whether it is named, and what is wrong with the names."""
    names = [name for name in result.get("names", []) if name != "lse-wrong-only"]
    hit = any(name.startswith(tuple(true)) for name in names)
    return hit and len(names) <= 3, [f"left out of {names}"] if names and not hit else []


def read_table(name):
    with open(os.path.join(HERE, name), encoding="utf-8") as file:
        return json.load(file)


def main():
    if len(sys.argv) < 4:
        refuse(2, __doc__.rstrip().split("\n")[-1])
    kverify, mutants, scratch, *only = sys.argv[1:]
    bugs, known, minima = planted(), read_table("named.json"), read_table("planted_minima.json")
    for name in only:
        if name not in bugs:
            refuse(2, f"expected the name of a planted bug, got {name}")
    os.makedirs(scratch, exist_ok=True)
    path = os.path.join(scratch, "triaged.jsonl")
    done = read_done(path)
    small = wrong = named = numeric = 0
    names = only or sorted(bugs)
    for name in names:
        library = os.path.join(mutants, f"lib{name}.so")
        digest = digest_of(kverify, library)
        if digest not in done:
            result = triage(kverify, library, os.path.join(scratch, name), bugs[name],
                            name in known)
            done[digest] = dict(result, bug=name, plugin=digest)
            with open(path, "a", encoding="utf-8") as file:
                file.write("\n" + json.dumps(done[digest]))  # what was torn stays alone
        result = done[digest]
        bad = judge_size(result, minima.get(name))
        small += not bad
        if name in known:
            is_named, left_out = judge_names(result, known[name]["true"])
            wrong += bool(left_out)
            numeric, named = numeric + result.get("numeric", True), named + is_named
            bad += left_out
        print(f"{'BAD' if bad else 'ok '} {name:<34} {result.get('minimize_seconds', 0):>5} s "
              f"{result.get('size', {})} {result.get('names', result.get('explain_refused', ''))}"
              f" {'; '.join(bad)}", flush=True)
    print(f"{small} of {len(names)} as small as expected, in time; named alone or among three: "
          f"{named} of {numeric} numeric ones, {wrong} left out of a set")
    return 1 if small < len(names) or wrong or named < SHARE * numeric else 0


if __name__ == "__main__":
    sys.exit(main())
