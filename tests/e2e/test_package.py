"""The installed CMake package: a program outside the tree builds and runs.

usage: test_package.py BUILD_DIR CMAKE EXAMPLE_DIR"""
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


def main(build, cmake, example):
    with tempfile.TemporaryDirectory() as folder:
        prefix, out = f"{folder}/prefix", f"{folder}/example"
        run(cmake, "--install", build, "--prefix", prefix)
        for name in ("LICENSE", "NOTICE"):
            if not pathlib.Path(f"{prefix}/share/licenses/hearth/{name}").is_file():
                sys.exit(f"{name} is not installed")
        run(cmake, "-G", "Ninja", "-S", example, "-B", out, f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_BUILD_TYPE=Release")
        run(cmake, "--build", out)
        print(run(f"{out}/match_profile"))
        print(run(f"{prefix}/bin/hearth", "--version"))


main(*sys.argv[1:4])
