"""hearth profile load: its figures add up, and what is planted is what it names: a tokenizer that takes longer than the
weights, and a memory cgroup in which others fight for every page."""
import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

from cgroup import memory_cgroup, run_inside
from zero_model import write_zeros

HEARTH = os.environ["HEARTH_BINARY"]
SMOLLM2 = sorted((pathlib.Path(os.environ["HEARTH_SOURCE"]) / ".deps/models").glob("SmolLM2*.gguf"))
MIB = 1 << 20

# Reads a file that is larger than the memory there is, over and over.
HOG = """
import mmap, sys
with open(sys.argv[1], "wb") as file:
    file.truncate(int(sys.argv[2]))
with open(sys.argv[1], "rb") as file:
    pages = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
    print("ready", flush=True)
    while True:
        sum(pages[i] for i in range(0, len(pages), 4096))
"""


def write_tokenizer(folder, tokens):
    vocabulary = {chr(i): i - 33 for i in range(33, 127)}
    for i in range(len(vocabulary), tokens):
        vocabulary[f"word{i}"] = i
    (folder / "tokenizer.json").write_text(json.dumps({
        "version": "1.0", "added_tokens": [], "normalizer": None, "post_processor": None,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
        "decoder": {"type": "ByteLevel"}, "model": {"type": "BPE", "vocab": vocabulary, "merges": []}}))


@contextlib.contextmanager
def hogs(folder, root, bytes_each, count):
    """So many processes of the cgroup that read all the time."""
    running = []
    try:
        for i in range(count):
            enter = f'echo $$ > {folder}/cgroup.procs && exec "$0" "$@"'
            running.append(subprocess.Popen(
                ["sh", "-c", enter, sys.executable, "-c", HOG, str(root / f"hog{i}"), str(bytes_each)],
                stdout=subprocess.PIPE))
        for one in running:
            one.stdout.readline()
        yield
    finally:
        for one in running:
            one.kill()
            one.wait()
            one.stdout.close()


class ProfileLoad(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.root = pathlib.Path(temporary.name)
        self.model = self.root / "model"
        os.environ["HEARTH_CACHE"] = str(self.root / "cache")

    def profile(self, *words, inside=None):
        command = [HEARTH, "profile", "load", *map(str, words), "--json"]
        run = run_inside(inside, command) if inside else subprocess.run(command, capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        return json.loads(run.stdout)

    def assert_adds_up(self, p):
        self.assertAlmostEqual(sum(x["seconds"] for x in p["phases"]), p["seconds"], delta=1e-3)
        for part in p["shards"] + p["classes"]:
            columns = sum(part[x] for x in ("read_s", "convert_s", "pack_s", "quantise_s", "memory_s"))
            self.assertAlmostEqual(columns, part["seconds"], delta=1e-3)

    def test_phases_and_memory_add_up(self):
        write_zeros(self.model, layers=2)
        for quant in ("none", "4"):
            p = self.profile(self.model, "--quant", quant, "--read", "direct")
            self.assert_adds_up(p)
            memory = p["memory"]
            # Loading takes no more beside what stays than its buffers and some rows a thread.
            self.assertLess(memory["accounted"] - memory["model_bytes"], 2 * MIB)
            self.assertLess(memory["peak_accounted"] - memory["accounted"], memory["read_buffers"] + 4 * MIB)
            # What the system counts beside it are small things of the process.
            self.assertGreater(memory["anonymous"], 0.9 * memory["accounted"])
            self.assertLess(memory["anonymous"] - memory["accounted"], 32 * MIB)

    def test_a_packed_start_has_its_classes(self):
        write_zeros(self.model, layers=2)
        self.assertEqual(subprocess.run([HEARTH, "preload", str(self.model), "--quiet"], capture_output=True).returncode, 0)
        p = self.profile(self.model)
        self.assertEqual(p["how"], "packed cache")
        self.assert_adds_up(p)
        self.assertEqual({x["name"]: x["tensors"] for x in p["classes"]},
                         {"mlp": 6, "attention": 8, "norm": 5, "embedding": 1, "head": 1})
        self.assertTrue(p["memory"]["mapped"])

    def test_a_quantised_file_from_disk_is_seen(self):
        if not SMOLLM2:
            self.skipTest("no SmolLM2 GGUF in .deps/models")
        p = self.profile(SMOLLM2[0], "--cold", "--unpacked")
        self.assert_adds_up(p)
        self.assertEqual(sum(x["bytes"] for x in p["shards"]), p["bytes"])
        phases = {x["name"]: x["seconds"] for x in p["phases"]}
        self.assertGreater(phases["read"], 0)

    def test_a_large_tokenizer_is_named(self):
        write_zeros(self.model, layers=1, width=16, vocabulary=200_000)
        write_tokenizer(self.model, 200_000)
        p = self.profile(self.model)
        self.assertEqual(p["slow"]["part"], "initialising", p["slow"])
        self.assertIn("tokenizer took", p["slow"]["why"])
        self.assertIn("tokenizer.json is kept", p["slow"]["advice"])

    def test_memory_pressure_is_named(self):
        if not os.path.exists("/proc/pressure/memory"):
            self.skipTest("this system does not tell how long it waited for memory")
        write_zeros(self.model, layers=8)
        limit = 450 * MIB
        try:
            with memory_cgroup(limit) as folder:
                with hogs(folder, self.root, 2 * limit, 3):
                    p = self.profile(self.model, inside=folder)
                wait_until_empty(folder)
        except SystemExit:
            self.skipTest("this machine lets the test make no memory cgroup")
        self.assertEqual(p["slow"]["part"], "memory pressure", p["slow"])
        self.assertGreater(p["memory"]["stall_s"], 0.25 * p["seconds"])


def wait_until_empty(folder):
    """A cgroup can be removed once the last process has left it."""
    for _ in range(200):
        if not pathlib.Path(folder, "cgroup.procs").read_text():
            return
        time.sleep(0.05)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
