#!/usr/bin/env python3
"""Runs clang-tidy over the project on every core, skipping every file
that was clean before and has not changed since, its headers included.

Folders in tools/tidy_later.txt are left out.

usage: run_tidy.py BUILD_DIR [--all]"""
import concurrent.futures
import hashlib
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TIDY = ROOT / ".deps/venv/bin/clang-tidy"


def later():
    lines = (ROOT / "tools/tidy_later.txt").read_text().splitlines()
    return tuple(str(ROOT / line) for line in lines if line and not line.startswith("#"))


def commands(build):
    """One compile command a source file, tests left out; for kernels the
    plainest table's."""
    chosen = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        path = pathlib.Path(entry["file"])
        if (ROOT / "src") not in path.parents or path.name.endswith("_test.cpp"):
            continue
        if str(path).startswith(later()):
            continue
        isa_file = path.name.endswith("_isa.cpp")
        if not isa_file or "HEARTH_ISA=generic" in entry["command"]:
            chosen.setdefault(path, entry)
    return chosen


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


def fingerprint(paths):
    digest = hashlib.sha256((ROOT / ".clang-tidy").read_bytes())
    for path in sorted(set(map(str, paths))):
        digest.update(path.encode() + pathlib.Path(path).read_bytes())
    return digest.hexdigest()


def check(path, build):
    # GCC's own flags mean nothing to clang.
    # GCC's library uses names that clang calls deprecated.
    off = ["unknown-warning-option", "unused-command-line-argument", "ignored-optimization-argument", "ignored-gch", "deprecated-declarations"]
    unknown = [f"--extra-arg=-Wno-{warning}" for warning in off]
    run = subprocess.run([str(TIDY), "-p", str(build), "--quiet", *unknown, str(path)], capture_output=True, text=True)
    return run.returncode, run.stdout + (run.stderr if run.returncode else "")


def main(build, everything):
    build = pathlib.Path(build).resolve()
    record = build / "tidy-clean.json"
    clean = json.loads(record.read_text()) if record.exists() and not everything else {}
    deps = dependencies(build)
    prints, todo = {}, []
    for path, entry in commands(build).items():
        known = deps.get(entry.get("output", ""), [])
        prints[path] = fingerprint([path, *known])
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
