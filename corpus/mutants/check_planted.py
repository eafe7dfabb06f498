"""Purpose: every planted bug applies to this tree as it is.

Contract: cheap, builds nothing; a patch that no longer applies is named with what patch(1) says of
it, and so are two patches with one number. Fails when there is none at all. `--refuses PATCH`
instead passes only when that one is refused.
Usage: check_planted.py TREE | check_planted.py TREE --refuses PATCH
"""
import collections
import glob
import os
import subprocess
import sys


def complaint(tree, patch):
    """What patch(1) says against it; "" when it applies."""
    ran = subprocess.run(["patch", "--dry-run", "--quiet", "--strip=1", "--fuzz=0", "--force",
                          f"--directory={tree}", f"--input={patch}"],
                         capture_output=True, text=True)
    return "" if ran.returncode == 0 else ran.stdout.strip() or f"exit code {ran.returncode}"


def main():
    tree = os.path.abspath(sys.argv[1])
    if sys.argv[2:3] == ["--refuses"]:
        return 0 if complaint(tree, os.path.abspath(sys.argv[3])) else 1
    folder = os.path.join(tree, "corpus", "mutants")
    patches = sorted(glob.glob(os.path.join(folder, "**", "*.patch"), recursive=True))
    bad = 0
    for patch in patches:
        said = complaint(tree, patch)
        bad += bool(said)
        if said:
            print(f"{os.path.basename(patch)}: {said}")
    numbers = collections.Counter(os.path.basename(p).split("_")[0] for p in patches)
    for number, count in numbers.items():
        bad += count > 1
        if count > 1:
            print(f"number {number}: expected one patch, got {count}")
    print(f"{len(patches)} patches, {bad} do not apply or share a number")
    return 1 if bad or not patches else 0


if __name__ == "__main__":
    sys.exit(main())
