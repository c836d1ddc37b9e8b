"""The installed CMake package: the programs of examples/ build on it, outside the tree, and run.

usage: test_package.py BUILD_DIR CMAKE EXAMPLES_DIR"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile


def run(*words):
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        print(done.stdout[-4000:], done.stderr[-4000:])
        sys.exit(f"failed: {' '.join(words)}")
    return done.stdout


def check_own_objective(program, folder, hearth):
    """A loss that the library does not know falls, and the run is one like any other."""
    out = run(program, f"{folder}/run")
    print(out)
    if not out.startswith("planned: ") or "language model" in out.splitlines()[0]:
        sys.exit("own_objective: its own graph was not planned")
    lines = [json.loads(line) for line in open(f"{folder}/run/metrics.jsonl")]
    valid = [line for line in lines if "valid_loss" in line]
    if len(lines) != 60 or len(valid) != 3 or out.count("sure of") != 3:
        sys.exit("own_objective: steps or validations are missing")
    if not valid[-1]["valid_loss"] < valid[0]["valid_loss"] or not 0 < valid[-1]["valid_sure"] < 1:
        sys.exit("own_objective: nothing was learnt")
    print(run(hearth, "generate", f"{folder}/run/model", "-p", "Once upon a time", "--max-tokens", "8"))


def check_plan(program, recipe):
    """Nine cases: the longest rows do not fit in the smallest memory, all do in the largest."""
    lines = run(program, recipe, "32000").splitlines()
    print("\n".join(lines))
    fits = [line.split()[2] for line in lines[2:]]
    if len(fits) != 9 or fits[2] != "no" or fits[6:] != ["yes"] * 3:
        sys.exit("plan: not what was expected")


def main(build, cmake, examples):
    examples = pathlib.Path(examples)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["HEARTH_CACHE"] = f"{folder}/cache"
        prefix = f"{folder}/prefix"
        run(cmake, "--install", build, "--prefix", prefix)
        for name in ("LICENSE", "NOTICE"):
            if not pathlib.Path(f"{prefix}/share/licenses/hearth/{name}").is_file():
                sys.exit(f"{name} is not installed")
        programs = {}
        for example in sorted(examples.iterdir()):
            out = f"{folder}/{example.name}"
            run(cmake, "-G", "Ninja", "-S", str(example), "-B", out, f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_BUILD_TYPE=Release")
            run(cmake, "--build", out)
            programs[example.name] = f"{out}/{example.name}"
        hearth = f"{prefix}/bin/hearth"
        print(run(programs.pop("match_profile")))
        check_own_objective(programs.pop("own_objective"), folder, hearth)
        check_plan(programs.pop("plan"), str(examples.parent / "recipes/quickstart.yaml"))
        if programs:
            sys.exit(f"nobody runs {', '.join(programs)}")
        print(run(hearth, "--version"))


main(*sys.argv[1:4])
