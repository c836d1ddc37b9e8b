#!/usr/bin/env python3
"""Prints what a full build costs and its ten slowest files, and fails when two
cores would need more than five minutes for what `./dev build` makes: the
libraries and the binary. Tests are counted apart.

usage: build_times.py BUILD_DIR [LIMIT_SECONDS]
tools/timed_compile.sh noted the processor seconds of each file when it was
last compiled; one that came from the compiler cache counts as next to none."""
import pathlib
import sys


def main(folder, limit):
    folder, took = pathlib.Path(folder), {}
    for path in folder.rglob("*.o.time"):
        words = path.read_text().split()
        if path.with_suffix("").exists() and len(words) >= 2:
            took[path.relative_to(folder)] = float(words[-2]) + float(words[-1])
    tests = sum(seconds for path, seconds in took.items() if "test" in str(path))
    total = sum(took.values()) - tests
    print(f"   release build: {total:.0f} s of compiling, about {total / 2:.0f} s on two cores")
    print(f"   tests: {tests:.0f} s of compiling; slowest of all {len(took)} files:")
    for path, seconds in sorted(took.items(), key=lambda item: -item[1])[:10]:
        print(f"   {seconds:6.1f} s  {str(path).replace('CMakeFiles/', '').replace('.o.time', '')}")
    if total / 2 > limit:
        print(f"a release build must stay under {limit:.0f} s on two cores")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], float(sys.argv[2]) if len(sys.argv) > 2 else 300))
