#!/usr/bin/env python3
"""Fails when an area includes, or depends in CMake on, one it may not.

usage: check_layers.py [ROOT]
tests/layers.txt has one line an area, lowest first: name: allowed allowed ...
An allowance must name an earlier line, so the file cannot describe a cycle."""
import pathlib
import re
import sys


def read_layers(path):
    may = {}
    for line in path.read_text().splitlines():
        line = line.split("#")[0].strip()
        if not line:
            continue
        name, _, rest = line.partition(":")
        late = [area for area in rest.split() if area not in may]
        if late:
            sys.exit(f"{path}: {name} allows {late} before they are listed")
        may[name] = set(rest.split())
    return may


def wrong_includes(path, area, allowed):
    for number, line in enumerate(path.open(errors="replace"), 1):
        hit = re.match(r'\s*#\s*include\s+["<]hearth/([^/">]+)/', line)
        if hit and hit[1] != area and hit[1] not in allowed:
            yield f"{path}:{number}: {area} may not include {hit[1]}"
        if area in ("base", "hardware", "profile", "kernels", "io", "hub", "text", "data"):
            if re.match(r'\s*#\s*include\s+["<]mlx/', line):
                yield f"{path}:{number}: {area} may not include MLX"


def wrong_depends(path, area, allowed):
    hit = re.search(r"hearth_area\(\w+(.*?)\)", path.read_text(), re.S)
    words = hit[1].split() if hit else []
    if "DEPENDS" not in words:
        return
    for word in words[words.index("DEPENDS") + 1 :]:
        if word in ("LINK", "MLX", "PRECOMPILE"):
            return
        if word not in allowed:
            yield f"{path}: {area} may not depend on {word}"


def main(root):
    may = read_layers(root / "tests/layers.txt")
    source, bad, seen = root / "src/hearth", [], 0
    for path in sorted(source.rglob("*")):
        if path.parent == source:
            continue
        area = path.relative_to(source).parts[0]
        if path.is_file() and area not in may:
            bad.append(f"{path}: area {area} is not in tests/layers.txt")
        elif path.suffix in (".h", ".cpp", ".inc"):
            seen += 1
            bad += wrong_includes(path, area, may[area])
        elif path.name == "CMakeLists.txt":
            bad += wrong_depends(path, area, may[area])
    print("\n".join(bad) or f"{len(may)} areas, {seen} files, no edge against the order")
    return bool(bad) or seen == 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")))
