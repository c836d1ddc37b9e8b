#!/usr/bin/env python3
"""Prints what a full build costs and its ten slowest files, and fails when two
cores would need more than five minutes for what `./dev build` makes: the
libraries and the binary. Tests, and headers that are compiled alone, are
counted apart.

usage: build_times.py BUILD_DIR [LIMIT_SECONDS]
tools/timed_compile.sh noted the processor seconds of each file when it was
last compiled; one that came from the compiler cache counts as next to none."""
import pathlib
import re
import sys


def kind(path):
    name = str(path)
    if "verify_interface_header_sets" in name:
        return "headers"
    return "tests" if re.search(r"tests?[_./]|_driver|parity", name) else "release"


def title(folder, path):
    """The file, or those that were compiled together."""
    name = str(path).replace("CMakeFiles/", "")[: -len(".o.time")]
    unit = re.search(r"(.*\.dir)/Unity/(unity_\w+\.cxx)$", name)
    if not unit:
        return name
    unit_file = folder / path.parent / unit.group(2)
    files = re.findall(r'^#include ".*/([^/"]+)"', unit_file.read_text(), re.M) if unit_file.exists() else []
    return f"{unit.group(1)}: {' '.join(files)}"


def main(folder, limit):
    folder, took = pathlib.Path(folder), {}
    plan = (folder / "build.ninja").read_text()  # objects of units that are no more stay behind
    for path in [*folder.rglob("*.o.time"), *folder.rglob("*.gch.time")]:
        words = path.read_text().split()
        if str(path.relative_to(folder).with_suffix("")) in plan and len(words) >= 2:
            took[path.relative_to(folder)] = float(words[-2]) + float(words[-1])
    total = dict.fromkeys(("release", "tests", "headers"), 0.0)
    for path, seconds in took.items():
        total[kind(path)] += seconds
    print(f"   release build: {total['release']:.0f} s of compiling, about {total['release'] / 2:.0f} s on two cores")
    print(f"   tests: {total['tests']:.0f} s, headers alone: {total['headers']:.0f} s; slowest of {len(took)}:")
    for path, seconds in sorted(took.items(), key=lambda item: -item[1])[:10]:
        print(f"   {seconds:6.1f} s  {title(folder, path)}")
    if total["release"] / 2 > limit:
        print(f"a release build must stay under {limit:.0f} s on two cores")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], float(sys.argv[2]) if len(sys.argv) > 2 else 300))
