"""In a memory cgroup that the test makes, the safe memory follows the limit."""
import json
import os
import subprocess
import sys

HEARTH = os.environ["HEARTH_BINARY"]
LIMIT = 1 << 30
NAME = f"hearth-test-{os.getpid()}"


def skip(why):
    print(f"SKIP: {why}")
    sys.exit(77)


def make_v2():
    base = "/sys/fs/cgroup"
    if not os.path.exists(f"{base}/cgroup.controllers"):
        return None
    if "memory" not in open(f"{base}/cgroup.controllers").read().split():
        return None
    with open(f"{base}/cgroup.subtree_control", "w") as f:
        f.write("+memory")
    os.mkdir(f"{base}/{NAME}")
    with open(f"{base}/{NAME}/memory.max", "w") as f:
        f.write(str(LIMIT))
    return f"{base}/{NAME}"


def make_v1():
    base = "/sys/fs/cgroup/memory"
    if not os.path.exists(f"{base}/memory.limit_in_bytes"):
        return None
    os.mkdir(f"{base}/{NAME}")
    with open(f"{base}/{NAME}/memory.limit_in_bytes", "w") as f:
        f.write(str(LIMIT))
    return f"{base}/{NAME}"


def mount_v2():
    """Some machines have the controller and no mount of it."""
    point = "/sys/fs/cgroup"
    if os.path.isdir(point) and not os.listdir(point):
        subprocess.run(["mount", "-t", "cgroup2", "none", point], check=False, capture_output=True)


def main():
    if sys.platform != "linux" or os.geteuid() != 0:
        skip("making a memory cgroup needs Linux and root")
    try:
        mount_v2()
        folder = make_v2() or make_v1()
    except OSError as e:
        skip(f"this machine lets the test make no memory cgroup: {e}")
    if folder is None:
        skip("this machine has no memory controller the test can use")
    try:
        run = subprocess.run(
            ["sh", "-c", f'echo $$ > {folder}/cgroup.procs && exec "$0" doctor --json', HEARTH],
            capture_output=True, text=True, check=True,
        )
        memory = json.loads(run.stdout)["memory"]
        assert memory["cgroup_limit_bytes"] == LIMIT, memory
        assert LIMIT // 2 < memory["safe_bytes"] < LIMIT, memory
        assert "cgroup" in memory["safe_derivation"], memory
        print(f"safe memory {memory['safe_bytes']} under a limit of {LIMIT}: {memory['safe_derivation']}")
    finally:
        os.rmdir(folder)


main()
