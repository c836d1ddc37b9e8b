#!/usr/bin/env python3
"""Fails on a file over 600 lines or a function over 100, and lists what is
over 400 and 60 as worth a second look. tools/long_files.txt excepts a path,
with its reason.

usage: check_length.py [ROOT]"""
import pathlib
import re
import sys

FILE_LIMIT, FILE_LOOK, FUNCTION_LIMIT, FUNCTION_LOOK = 600, 400, 100, 60


def exceptions(root):
    path = root / "tools/long_files.txt"
    lines = path.read_text().splitlines() if path.exists() else []
    pairs = (line.split("#")[0].split(None, 1) for line in lines)
    return {pair[0] for pair in pairs if len(pair) == 2}


def functions(lines):
    """Yields (name, first line, length) of each body that opens in column 0 to
    2 of a namespace or class and closes at the same column."""
    start = None
    for number, line in enumerate(lines, 1):
        opens = re.match(r"^(\s{0,2})[^\s#/].*\{\s*$", line)
        kind = re.match(r"^\s*(namespace|struct|class|union|enum|extern)\b", line)
        closing = re.match(r"^(\s{0,2})\)( const)?( noexcept)?( override)?.* \{\s*$", line)
        if start is None and (closing or (opens and "(" in line and not kind)):
            start = (number, len((closing or opens)[1]), line.strip())
        elif start and re.match(rf"^\s{{{start[1]}}}\}}", line):
            yield start[2], start[0], number - start[0] + 1
            start = None


def main(root):
    bad, look, seen = [], [], 0
    excepted = exceptions(root)
    for path in sorted((root / "src").rglob("*")):
        if path.suffix not in (".h", ".cpp", ".inc"):
            continue
        seen += 1
        name = str(path.relative_to(root))
        lines = path.read_text(errors="replace").splitlines()
        if len(lines) > FILE_LIMIT and name not in excepted:
            bad.append(f"{name}: {len(lines)} lines, {FILE_LIMIT} are the limit")
        elif len(lines) > FILE_LOOK:
            look.append(f"{name}: {len(lines)} lines")
        for function, at, length in functions(lines):
            if length > FUNCTION_LIMIT and name not in excepted:
                bad.append(f"{name}:{at}: {length} lines in a function, {FUNCTION_LIMIT} are the limit")
            elif length > FUNCTION_LOOK:
                look.append(f"{name}:{at}: {length} lines in {function}")
    for line in look:
        print("worth a look:", line)
    print("\n".join(bad) or f"{seen} files, none too long")
    return bool(bad) or seen == 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")))
