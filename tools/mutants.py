#!/usr/bin/env python3
"""Plants faults in a copy of the sources, runs the tests that must see them, and prints which survive.

usage: mutants.py [SCRATCH] [--only NAME...] [--jobs N] [--again] [--list | --check [ROOT]]

SCRATCH is a checkout of its own that this may write to (build/mutants of this tree, made when it is missing); it must
have no changes. All faults of tools/mutants/*.txt are compiled in at once, each behind a switch that the variable
HEARTH_MUTANT throws, so that one build serves them all. Each test is run without a fault first, and must pass. What was
found is kept in SCRATCH/build/mutants.jsonl, so that a run that was interrupted goes on, as long as sources and tests
are the same (--again: all anew). The sources are put back at the end, however that comes. --check only looks whether
every fault can be planted. Exit code 1: a fault survived, or a list is wrong."""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from mutant_list import ListError, planted, read_lists  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
LONGEST = 600  # seconds of a test
BODIES = "src/hearth/ops/gpu_kernel/body_impl.h"  # included beside every body of a GPU kernel
SWITCH = """#pragma once
// Written by tools/mutants.py: whether the fault of that name is switched on.
#include <cstdlib>
#include <cstring>
#pragma GCC diagnostic ignored "-Wsign-compare"
inline bool hearth_planted(const char* name) {
  static const char* const on = std::getenv("HEARTH_MUTANT");
  return on != nullptr && std::strcmp(on, name) == 0;
}
"""


def by_file(mutants):
    out = {}
    for m in mutants:
        out.setdefault(m.file, []).append(m)
    return out


def check(root):
    """Every fault can be planted, and every list is well formed."""
    mutants = read_lists(root)
    for file, some in by_file(mutants).items():
        path = root / file
        if not path.is_file():
            raise ListError(f"{some[0].where}: there is no {file}")
        planted(some, path.read_text())
    print(f"{len(mutants)} faults in {len(by_file(mutants))} files can be planted")


class Tree:
    """The scratch checkout while faults are in it."""

    def __init__(self, path):
        self.path = path
        self.build = path / "build/release"
        self.kept = {}
        self.sources = subprocess.run(["git", "rev-parse", "HEAD:src", "HEAD:tests"], cwd=path, check=True,
                                      capture_output=True, text=True).stdout

    def refuse_changes(self):
        dirty = subprocess.run(["git", "status", "--porcelain", "--untracked-files=no"], cwd=self.path, check=True,
                               capture_output=True, text=True).stdout
        if dirty:
            raise ListError(f"{self.path} must have no changes, got:\n{dirty}")

    def plant(self, mutants):
        switch = self.path / "build/planted.h"
        switch.parent.mkdir(exist_ok=True)
        if not switch.exists() or switch.read_text() != SWITCH:
            switch.write_text(SWITCH)
        files = by_file(mutants)
        # A body stands inside a function: what includes it brings the switch.
        if any(file.endswith(".inc") for file in files):
            files.setdefault(BODIES, [])
        for file, some in files.items():
            source = (self.path / file).read_text()
            include = "" if file.endswith(".inc") else f'#include "{switch}"\n'
            self.kept[file] = source
            (self.path / file).write_text(include + planted(some, source))

    def restore(self):
        for file, source in self.kept.items():
            (self.path / file).write_text(source)
        self.kept = {}

    def make(self, mutants, jobs):
        if not (self.build / "build.ninja").exists():
            subprocess.run(["cmake", "--preset", "release"], cwd=self.path, check=True, stdout=subprocess.DEVNULL)
        areas = {m.test.partition(":")[0] for m in mutants}
        targets = [f"hearth_{a}_tests" for a in sorted(areas - {"ctest"})] + (["hearth"] if "ctest" in areas else [])
        subprocess.run(["cmake", "--build", self.build, "-j", str(jobs), "--target", *targets], check=True)

    def command(self, test):
        area, _, rest = test.partition(":")
        if area == "ctest":
            return ["ctest", "--test-dir", str(self.build), "-R", f"^{rest.strip()}$", "--output-on-failure"]
        binary = self.build / f"src/hearth/{area}/hearth_{area}_tests"
        return [str(binary), f"--gtest_filter={rest.strip()}", "--gtest_fail_fast"]

    def run(self, test, mutant=None, limit=LONGEST):
        """Exit code (None: it hung) and output."""
        env = {k: v for k, v in os.environ.items() if k != "HEARTH_MUTANT"}
        if mutant:
            env["HEARTH_MUTANT"] = mutant
        child = subprocess.Popen(self.command(test), env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                 text=True, errors="replace", start_new_session=True)
        try:
            out, _ = child.communicate(timeout=limit)
            return child.returncode, out
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            child.communicate()
            return None, ""


def ran_something(output):
    unit = re.search(r"\[  PASSED  \] (\d+) test", output)
    return int(unit[1]) > 0 if unit else bool(re.search(r"Passed +[\d.]+ sec", output))


def baseline(tree, tests, jobs):
    """How long each test takes without a fault; None where it does not pass."""
    def one(test):
        start = time.time()
        code, output = tree.run(test)
        if code == 0 and ran_something(output):
            return test, time.time() - start
        print(f"without a fault, {test} must pass and run, got exit code {code}:\n{output[-3000:]}", flush=True)
        return test, None
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        return dict(pool.map(one, sorted(tests)))


def judge(tree, mutant, usual):
    result = {"name": mutant.name, "key": mutant.key(tree.sources), "file": mutant.file, "test": mutant.test}
    if usual is None:
        return {**result, "outcome": "untested", "by": "", "seconds": 0}
    start = time.time()
    code, output = tree.run(mutant.test, mutant.name, min(LONGEST, 60 + 10 * usual))
    failed = re.search(r"\[  FAILED  \] (\S+)|(\S+) \(FAIL|^(?:FAIL|ERROR): (\w+)", output, re.M)
    by = next((g for g in failed.groups() if g), "") if failed else ""
    outcome = "hung" if code is None else "survived" if code == 0 else "killed"
    if outcome == "killed" and not by:
        by = f"exit code {code}"
    return {**result, "outcome": outcome, "by": by.rstrip(","), "seconds": round(time.time() - start, 1)}


def known_results(path):
    out = {}
    if path.exists():
        for line in path.read_text().splitlines():
            result = json.loads(line)
            out[result["name"], result["key"]] = result
    return out


def judge_all(tree, mutants, args):
    path = tree.path / "build/mutants.jsonl"
    known = {} if args.again else known_results(path)
    keys = [(m.name, m.key(tree.sources)) for m in mutants]
    done = [known[k] for k in keys if k in known]
    done = [r for r in done if r["outcome"] in ("killed", "hung")]
    had = {r["name"] for r in done}
    todo = [m for m in mutants if m.name not in had]
    if not todo:
        return done
    tree.plant(read_lists(tree.path))
    tree.make(todo, args.jobs)
    usual = baseline(tree, {m.test for m in todo}, args.jobs)
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool, path.open("a") as log:
        for result in pool.map(lambda m: judge(tree, m, usual[m.test]), todo):
            log.write(json.dumps(result) + "\n")
            log.flush()
            print(f"  {result['outcome']:9} {result['name']} {result['by']}", flush=True)
            done.append(result)
    return done


def show(results):
    rows = [("fault", "file", "test", "outcome")]
    for r in sorted(results, key=lambda r: (r["file"], r["name"])):
        seen = {"killed": f"seen by {r['by']}", "hung": "hung", "survived": "SURVIVED",
                "untested": "its test fails by itself"}[r["outcome"]]
        rows.append((r["name"], r["file"].removeprefix("src/hearth/"), r["test"], seen))
    widths = [max(len(row[i]) for row in rows) for i in range(3)]
    for row in rows:
        print("  ".join(cell.ljust(w) for cell, w in zip(row, widths)) + "  " + row[3])
    left = [r["name"] for r in results if r["outcome"] not in ("killed", "hung")]
    print(f"{len(results)} faults, {len(left)} left{': ' + ', '.join(left) if left else ''}")
    return 1 if left else 0


def scratch_tree(path):
    if path is None:
        path = ROOT / "build/mutants"
        if not path.exists():
            subprocess.run(["git", "worktree", "add", "--detach", path, "HEAD"], cwd=ROOT, check=True)
            if (ROOT / ".deps").exists():
                (path / ".deps").symlink_to((ROOT / ".deps").resolve())
    return Tree(pathlib.Path(path).resolve())


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scratch", nargs="?")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--check", nargs="?", const=ROOT, type=pathlib.Path, metavar="ROOT")
    return parser.parse_args()


def main():
    args = arguments()
    if args.check:
        return check(args.check)
    if args.list:
        for m in read_lists(ROOT):
            print(f"{m.name:34} {m.file}  {m.test}")
        return 0
    tree = scratch_tree(args.scratch)
    tree.refuse_changes()
    check(tree.path)
    mutants = read_lists(tree.path)
    unknown = set(args.only) - {m.name for m in mutants}
    if unknown:
        raise ListError(f"there is no fault {', '.join(sorted(unknown))}")
    if args.only:
        mutants = [m for m in mutants if m.name in args.only]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    try:
        return show(judge_all(tree, mutants, args))
    finally:
        tree.restore()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except ListError as e:
        sys.exit(f"error: {e}")
    except subprocess.CalledProcessError as e:
        sys.exit(f"error: {shlex.join(map(str, e.cmd))} failed with exit code {e.returncode}")
    except KeyboardInterrupt:
        sys.exit(130)
