#!/usr/bin/env python3
"""Fails when a source does not open with what it is.

usage: check_openings.py [ROOT]
A header says it in a comment under `#pragma once`, a script in its docstring
or first comment. A .cpp says it in a comment at its top, unless its first
include of ours is the header of its own name (of `x.cpp`, `x_test.cpp`, `x_linux.cpp`
or `x_more.cpp` that is `x.h` or `x_impl.h` beside it): then the header has
said it. The page of the chat and generated files count too."""
import pathlib
import re
import sys

FOLDERS = ("src", "tests", "tools", "examples", "cmake")
COMMENT = {".h": "//", ".cpp": "//", ".py": ('"""', "#"), ".sh": "#", ".cmake": "#",
           ".js": ("//", "/*"), ".mjs": ("//", "/*"), ".css": "/*"}
PREAMBLE = r"#!.*|#pragma once|# shellcheck .*|# -\*-.*|\"use strict\";|\s*"


def first_line(lines):
    return next((line for line in lines if not re.fullmatch(PREAMBLE, line)), "")


def said_by_header(path, line):
    """Whether the first include is a header that the file's name begins with."""
    included = re.match(r'#include "(?:[\w/]*/)?(\w+?)(?:_impl)?(?:_test)?\.h"', line)
    if not included or path.suffix != ".cpp":
        return False
    own, header = path.stem, included[1]
    # ops/<op>/cpu.cpp and its like begin with op.h of their folder.
    return own.startswith(header) or header == "op"


def main(root):
    bad, seen = [], 0
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in COMMENT or not path.is_file() or "golden" in path.parts:
                continue
            seen += 1
            lines = path.read_text(errors="replace").splitlines()
            own = next((line for line in lines if line.startswith('#include "hearth/')), "")
            if not first_line(lines).startswith(COMMENT[path.suffix]) and not said_by_header(path, own):
                bad.append(f"{path.relative_to(root)}: does not open with what it is")
    print("\n".join(bad) or f"{seen} sources open with what they are")
    return bool(bad) or seen == 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")))
