"""hearth plan and hearth sweep on tiny models: results, --json, refusals, resuming."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

HEARTH = os.environ["HEARTH_BINARY"]
RECIPE = """
model: {arch: llama, dim: 32, layers: 2, heads: 2, ffn: 64, tie: true}
data: {synth: {kind: stories, n: 200, seed: 1}, valid: 5%, tokenizer: {train: {vocab: 320}}, length: 32, arrange: stream}
train: {tokens_per_step: 128, steps: 3}
run: {seed: 1}
"""


class Folder(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.root = pathlib.Path(temporary.name)
        self.recipe = self.root / "recipe.yaml"
        self.recipe.write_text(RECIPE)
        self.environment = dict(os.environ, HEARTH_CACHE=str(self.root / "cache"))

    def hearth(self, *words):
        return subprocess.run([HEARTH, *map(str, words)], capture_output=True, text=True, cwd=self.root,
                              env=self.environment)

    def json(self, *words):
        run = self.hearth(*words, "--json")
        self.assertEqual(run.returncode, 0, run.stderr)
        return json.loads(run.stdout)


class Plan(Folder):
    def test_says_parts_that_add_up(self):
        plan = self.json("plan", self.recipe)
        self.assertEqual(plan["schema"], "hearth.plan/1")
        self.assertEqual(sum(plan["memory"].values()), plan["peak_bytes"])
        self.assertTrue(plan["fits"])
        self.assertFalse((self.root / "cache").exists() and any((self.root / "cache").rglob("*.tok*")))

    def test_checkpointing_and_rows_follow_the_budget(self):
        words = ["data.length=1024", "train.tokens_per_step=32768", "model.layers=8", "model.ffn=512"]
        free = self.json("plan", self.recipe, *words)
        self.assertEqual(free["checkpointing"], "none")
        tight = self.json("plan", self.recipe, *words, "train.memory=48M")
        self.assertTrue(tight["fits"])
        self.assertLess(tight["micro_batch"], free["micro_batch"])
        self.assertLessEqual(tight["peak_bytes"], 48 << 20)

    def test_what_does_not_fit_is_refused_with_a_change_that_does(self):
        words = ["data.length=1024", "train.tokens_per_step=32768", "train.micro_batch_size=32", "train.memory=48M"]
        plan = self.json("plan", self.recipe, *words)
        self.assertFalse(plan["fits"])
        self.assertRegex(plan["advice"], r"train\.micro_batch_size=\d+$")
        run = self.hearth("train", self.recipe, *words)
        self.assertEqual(run.returncode, 1)
        self.assertIn(plan["advice"], run.stderr)
        self.assertFalse((self.root / "runs").exists())
        changed = self.json("plan", self.recipe, *words, *plan["advice"].split())
        self.assertTrue(changed["fits"])


class Sweep(Folder):
    def setUp(self):
        super().setUp()
        self.sweep = self.root / "sweep.yaml"
        self.sweep.write_text("base: recipe.yaml\ngrid: {optim.lr: [1.0e-3, 1.0e-2], model.layers: [1, 2]}\n")
        self.out = self.root / "out"

    def test_dry_run_trains_nothing(self):
        rows = self.json("sweep", self.sweep, "-o", self.out, "--dry-run")["rows"]
        self.assertEqual([r["run"] for r in rows][:2], ["lr=1.0e-3,layers=1", "lr=1.0e-3,layers=2"])
        self.assertFalse(self.out.exists())

    def test_runs_resumes_and_names_the_best(self):
        first = self.json("sweep", self.sweep, "-o", self.out)
        losses = {r["run"]: r["valid_loss"] for r in first["rows"]}
        self.assertEqual(len(losses), 4)
        self.assertEqual(first["best"], min(losses, key=losses.get))
        self.assertTrue((self.out / "sweep.svg").read_text().startswith("<svg"))
        self.assertEqual(len((self.out / "sweep.csv").read_text().splitlines()), 5)
        # A run that has no result goes on; the others are not trained again.
        name = "lr=1.0e-2,layers=1"
        times = {p: p.stat().st_mtime_ns for p in self.out.glob("*/metrics.jsonl") if p.parent.name != name}
        (self.out / name / "sweep_result.json").unlink()
        again = self.json("sweep", self.sweep, "-o", self.out)
        self.assertEqual({r["run"]: r["valid_loss"] for r in again["rows"]}, losses)
        self.assertEqual(times, {p: p.stat().st_mtime_ns for p in times})

    def test_a_failing_run_does_not_stop_the_rest(self):
        self.sweep.write_text("base: recipe.yaml\ngrid: {train.memory: [1M, 2G]}\n")
        rows = self.json("sweep", self.sweep, "-o", self.out)["rows"]
        self.assertIn("error", rows[0])
        self.assertIn("valid_loss", rows[1])

    def test_a_wrong_key_is_refused_before_the_first_run(self):
        self.sweep.write_text("base: recipe.yaml\ngrid: {optim.lrr: [1.0e-3]}\n")
        run = self.hearth("sweep", self.sweep, "-o", self.out)
        self.assertEqual(run.returncode, 2)
        self.assertIn("optim.lr", run.stderr)
        self.assertEqual(list(self.out.glob("*")), [])


if __name__ == "__main__":
    unittest.main()
