"""What the end-to-end tests of hearth train share: tiny data and models, runs, and what a run left."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

HEARTH = os.environ["HEARTH_BINARY"]
TINY = {
    "model": "{arch: llama, dim: 32, layers: 2, heads: 2, ffn: 64}",
    "data": "{synth: {kind: stories, n: 200, seed: 1}, valid: 5%, tokenizer: {train: {vocab: 320}}, length: 32, "
            "workers: 1, cache: CACHE}",
    "train": "{tokens_per_step: 256, steps: 12, save_every: 4, eval_every: 6, eval_tokens: 2000}",
    "optim": "{lr: 3.0e-3, warmup: 2}",
}


def hearth(*words, cwd=None):
    return subprocess.run([HEARTH, *map(str, words)], capture_output=True, text=True, cwd=cwd, timeout=300)


class TrainCase(unittest.TestCase):
    """A folder for the class, with data that is prepared once, and a recipe in it."""
    threads = 1  # Models this small wait for threads more than they gain.

    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.root = pathlib.Path(cls.temporary.name)
        cls.recipe = cls.write_recipe("tiny.yaml", TINY)

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    @classmethod
    def write_recipe(cls, name, sections):
        path = cls.root / name
        text = "".join(f"{key}: {value}\n" for key, value in sections.items())
        path.write_text(text.replace("CACHE", str(cls.root / f"cache-{name}")))
        return path

    def train(self, run, *words, recipe=None, code=0):
        done = hearth("train", recipe or self.recipe, "-o", self.root / run, "--threads", self.threads, *words)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def resume(self, run, *words, code=0):
        done = hearth("train", "--resume", self.root / run, "--threads", self.threads, *words)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def checkpoint(self, run, step):
        return self.root / run / f"checkpoints/step-{step:06d}"

    def assert_same_end(self, one, other, step):
        """The weights and the optimiser of two runs, byte for byte."""
        for file in ("weights.safetensors", "optimizer.safetensors"):
            a, b = self.checkpoint(one, step) / file, self.checkpoint(other, step) / file
            self.assertTrue(a.read_bytes() == b.read_bytes(), f"{a} and {b} differ")

    def metrics(self, run):
        return [json.loads(line) for line in (self.root / run / "metrics.jsonl").read_text().splitlines()]

    def events(self, run):
        return [json.loads(line) for line in (self.root / run / "events.jsonl").read_text().splitlines()]

    def assert_one_line(self, run, *parts):
        lines = [line for line in run.stderr.splitlines() if line.startswith("error: ")]
        self.assertEqual(len(lines), 1, run.stderr)
        for part in parts:
            self.assertIn(part, run.stderr)
