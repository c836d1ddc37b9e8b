#!/usr/bin/env python3
"""Prints what a full build costs and its ten slowest files, from ninja's log,
and fails when two cores would need more than five minutes for it.

usage: build_times.py BUILD_DIR [LIMIT_SECONDS]
A file that came from the compiler cache counts with the time it took then."""
import pathlib
import sys


def main(folder, limit):
    log = pathlib.Path(folder) / ".ninja_log"
    took = {}
    for line in log.read_text().splitlines()[1:]:
        start, end, _, output, _ = line.split("\t")
        if output.endswith(".o") and (pathlib.Path(folder) / output).exists():
            took[output] = (int(end) - int(start)) / 1000
    total = sum(took.values())
    print(f"   {len(took)} files, {total:.0f} s of compiling, about {total / 2:.0f} s on two cores; slowest:")
    for output, seconds in sorted(took.items(), key=lambda item: -item[1])[:10]:
        print(f"   {seconds:6.1f} s  {output.replace('CMakeFiles/', '')}")
    if total / 2 > limit:
        print(f"a full build must stay under {limit} s on two cores")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], float(sys.argv[2]) if len(sys.argv) > 2 else 300))
