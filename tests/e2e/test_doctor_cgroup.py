"""In a memory cgroup that the test makes, the safe memory follows the limit."""
import json
import os

from cgroup import memory_cgroup, run_inside

HEARTH = os.environ["HEARTH_BINARY"]
LIMIT = 1 << 30


def main():
    with memory_cgroup(LIMIT) as folder:
        run = run_inside(folder, [HEARTH, "doctor", "--json"])
        assert run.returncode == 0, run.stderr
        memory = json.loads(run.stdout)["memory"]
        assert memory["cgroup_limit_bytes"] == LIMIT, memory
        assert LIMIT // 2 < memory["safe_bytes"] < LIMIT, memory
        assert "cgroup" in memory["safe_derivation"], memory
        print(f"safe memory {memory['safe_bytes']} under a limit of {LIMIT}: {memory['safe_derivation']}")


main()
