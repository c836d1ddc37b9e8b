#!/usr/bin/env python3
"""Says how many test cases ran, how many were skipped, and why.

usage: test_report.py RESULTS_DIR
Reads GoogleTest's XML of each test binary and ctest's JUnit file."""
import collections
import pathlib
import re
import sys
import xml.etree.ElementTree as xml


def cases_of(path):
    for case in xml.parse(path).getroot().iter("testcase"):
        skip = case.find("skipped")
        reason = "" if skip is None else skip.get("message") or skip.text or ""
        yield skip is not None, reason.strip() or "no reason recorded"


def scripts_of(path, with_cases):
    """A script is one case; cases that unittest skipped inside of it count too."""
    for case in xml.parse(path).getroot().iter("testcase"):
        name = case.get("name")
        if name in with_cases:
            continue
        output = case.findtext("system-out") or ""
        whole = re.search(r"^(?:SKIP|skipped):? (.*)$", output, re.M)
        yield case.get("status") in ("notrun", "disabled"), f"{name}: {whole[1] if whole else 'no reason recorded'}"
        for reason in re.findall(r" \.\.\. skipped ['\"](.*)['\"]$", output, re.M):
            yield True, f"{name}: {reason}"


def main(folder):
    folder = pathlib.Path(folder)
    ran, skipped = 0, collections.Counter()
    binaries = {path.stem: path for path in sorted(folder.glob("unit.*.xml"))}
    found = [case for path in binaries.values() for case in cases_of(path)]
    if (folder / "ctest.xml").exists():
        found += scripts_of(folder / "ctest.xml", binaries.keys())
    for skip, reason in found:
        if skip:
            # The first line of GoogleTest's message is the place in the source.
            lines = [line for line in reason.splitlines() if not re.match(r"^\S+:\d+$", line)]
            skipped[lines[0] if lines else reason] += 1
        else:
            ran += 1
    print(f"\n{ran} test cases ran, {sum(skipped.values())} were skipped")
    for reason, count in skipped.most_common():
        print(f"  {count} skipped: {reason}")
    print()


if __name__ == "__main__":
    main(sys.argv[1])
