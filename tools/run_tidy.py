#!/usr/bin/env python3
"""Runs clang-tidy over the project on every core, skipping every file
that was clean before and has not changed since, its headers included.

usage: run_tidy.py BUILD_DIR [--all]"""
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TIDY = ROOT / ".deps/venv/bin/clang-tidy"


def commands(build):
    """One compile command a source file or unit of files, tests left out; for
    kernels the plainest table's."""
    chosen = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        path, command = pathlib.Path(entry["file"]), entry["command"]
        if not is_unit(path) and (ROOT / "src") not in path.parents:
            continue
        if path.name.endswith("_test.cpp") or "_tests.dir/" in command:
            continue
        if not path.name.endswith("_isa.cpp") or "HEARTH_ISA=generic" in command:
            chosen.setdefault(path, entry)
    return chosen


def is_unit(path):
    """Whether CMake made it to compile several sources at once."""
    return path.parent.name == "Unity"


def dependencies(build):
    """Object file -> the project's files it was made from, as ninja knows."""
    text = subprocess.run(["ninja", "-C", str(build), "-t", "deps"], capture_output=True, text=True).stdout
    deps, current = {}, None
    for line in text.splitlines():
        if line and not line[0].isspace():
            current = deps.setdefault(line.split(":")[0], [])
        elif current is not None and str(ROOT / "src") in line:
            current.append(line.strip())
    return deps


def object_of(entry):
    """Older versions of CMake name it in the command alone."""
    return entry.get("output") or re.search(r" -o (\S+)", entry["command"])[1]


def rules():
    """What decides a finding beside the code: the checks and their version."""
    return [ROOT / "tools/pins.txt", ROOT / ".clang-tidy", *(ROOT / "src").rglob(".clang-tidy")]


def fingerprint(paths):
    digest = hashlib.sha256()
    for path in sorted(set(map(str, paths))):
        digest.update(path.encode() + pathlib.Path(path).read_bytes())
    return digest.hexdigest()


def check(path, build):
    # GCC's own flags mean nothing to clang, and GCC's library uses names that
    # clang calls deprecated.
    off = ["unknown-warning-option", "unused-command-line-argument", "ignored-optimization-argument", "ignored-gch", "deprecated-declarations"]
    options = [f"--extra-arg=-Wno-{warning}" for warning in off]
    if is_unit(path):
        # It includes source files: that is its point.
        options.append("--checks=-bugprone-suspicious-include")
    run = subprocess.run([str(TIDY), "-p", str(build), "--quiet", *options, str(path)], capture_output=True, text=True)
    return run.returncode, run.stdout + (run.stderr if run.returncode else "")


def main(build, everything):
    build = pathlib.Path(build).resolve()
    record = build / "tidy-clean.json"
    clean = json.loads(record.read_text()) if record.exists() and not everything else {}
    deps = dependencies(build)
    prints, todo = {}, []
    for path, entry in commands(build).items():
        known = deps[object_of(entry)]
        prints[path] = fingerprint([path, *known, *rules()])
        if clean.get(str(path)) != prints[path]:
            todo.append(path)
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = {pool.submit(check, path, build): path for path in sorted(todo)}
        for job in concurrent.futures.as_completed(jobs):
            status, text = job.result()
            path = jobs[job]
            if status:
                failed += 1
                print(text)
            else:
                clean[str(path)] = prints[path]
                record.write_text(json.dumps(clean))
    print(f"   {len(prints)} files, {len(todo)} checked, {failed} with findings")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], "--all" in sys.argv))
