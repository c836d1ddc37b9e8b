"""Runs within what was planned: gone on with under the same budget, cut in another way, in rows of several lengths."""
import json
import random
import re
import unittest

from train_case import TINY, TrainCase, hearth


class Memory(TrainCase):
    # Most of what it holds is weights and the optimiser's state.
    HEAVY = {
        "model": "{arch: llama, dim: 384, layers: 6, heads: 6, ffn: 1024}",
        "data": "{synth: {kind: stories, n: 200, seed: 1}, valid: 5%, tokenizer: {train: {vocab: 320}}, length: 64, cache: CACHE}",
        "train": "{tokens_per_step: 128, steps: 2, save_every: 1, eval_tokens: 200}",
        "optim": "{lr: 1.0e-4}",
    }

    def plan(self, recipe, *words):
        done = hearth("plan", recipe, "--threads", self.threads, "--json", *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_a_run_goes_on_within_the_budget_it_was_planned_for(self):
        recipe = self.write_recipe("heavy.yaml", self.HEAVY)
        budget = f"train.memory={self.plan(recipe)['peak_bytes'] // 1024 + 1}K"
        self.train("heavy", budget, recipe=recipe)
        done = self.resume("heavy", "train.steps=4")
        self.assertNotIn("out of memory", done.stderr)
        self.assertEqual(len(self.metrics("heavy")), 4)

    def test_a_larger_budget_or_another_micro_batch_is_taken_up(self):
        words = ["train.tokens_per_step=4096", "data.length=128", "train.steps=2"]
        recipe = self.write_recipe("cut.yaml", {**TINY, "data": TINY["data"].replace("arrange: stream, ", "")})
        tight = self.plan(recipe, *words, "train.micro_batch_size=2")["peak_bytes"] // 1024 + 1
        self.train("cut", *words, f"train.memory={tight}K", recipe=recipe)
        self.resume("cut", "train.memory=4G", "train.steps=4")
        self.resume("cut", "train.micro_batch_size=3", "train.steps=6")
        rows = [m["micro_batch"] for m in self.metrics("cut")]
        self.assertLess(rows[0], 32, rows)
        self.assertEqual(rows[2:4], [32, 32], rows)
        self.assertEqual(rows[4:], [3, 3], rows)

    def test_micro_batches_of_every_length_have_as_many_tokens(self):
        recipe = self.write_recipe("lengths.yaml", {**TINY, "data": TINY["data"].replace("arrange: stream, ", "")})
        self.train("lengths", "train.seq_lengths=[16, 64]", "train.shape_guarantee=4", "train.micro_batch_size=2", recipe=recipe)
        cuts = {(m["length"], m["micro_batch"]) for m in self.metrics("lengths")}
        self.assertEqual(cuts, {(16, 8), (64, 2)})


class MixedLengths(TrainCase):
    """Short documents of random letters beside long ones that repeat a syllable: rows of either have losses of their own."""
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        draw = random.Random(1)
        lines = []
        for i in range(3000):
            short = "".join(draw.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(draw.randint(20, 31)))
            lines.append(json.dumps({"text": short if i % 2 else "la " * draw.randint(70, 84)}))
        (cls.root / "kinds.jsonl").write_text("\n".join(lines))
        cls.kinds = cls.write_recipe("kinds.yaml", {
            "model": TINY["model"],
            "data": f"{{train: {cls.root}/kinds.jsonl, valid: 2%, tokenizer: {{train: {{vocab: 270}}}}, length: 256, cache: CACHE}}",
            "train": "{tokens_per_step: 1024, steps: 60, eval_tokens: 1000, health: {window: 16, least: 8}}",
            "optim": "{lr: 1.0e-2, warmup: 5}",
        })

    def check(self, name, *words):
        done = self.train(name, *words, recipe=self.kinds)
        metrics = self.metrics(name)
        self.assertGreater(len({m["length"] for m in metrics}), 1)
        self.assertEqual([m["step"] for m in metrics if "skipped" in m], [], done.stderr)
        self.assertEqual(len(metrics), 60)

    def test_nothing_is_skipped_in_enumerated_lengths(self):
        self.check("enumerated", "train.seq_lengths=[32, 256]", "train.shape_probs=[0.2, 0.8]")

    def test_nothing_is_skipped_in_padded_buckets(self):
        self.check("padded", "data.arrange=pad")


class Gates(TrainCase):
    def test_a_step_of_a_run_from_a_gated_run_has_its_own_alpha(self):
        recipe = self.write_recipe("gated.yaml", TINY)
        gate = ["model.gate.alpha=linear", "model.gate.steps=24", "train.precision=fp32"]
        self.train("gated", *gate, recipe=recipe)
        still = self.write_recipe("still.yaml", {
            "model": f"{{from: {self.root}/gated@12}}",
            "data": re.sub(", tokenizer: {train: {[^}]*}}", "", TINY["data"]),
            "train": "{tokens_per_step: 256, steps: 6, save_every: 2, keep: 9, precision: fp32, eval_tokens: 500}",
            "optim": "{lr: 1.0e-12, warmup: 0, schedule: constant}",
        })
        # Weights that stay: what differs is where the gates stand.
        self.train("six", recipe=still)
        self.train("two", "train.steps=2", recipe=still)
        self.train("adapted", "lora.rank=2", recipe=still)
        six, two = self.score(self.root / "six/model"), self.score(self.root / "two/model")
        self.assertGreater(abs(six - two), 1e-4)
        self.assertAlmostEqual(self.score(f"{self.root}/six@2"), two, places=6)
        self.assertAlmostEqual(self.score(f"{self.root}/six@6"), six, places=6)
        self.assertAlmostEqual(self.score(f"{self.root}/adapted@2"), two, places=6)

    def score(self, model):
        text = self.root / "text.txt"
        text.write_text("Once upon a time there was a cat. It was very small. The cat had a red ball and a big friend. " * 6)
        done = hearth("eval", "ppl", model, "--text", text, "--ctx", 32, "--dtype", "fp32", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)["nll"]


if __name__ == "__main__":
    unittest.main()
