"""Purpose: `kverify check --level engine`, as a shell sees it: silent on the correct engine, and
exit code 1, a case and its replay for a planted bug.

Contract: also holds --keep-going to more than one finding and --minutes to its limit.
Usage: check_histories.py KVERIFY PLUGIN FOLDER_OF_MUTANTS FOLDER MUTANT...
"""
import json
import os
import subprocess
import sys

SECONDS_MAX = 300  # against a hang; nothing here depends on time
BEYOND = 4  # operations that the minimiser may leave besides the necessary ones
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "history_minima.json"),
          encoding="utf-8") as minima:
    MINIMA = json.load(minima)


def run(kverify, *arguments):
    ran = subprocess.run([kverify, *arguments], capture_output=True, text=True,
                         timeout=SECONDS_MAX)
    return ran.returncode, ran.stdout, ran.stderr


def main():
    kverify, plugin, mutants, folder, *names = sys.argv[1:]
    bad = 0

    def expect(what, holds, output):
        nonlocal bad
        bad += not holds
        print(f"{'ok ' if holds else 'BAD'} {what}" + ("" if holds else f": {output}"))

    def check(library, *arguments):
        path = os.path.join(folder, "result.json")
        os.makedirs(folder, exist_ok=True)
        code, _, err = run(kverify, "check", "--level", "engine", "--seed", "1", "--plugin",
                           library, "--out", folder, "--json", path, *arguments)
        if not os.path.exists(path):
            return code, {}, err
        with open(path, encoding="utf-8") as file:
            result = json.load(file)
        os.remove(path)
        return code, result, err

    code, result, err = check(plugin, "--cases", "40")
    expect("the correct engine passes 40 histories",
           code == 0 and result["summary"]["pass"] == 40 and not result["failures"],
           (code, result, err))
    # Without a number of cases the time alone ends it.
    code, result, err = check(plugin, "--minutes", "0.01")
    expect("--minutes ends it", code == 0 and result["summary"]["pass"] > 0, (code, result, err))
    for name in names:
        library = os.path.join(mutants, f"lib{name}.so")
        code, result, err = check(library, "--cases", "400", "--first", "--minimize-attempts", "0")
        one = len(result.get("failures", [])) == 1
        expect(f"{name}: exit code 1 and one failure", code == 1 and one, (code, result, err))
        if one:
            case = result["failures"][0]["case"]["path"]
            minimized = os.path.join(folder, name + ".smaller")
            code, out, err = run(kverify, "replay", case, "--plugin", library)
            expect(f"{name}: its case fails again", code == 1, (code, out, err))
            code, out, err = run(kverify, "replay", case, "--plugin", plugin)
            expect(f"{name}: the correct engine passes its case", code == 0, (code, out, err))
            code, out, err = run(kverify, "minimize", case, "--plugin", library, "--out", minimized,
                                 "--attempts", "600", "--seconds", "280")
            expect(f"{name}: is minimised", code == 0, (code, out, err))
            with open(minimized, encoding="utf-8") as file:
                small = len(json.load(file)["ops"])
            most = MINIMA[name] + BEYOND
            expect(f"{name}: to at most {most} operations", small <= most, small)
            code, out, err = run(kverify, "replay", minimized, "--plugin", library)
            expect(f"{name}: which fails, too", code == 1, (code, out, err))
    code, result, err = check(library, "--cases", "40", "--keep-going", "--minimize-attempts", "0")
    expect(f"{name}: --keep-going finds more than one in all 40",
           code == 1 and result["summary"]["fail"] > 1 and result["summary"]["cases"] == 40,
           (code, result, err))
    for_ci(kverify, library, folder, expect)
    return bad > 0


def for_ci(kverify, library, folder, expect):
    """What a pipeline gets: a baseline that is taken note of, and pages that show the history."""
    baseline, page, junit, sarif = (os.path.join(folder, name) for name in
                                    ("known", "page.html", "junit.xml", "findings.sarif"))
    common = ["check", "--level", "engine", "--seed", "1", "--cases", "60", "--plugin", library,
              "--out", folder, "--minimize-attempts", "0"]
    code, out, err = run(kverify, *common, "--write-baseline", baseline, "--html", page,
                         "--junit", junit, "--sarif", sarif, "--annotations")
    expect("findings for CI", code == 1 and "::error" in out, (code, out, err))
    with open(page, encoding="utf-8") as file:
        html = file.read()
    expect("the page shows who owned which page", "whose they are after each call" in html, page)
    with open(junit, encoding="utf-8") as file:
        expect("JUnit names it", "<failure" in file.read(), junit)
    with open(sarif, encoding="utf-8") as file:
        expect("SARIF names it", json.load(file)["runs"][0]["results"], sarif)
    code, out, err = run(kverify, *common, "--baseline", baseline)
    expect("known faults do not fail the run", code == 0, (code, out, err))
    code, out, err = run(kverify, "triage", folder, "--runs", "1", "--plugin", library)
    expect("triage takes histories", code == 1 and "faults as far as known" in out,
           (code, out, err))
    case = next(path for path in sorted(os.listdir(folder))
                if path.endswith(".json") and not path.endswith(".trace.json"))
    code, out, err = run(kverify, "report", os.path.join(folder, case), "--plugin", library,
                         "-o", page)
    expect("a single history is reported", code == 1, (code, out, err))
    code, out, err = run(kverify, "explain", os.path.join(folder, case), "--plugin", library)
    expect("explain tells its story", code == 0 and "found by" in out, (code, out, err))


if __name__ == "__main__":
    sys.exit(main())
