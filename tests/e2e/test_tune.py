"""hearth tune and bench train --ablate on tiny models: tables, recipes, --json, refusals, Ctrl-C."""
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import time
import unittest

HEARTH = os.environ["HEARTH_BINARY"]
SOURCE = pathlib.Path(os.environ["HEARTH_SOURCE"])
RECIPE = """
model: {arch: llama, dim: 32, layers: 2, heads: 2, ffn: 64, tie: true}
data: {synth: {kind: stories, n: 400, seed: 1}, valid: 5%, tokenizer: {train: {vocab: 320}}, length: 64}
train: {tokens_per_step: 2048, steps: 3, eval_tokens: 2000}
run: {seed: 1}
"""


class Folder(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.root = pathlib.Path(cls.temporary.name)
        cls.recipe = cls.root / "recipe.yaml"
        cls.recipe.write_text(RECIPE)
        cls.environment = dict(os.environ, HEARTH_CACHE=str(cls.root / "cache"))

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def hearth(self, *words, code=0, cwd=None, **more):
        run = subprocess.run([HEARTH, *map(str, words)], capture_output=True, text=True, cwd=cwd or self.root,
                             env={**self.environment, **more}, timeout=300)
        self.assertEqual(run.returncode, code, run.stderr)
        return run

    def json(self, *words, **more):
        return json.loads(self.hearth(*words, "--json", **more).stdout)


class Tune(Folder):
    def test_the_table_is_measured_and_the_fastest_row_is_the_recipe(self):
        best = self.root / "best.yaml"
        found = self.json("tune", self.recipe, "-o", best, "--no-compare", "--seconds", 90)
        self.assertEqual(found["schema"], "hearth.tune/1")
        rows = [r for r in found["rows"] if r["outcome"] == "measured"]
        self.assertGreater(len(rows), 4)
        for row in rows:
            self.assertGreater(row["rate"], 0)
            self.assertGreater(row["peak_mib"], 1)
        self.assertEqual({r["precision"] for r in rows}, {"bf16", "fp32"})
        self.assertTrue({"none", "2", "all"} <= {r["checkpointing"] for r in rows})
        top = max(r["rate"] for r in rows)
        self.assertGreaterEqual(found["best"]["rate"], 0.98 * top)
        plan = self.json("plan", best)
        self.assertEqual(plan["micro_batch"], found["best"]["micro_batch"])
        self.assertEqual(plan["checkpointing"], found["best"]["checkpointing"])
        # The update is what the recipe asked for, however it is cut.
        self.assertEqual(plan["micro_batch"] * plan["accumulation"] * 64 >= 2048, True)
        kept = json.loads((self.root / "best.tune.json").read_text())
        self.assertEqual(len(kept["rows"]), len(found["rows"]))

    def test_before_and_after_stand_at_equal_and_at_best_batches(self):
        found = self.json("tune", self.recipe, "--seconds", 5, "--over", "batch")
        table = [(c["side"], c["batch"]) for c in found["compared"]]
        self.assertEqual(table, [("before", "equal"), ("after", "equal"), ("before", "best"), ("after", "best")])
        equal = found["compared"][:2]
        self.assertEqual(equal[0]["micro_batch"], equal[1]["micro_batch"])
        self.assertGreaterEqual(found["loss_tokens"], 2048)
        # bf16 and float32 learn the same in so few tokens.
        self.assertAlmostEqual(equal[0]["valid_loss"], equal[1]["valid_loss"], delta=0.05)

    def test_memory_ends_the_search_and_nothing_passes_the_budget(self):
        words = ["model.layers=4", "model.dim=128", "train.tokens_per_step=65536"]
        # Between the ladder's first rung and its second, so that no measured speed ends it earlier.
        first, second = (self.json("plan", self.recipe, *words, f"train.micro_batch_size={rows}", "train.packed=all",
                                   "train.checkpointing=none")["peak_bytes"] for rows in (8, 16))
        found = self.json("tune", self.recipe, *words, f"train.memory={(first + second) // 2048}K", "--no-compare",
                          "--seconds", 20, "--over", "batch")
        outcomes = {r["micro_batch"]: r["outcome"] for r in found["rows"]}
        self.assertEqual(outcomes, {8: "measured", 16: "would not fit"})

    def test_where_plan_fits_so_does_tune(self):
        words = ["train.tokens_per_step=512", "train.precision=fp32"]
        budgets = {}
        for rows in (1, 2, 8):
            plan = self.json("plan", self.recipe, *words, f"train.micro_batch_size={rows}", "train.packed=all",
                             "train.checkpointing=none")
            budgets[rows] = plan["peak_bytes"] // 1024 + 1
        self.assertLess(budgets[2], budgets[8])
        found = self.json("tune", self.recipe, *words, f"train.memory={budgets[2]}K", "--no-compare", "--over", "batch",
                          "--seconds", 20)
        measured = [r["micro_batch"] for r in found["rows"] if r["outcome"] == "measured"]
        self.assertTrue(measured and max(measured) <= 4, found["rows"])
        # A little less than a row with all its copies: a run would give up copies of matrices, and so does this.
        tight = f"train.memory={budgets[1] - 40}K"
        if self.json("plan", self.recipe, *words, tight)["fits"]:
            found = self.json("tune", self.recipe, *words, tight, "--no-compare", "--seconds", 20)
            self.assertIn("measured", {r["outcome"] for r in found["rows"]})

    def test_rows_of_the_recipe_are_tried(self):
        found = self.json("tune", self.recipe, "train.micro_batch_size=3", "--no-compare", "--over", "batch", "--seconds", 20)
        self.assertEqual(found["rows"][0]["micro_batch"], 3)

    def test_a_recipe_that_is_there_is_kept_and_wrong_words_are_refused(self):
        there = self.root / "there.yaml"
        there.write_text("mine")
        run = self.hearth("tune", self.recipe, "-o", there, code=2)
        self.assertIn("--force", run.stderr)
        self.assertEqual(there.read_text(), "mine")
        run = self.hearth("tune", self.recipe, "--over", "batches", code=2)
        self.assertIn("did you mean 'batch'", run.stderr)
        run = self.hearth("tune", self.recipe, "--preset", "bold", code=2)
        self.assertIn("conservative, balanced, aggressive", run.stderr)
        self.hearth("tune", self.recipe, "--seconds", "0", code=2)

    def test_what_cannot_be_is_refused_before_anything_is_measured(self):
        # Without its peaks known, a preset would measure this machine first.
        bare = {"HEARTH_CACHE": str(self.root / "bare"), "HEARTH_CONFIG": str(self.root / "bare-config")}
        run = self.hearth("tune", self.recipe, "--preset", "balanced", "model.from=somewhere", code=2, **bare)
        self.assertIn("model.from", run.stderr)
        run = self.hearth("tune", self.recipe, "--preset", "balanced", "--over", "batches", code=2, **bare)
        self.assertIn("--over", run.stderr)
        run = self.hearth("tune", self.recipe, "-o", self.root / "nowhere/best.yaml", code=2, **bare)
        self.assertIn("nowhere/best.yaml", run.stderr)
        self.assertNotIn("measuring", run.stderr)

    def test_answers_are_tried_in_pairs(self):
        base = self.root / "pairs-base"
        self.hearth("train", self.recipe, "-o", base, "--threads", 1)
        rows = [{"prompt": f"Once {i}", "chosen": " there was a cat.", "rejected": " no no."} for i in range(40)]
        (self.root / "pairs.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
        recipe = self.root / "pairs.yaml"
        recipe.write_text(f"model: {{from: {base}}}\ndata: {{train: pairs.jsonl, length: 512}}\n"
                          "train: {objective: dpo, tokens_per_step: 4096}\nlora: {rank: 2}\n")
        found = self.json("tune", recipe, "--no-compare", "--over", "batch", "--seconds", 20)
        self.assertEqual({r["micro_batch"] % 2 for r in found["rows"]}, {0})

    def test_interrupted_it_keeps_the_table_so_far(self):
        best = self.root / "interrupted.yaml"
        process = subprocess.Popen([HEARTH, "tune", str(self.recipe), "-o", str(best), "--seconds", "600",
                                    "train.tokens_per_step=65536"], cwd=self.root, env=self.environment,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        table = best.with_suffix(".tune.json")
        deadline = time.time() + 120
        while not table.exists() and time.time() < deadline and process.poll() is None:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 130, errors)
        self.assertIn("interrupted after", errors)
        kept = json.loads(table.read_text())
        self.assertFalse(kept["complete"])
        self.assertGreater(len(kept["rows"]), 0)
        self.json("plan", best)

    def test_seed_presets_read_as_recipes(self):
        for name, parameters in {"original": 1.85e6, "conservative": 10.4e6, "balanced": 20.7e6,
                                 "aggressive": 35.5e6}.items():
            plan = self.json("plan", SOURCE / f"recipes/s1-{name}.yaml")
            self.assertAlmostEqual(plan["parameters"] / parameters, 1, delta=0.02)


class BenchTrain(Folder):
    def test_ablation_has_a_row_for_each_switch(self):
        found = self.json("bench", "train", "--ablate", "--recipe", self.recipe, "--tokens", 8192)
        self.assertEqual(found["schema"], "hearth.bench/1")
        cases = {r["case"]: r for r in found["rows"]}
        for case in ("as it is", "precision: fp32", "checkpointing: all", "fused attention: off", "fused head: off",
                     "packing: off", "prefetch: off", "evaluation interval: 4"):
            self.assertIn(case, cases)
            self.assertGreaterEqual(cases[case]["tokens"], 8192)
            self.assertGreater(cases[case]["valid_loss"], 0)
        # What only changes how the same sums are made changes no loss.
        base = cases["as it is"]["valid_loss"]
        for case in ("checkpointing: all", "prefetch: off", "fused head: off", "fused attention: off"):
            self.assertAlmostEqual(cases[case]["valid_loss"], base, delta=0.05)

    def test_ablation_is_of_training_alone(self):
        self.assertIn("train", self.hearth("bench", "ops", "--ablate", code=2).stderr)

    def test_lists_the_lora_case(self):
        listed = self.hearth("bench", "train", "--list").stdout
        for case in ("b20", "g124", "lora05"):
            self.assertIn(case, listed)


if __name__ == "__main__":
    unittest.main()
