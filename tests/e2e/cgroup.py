"""A memory cgroup that a test makes for itself, where the machine lets it."""
import contextlib
import os
import subprocess
import sys

NAME = f"hearth-test-{os.getpid()}"


def skip(why):
    print(f"SKIP: {why}")
    sys.exit(77)


def make_v2(limit):
    base = "/sys/fs/cgroup"
    if not os.path.exists(f"{base}/cgroup.controllers"):
        return None
    if "memory" not in open(f"{base}/cgroup.controllers").read().split():
        return None
    with open(f"{base}/cgroup.subtree_control", "w") as f:
        f.write("+memory")
    os.mkdir(f"{base}/{NAME}")
    with open(f"{base}/{NAME}/memory.max", "w") as f:
        f.write(str(limit))
    return f"{base}/{NAME}"


def make_v1(limit):
    base = "/sys/fs/cgroup/memory"
    if not os.path.exists(f"{base}/memory.limit_in_bytes"):
        return None
    os.mkdir(f"{base}/{NAME}")
    with open(f"{base}/{NAME}/memory.limit_in_bytes", "w") as f:
        f.write(str(limit))
    return f"{base}/{NAME}"


def mount_v2():
    """Some machines have the controller and no mount of it."""
    point = "/sys/fs/cgroup"
    if os.path.isdir(point) and not os.listdir(point):
        subprocess.run(["mount", "-t", "cgroup2", "none", point], check=False, capture_output=True)


@contextlib.contextmanager
def memory_cgroup(limit):
    """Its folder; ends the test as skipped where none can be made."""
    if sys.platform != "linux" or os.geteuid() != 0:
        skip("making a memory cgroup needs Linux and root")
    try:
        mount_v2()
        folder = make_v2(limit) or make_v1(limit)
    except OSError as e:
        skip(f"this machine lets the test make no memory cgroup: {e}")
    if folder is None:
        skip("this machine has no memory controller the test can use")
    try:
        yield folder
    finally:
        os.rmdir(folder)


def run_inside(folder, command):
    """The command as a process of the cgroup."""
    return subprocess.run(["sh", "-c", f'echo $$ > {folder}/cgroup.procs && exec "$0" "$@"', *map(str, command)],
                          capture_output=True, text=True)
