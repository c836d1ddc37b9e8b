#!/usr/bin/env python3
"""Fails when the README's tree and the folders of the project disagree.

usage: check_map.py [ROOT]
The tree is the lines of README.md such as
"│   ├── base/        errors, ..."; each folder of the project and of
src/hearth must be in it with a phrase, and the reverse."""
import pathlib
import re
import sys

SKIPPED = {".git", ".github", ".ci", "build", ".deps", "runs"}


def tree_of(readme):
    folders, parents, margin = {}, [], None
    for line in readme.splitlines():
        hit = re.match(r"^([│ ]*)[├└]── (\S+?)/?(?:\s+(.*))?$", line)
        if not hit:
            continue
        margin = len(hit[1]) if margin is None else margin
        depth = (len(hit[1]) - margin) // 4
        name = hit[2].rstrip("/")
        parents = parents[:depth] + [name]
        path = "/".join(parents)
        folders[path] = (hit[3] or "").strip()
    return folders


def ignored(root, path):
    """Whether .gitignore names this top-level folder."""
    lines = (root / ".gitignore").read_text().splitlines() if (root / ".gitignore").exists() else []
    return path in {line.strip("/ ") for line in lines}


def folders_of(root):
    top = [p.name for p in root.iterdir() if p.is_dir()]
    found = {n for n in top if n not in SKIPPED and not ignored(root, n)}
    areas = {f"src/hearth/{p.name}" for p in (root / "src/hearth").iterdir() if p.is_dir()}
    return found | areas


def main(root):
    tree = tree_of((root / "README.md").read_text())
    real = folders_of(root)
    bad = [f"README.md: the tree lacks {f}/" for f in sorted(real - tree.keys()) if f != "src"]
    bad += [f"README.md: {f}/ has no phrase" for f in sorted(real & tree.keys()) if not tree[f] and f not in ("src", "src/hearth")]
    bad += [
        f"README.md: the tree names {f}, which does not exist"
        for f in sorted(tree)
        if not (root / f).exists()
    ]
    print("\n".join(bad) or f"{len(real)} folders, all in the README's tree")
    return bool(bad) or not tree


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")))
