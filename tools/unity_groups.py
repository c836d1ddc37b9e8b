#!/usr/bin/env python3
"""Prints which sources of an area are compiled together: one line a group,
paths separated by bars.

Files of one group declare no name twice at file scope, so that joining them
can neither clash nor change what a call means. What decides is the text of
lines that begin in the first column, as clang-format leaves them. A file that
defines a macro, opens a namespace to others or shares helpers of tests stays
alone.

usage: unity_groups.py SIZE FILE..."""
import pathlib
import re
import sys

QUALIFIED = re.compile(r"\w+(<[^<>]*>)?::~?\w+\s*\(")
ALONE = re.compile(r'\s*#\s*define\b|using namespace\b|#include "hearth/.*_test(_impl)?\.h"')
TEST = re.compile(r"(TEST|TEST_F|TEST_P|TYPED_TEST|INSTANTIATE_\w+)\(")
SKIPPED = re.compile(r"(#|//|/\*|\}|\)|namespace\b|template\b|extern\b|using namespace\b)")
DECLARED = re.compile(r"\b(?:struct|class|enum|union|concept|using)\s+(?:class\s+)?(?:\[\[.*?\]\]\s*)?([A-Za-z_]\w*)")
PLAIN_ENUM = re.compile(r"^enum (?!class)[^{;]*\{([^}]*)\}", re.M)
NAMED = re.compile(r"([A-Za-z_]\w*)\s*(?:\[[^\]]*\]\s*)*(?:[(={;,]|$)")


def names(text):
    """Names that the file declares at file scope; more than there are does no
    harm. None when it cannot share a unit."""
    found = set()
    for body in PLAIN_ENUM.findall(text):
        found.update(re.findall(r"[A-Za-z_]\w*", body))
    for line in text.splitlines():
        if ALONE.match(line):
            return None
        if not line or line[0].isspace() or SKIPPED.match(line) or TEST.match(line):
            continue
        line = line.split("//")[0]
        declared = DECLARED.search(line)
        if declared:
            found.add(declared.group(1))
            continue
        head = line.split("=")[0]
        if not QUALIFIED.search(head.split("(")[0] + "("):
            found.update(NAMED.findall(head.split("(")[0] + "("))
            found.update(NAMED.findall(line.split("(")[0]))
    return found


def groups(paths, size):
    made = []
    for path in sorted(paths):
        declared = names(pathlib.Path(path).read_text())
        place = None
        if declared is not None:
            place = next((g for g in made if len(g[0]) < size and not g[1] & declared), None)
            if place is None:
                place = ([], set())
                made.append(place)
            place[0].append(path)
            place[1].update(declared)
    return [files for files, _ in made if len(files) > 1]


if __name__ == "__main__":
    for files in groups(sys.argv[2:], int(sys.argv[1])):
        print("|".join(files))
