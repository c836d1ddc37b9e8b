#!/usr/bin/env python3
"""Fails when a page for developers names what is not in the tree.

usage: check_names.py [ROOT]
Looks at what stands between backticks in DEVELOPMENT.md and CONTRIBUTING.md: a
path must exist (from the root, src/hearth, tests or tools; a * is a wildcard), a name of code
(`Foo::bar`, `some_name`, `CamelCase`) must stand in a source as a word. foo, x
and NAME stand for any name."""
import pathlib
import re
import sys

PAGES = ("DEVELOPMENT.md", "CONTRIBUTING.md")
FOLDERS = ("", "src/hearth", "tests", "tools")
ENDINGS = r"\.(?:h|cpp|py|mjs|txt|yaml|json|md|sh|cmake)$"
# Words of other tools, of the shell, and names that stand for any name.
ELSEWHERE = {"snake_case"}
ANY_NAME = r"(?:^|[/_])(?:foo|x|NAME)(?:[_.]|$)"


def quoted(page):
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.S)
    for number, line in enumerate(text.splitlines(), 1):
        for word in re.findall(r"`([^`]+)`", line):
            yield number, word


def is_path(word):
    # What begins with a slash is a route of the server; `.h` is an ending.
    return not re.fullmatch(r"\.\w+", word) and bool(re.fullmatch(r"[\w.*-][\w./*-]*", word)) and ("/" in word or re.search(ENDINGS, word))


def path_exists(root, word):
    if word.startswith(("build/", ".deps/")) or re.search(ANY_NAME, word):
        return True
    word = word.removeprefix("./").rstrip("/")
    # The last: named from the folder that its paragraph is about.
    return any(any((root / folder).glob(word)) for folder in FOLDERS) or any((root / "src").rglob(word))


def identifiers(word):
    """The names of code in a quoted word, none where it is a command or text."""
    if " " in word or not re.fullmatch(r"[A-Za-z_][\w:.]*(?:\(.*\))?", word):
        return []
    parts = [p for p in re.split(r"::|\.|\(.*\)", word) if p]
    return [p for p in parts if ("_" in p.strip("_") or re.search(r"[a-z][A-Z]", p)) and
            p not in ELSEWHERE and not re.search(ANY_NAME, p)]


def words_of(root):
    known = set()
    for folder in ("src", "tests", "tools", "cmake", "examples"):
        for path in (root / folder).rglob("*"):
            if path.is_file() and path.suffix in (".h", ".cpp", ".py", ".sh", ".cmake", ".txt"):
                known.update(re.findall(r"\w+", path.read_text(errors="replace")))
    return known


def main(root):
    known, bad = words_of(root), []
    for name in PAGES:
        for number, word in quoted(root / name):
            if is_path(word):
                if not path_exists(root, word):
                    bad.append(f"{name}:{number}: there is no {word}")
            else:
                bad += [f"{name}:{number}: no source has the name {part}" for part in identifiers(word) if part not in known]
    print("\n".join(bad) or "every path and name of the developers' pages is in the tree")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")))
