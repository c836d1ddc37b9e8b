"""hearth plan and hearth sweep on tiny models: results, --json, refusals, resuming."""
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import time
import unittest

HEARTH = os.environ["HEARTH_BINARY"]
RECIPE = """
model: {arch: llama, dim: 32, layers: 2, heads: 2, ffn: 64, tie: true}
data: {synth: {kind: stories, n: 200, seed: 1}, valid: 5%, tokenizer: {train: {vocab: 320}}, length: 32}
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
        refused = self.hearth("plan", self.recipe, *words, "--json")
        self.assertEqual(refused.returncode, 3, refused.stderr)
        plan = json.loads(refused.stdout)
        self.assertFalse(plan["fits"])
        text = self.hearth("plan", self.recipe, *words)
        self.assertEqual((text.returncode, text.stderr), (3, ""))
        self.assertIn("does not fit", text.stdout)
        self.assertRegex(plan["advice"], r"train\.micro_batch_size=\d+$")
        run = self.hearth("train", self.recipe, *words)
        self.assertEqual(run.returncode, 1)
        self.assertIn(plan["advice"], run.stderr)
        self.assertFalse((self.root / "runs").exists())
        changed = self.json("plan", self.recipe, *words, *plan["advice"].split())
        self.assertTrue(changed["fits"])


    def test_ranks_share_the_rows_of_a_step(self):
        whole = self.json("plan", self.recipe, "train.tokens_per_step=4096")
        part = self.json("plan", self.recipe, "train.tokens_per_step=4096", "--ranks", 4)
        alone = self.json("plan", self.recipe, "train.tokens_per_step=1024")
        self.assertEqual((part["ranks"], part["tokens_per_rank"]), (4, 1024))
        self.assertEqual(part["gradient_bytes"], 4 * whole["trained"])
        self.assertFalse(part["communication_counted"])
        for key in ("memory", "step_flops", "micro_batch"):
            self.assertEqual(part[key], alone[key])
        text = self.hearth("plan", self.recipe, "--ranks", 2).stdout
        self.assertIn("communication is not counted", text)
        # A pinned batch is the whole update's, and is shared too.
        pinned = ["train.micro_batch_size=2", "train.gradient_accumulation_steps=4"]
        part = self.json("plan", self.recipe, *pinned, "--ranks", 4)
        self.assertEqual((part["tokens_per_rank"], part["micro_batch"]), (64, 2))
        for ranks in (3, 0, -1, 8):
            run = self.hearth("plan", self.recipe, "--ranks", ranks)
            self.assertEqual(run.returncode, 2, ranks)
            self.assertIn("--ranks must", run.stderr)


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
        run = self.hearth("sweep", self.sweep, "-o", self.out, "--json")
        self.assertEqual(run.returncode, 1)
        self.assertIn("1 of 2 runs", run.stderr)
        rows = json.loads(run.stdout)["rows"]
        self.assertIn("error", rows[0])
        self.assertIn("valid_loss", rows[1])

    def test_a_run_that_diverges_has_failed(self):
        self.sweep.write_text("base: recipe.yaml\ngrid: {optim.lr: [1.0e-3, 1.0e+12]}\n")
        (self.root / "recipe.yaml").write_text(
            (self.root / "recipe.yaml").read_text() + "optim: {clip: 0, warmup: 0}\n")
        for _ in range(2):
            run = self.hearth("sweep", self.sweep, "-o", self.out, "--json")
            self.assertEqual(run.returncode, 1, run.stderr)
            found = json.loads(run.stdout)
            self.assertEqual(found["best"], "lr=1.0e-3")
            self.assertIn("not finite", found["rows"][1]["error"])
        self.assertNotIn("nan", (self.out / "sweep.svg").read_text())

    def test_a_run_of_another_recipe_is_refused_finished_or_not(self):
        self.sweep.write_text("base: recipe.yaml\ngrid: {optim.lr: [1.0e-3]}\n")
        self.json("sweep", self.sweep, "-o", self.out)
        recipe = self.root / "recipe.yaml"
        recipe.write_text(recipe.read_text().replace("layers: 2", "layers: 1"))
        for finished in (True, False):
            if not finished:
                (self.out / "lr=1.0e-3/sweep_result.json").unlink()
            run = self.hearth("sweep", self.sweep, "-o", self.out)
            self.assertEqual(run.returncode, 2, run.stderr)
            self.assertIn("another recipe: model.layers is 2 there, got 1", run.stderr)

    def test_interrupted_it_says_how_to_go_on(self):
        self.sweep.write_text("base: recipe.yaml\ngrid: {optim.lr: [1.0e-3, 1.0e-2], train.steps: [100000]}\n")
        process = subprocess.Popen([HEARTH, "sweep", self.sweep, "-o", self.out], cwd=self.root, stderr=subprocess.PIPE,
                                   stdout=subprocess.DEVNULL, env=self.environment, text=True)
        metrics = self.out / "lr=1.0e-3,steps=100000/metrics.jsonl"
        for _ in range(1200):
            if metrics.exists() and metrics.stat().st_size > 0:
                break
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        error = process.communicate(timeout=120)[1]
        self.assertEqual(process.returncode, 130, error)
        self.assertIn(f"hearth sweep {self.sweep} -o {self.out}", error)
        self.assertNotIn("hearth train", error)

    def test_a_second_sweep_in_the_folder_is_refused(self):
        self.sweep.write_text("base: recipe.yaml\ngrid: {optim.lr: [1.0e-3], train.steps: [100000]}\n")
        process = subprocess.Popen([HEARTH, "sweep", self.sweep, "-o", self.out], cwd=self.root, stderr=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, env=self.environment)
        try:
            metrics = self.out / "lr=1.0e-3,steps=100000/metrics.jsonl"
            for _ in range(1200):
                if metrics.exists():
                    break
                time.sleep(0.05)
            run = self.hearth("sweep", self.sweep, "-o", self.out)
            self.assertEqual(run.returncode, 2, run.stderr)
            self.assertIn(f"{self.out} must not be in use, but process {process.pid} sweeps in it", run.stderr)
            self.assertFalse((self.out / "sweep.csv").exists())
        finally:
            process.kill()
            process.wait()

    def test_a_wrong_key_is_refused_before_the_first_run(self):
        self.sweep.write_text("base: recipe.yaml\ngrid: {optim.lrr: [1.0e-3]}\n")
        run = self.hearth("sweep", self.sweep, "-o", self.out)
        self.assertEqual(run.returncode, 2)
        self.assertIn("optim.lr", run.stderr)
        self.assertEqual(list(self.out.glob("*")), [])


if __name__ == "__main__":
    unittest.main()
