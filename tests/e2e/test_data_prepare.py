"""hearth data prepare as a user runs it: from a recipe and nothing else, again
without doing it again, after being killed, and in little memory."""
import hashlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

HEARTH = os.environ["HEARTH_BINARY"]
RECIPE = """
data: {synth: {kind: stories, n: 3000, seed: 5}, valid: 5%, tokenizer: {train: {vocab: 1000}}, length: 256}
train: {steps: 10}
"""


def contents(folder):
    return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in pathlib.Path(folder).iterdir()}


class Prepare(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp())
        self.env = dict(os.environ, HEARTH_CACHE=str(self.root / "cache"))
        (self.root / "r.yaml").write_text(RECIPE)

    def tearDown(self):
        shutil.rmtree(self.root)

    def run_json(self, *words):
        done = subprocess.run([HEARTH, *words, "--json"], capture_output=True, text=True, env=self.env, check=True)
        return json.loads(done.stdout)

    def test_a_recipe_needs_no_files(self):
        first = self.run_json("data", "prepare", str(self.root / "r.yaml"))
        self.assertEqual(first["schema"], "hearth.data.prepare/1")
        self.assertEqual(first["report"]["documents"], 3000)
        self.assertFalse(first["reused"])
        self.assertTrue((pathlib.Path(first["tokenizer"]) / "tokenizer.json").exists())
        before = contents(first["cache"])
        again = self.run_json("data", "prepare", str(self.root / "r.yaml"))
        self.assertTrue(again["reused"])
        self.assertEqual(again["cache"], first["cache"])
        self.assertEqual(contents(again["cache"]), before)
        shown = self.run_json("data", "inspect", first["cache"], "--documents", "1")
        self.assertIn("hearth.data.inspect/1", shown["schema"])

    def test_threads_change_nothing(self):
        made = []
        for threads in ("1", "3"):
            self.env["HEARTH_CACHE"] = str(self.root / ("cache" + threads))
            answer = self.run_json("data", "prepare", str(self.root / "r.yaml"), "--threads", threads)
            files = contents(answer["cache"])
            files.pop("manifest.json")  # names the cache folder
            made.append(files)
        self.assertEqual(made[0], made[1])

    def test_a_killed_build_goes_on_to_the_same_bytes(self):
        words = ["data", "prepare", str(self.root / "r.yaml"), "data.synth.n=80000", "data.tokenizer.train.vocab=300"]
        whole = self.run_json(*words, "-o", str(self.root / "whole"))
        self.assertFalse(whole["resumed"])
        # Now synthetic data and tokenizer are there, and tokenising takes the time.
        for delay in (0.1, 0.3, 0.6):
            with subprocess.Popen([HEARTH, *words, "-o", str(self.root / "cut"), "--quiet"], env=self.env,
                                  stdout=subprocess.DEVNULL) as build:
                time.sleep(delay)
                build.send_signal(signal.SIGKILL)
        self.run_json(*words, "-o", str(self.root / "cut"))
        self.assertEqual(contents(self.root / "whole"), contents(self.root / "cut"))

    def test_memory_does_not_grow_with_the_data(self):
        # Generated, counted and tokenised within a third of the file's size.
        limit = 48 << 20
        words = ["data", "prepare", str(self.root / "r.yaml"), "data.synth.n=250000", "data.tokenizer.train.vocab=300"]
        # By a small process: what a child may have used starts at its parent's size.
        watch = ("import os, sys; _, code, used = os.wait4(os.spawnv(os.P_NOWAIT, sys.argv[1], sys.argv[1:]), 0); "
                 "sys.stderr.write(str(used.ru_maxrss)); sys.exit(code != 0)")
        done = subprocess.run([sys.executable, "-S", "-c", watch, HEARTH, *words, "--quiet", "--json"], env=self.env,
                              capture_output=True, text=True, check=True)
        report = json.loads(done.stdout)["report"]
        self.assertEqual(report["documents"], 250000)
        files = list((self.root / "cache").rglob("*.jsonl"))
        self.assertGreater(sum(p.stat().st_size for p in files), 3 * limit)
        peak = int(done.stderr) * (1 if sys.platform == "darwin" else 1024)
        self.assertLess(peak, limit)


if __name__ == "__main__":
    unittest.main()
