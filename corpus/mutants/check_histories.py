"""Purpose: `kverify check --level engine`, as a shell sees it: silent on the correct engine, and
exit code 1, a case and its replay for a planted bug.

Contract: also holds --keep-going to more than one finding and --minutes to its limit.
Usage: check_histories.py KVERIFY PLUGIN FOLDER_OF_MUTANTS FOLDER MUTANT...
"""
import json
import os
import subprocess
import sys

SECONDS_MAX = 60


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
           code == 0 and result["histories"] == 40 and not result["failures"],
           (code, result, err))
    # Without a number of cases the time alone ends it.
    code, result, err = check(plugin, "--minutes", "0.01")
    expect("--minutes ends it", code == 0 and result["histories"] > 0, (code, result, err))
    for name in names:
        library = os.path.join(mutants, f"lib{name}.so")
        code, result, err = check(library, "--cases", "400")
        one = len(result.get("failures", [])) == 1
        expect(f"{name}: exit code 1 and one failure", code == 1 and one, (code, result, err))
        if one:
            case = result["failures"][0]["case"]
            code, out, err = run(kverify, "replay", case, "--plugin", library)
            expect(f"{name}: its case fails again", code == 1, (code, out, err))
            code, out, err = run(kverify, "replay", case, "--plugin", plugin)
            expect(f"{name}: the correct engine passes its case", code == 0, (code, out, err))
    code, result, err = check(library, "--cases", "40", "--keep-going")
    expect(f"{name}: --keep-going finds more than one in all 40",
           code == 1 and result["failed"] > 1 and result["histories"] == 40, (code, result, err))
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
