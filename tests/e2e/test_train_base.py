"""Training that starts from a run: its best step, a step of one's choice, one with adapters."""
import json
import unittest

from train_case import TINY, TrainCase, hearth


class FromARun(TrainCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        done = hearth("train", cls.recipe, "-o", cls.root / "base", "--threads", 1, "train.precision=fp32", "train.keep=9")
        assert done.returncode == 0, done.stderr
        cls.next = cls.write_recipe("next.yaml", {
            "model": f"{{from: {cls.root}/base}}",
            "data": TINY["data"].replace(", tokenizer: {train: {vocab: 320}}", ""),
            "train": "{tokens_per_step: 256, steps: 1, eval_tokens: 2000, precision: fp32}",
            "optim": "{lr: 1.0e-12, warmup: 0}"})

    def valid_loss(self, run, *words):
        return json.loads(self.train(run, *words, "--json", recipe=self.next).stdout)["valid_loss"]

    def tokens(self, model):
        done = hearth("generate", model, "-p", "Once upon a time", "--raw", "--temp", 0, "--max-tokens", 16, "--dtype", "fp32")
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_every_way_to_name_a_step(self):
        valid = {m["step"]: m["valid_loss"] for m in self.metrics("base") if "valid_loss" in m}
        best = min(valid, key=valid.get)
        for name, which, step in (("plain", "", best), ("named", "@best", best), ("last", "@last", 12), ("six", "@6", 6)):
            # A rate of next to nothing: the loss is that of the weights it started from.
            self.assertAlmostEqual(self.valid_loss(name, f"model.from={self.root}/base{which}"), valid[step], places=5)
            # The step is written down, as the run may go on.
            self.assertIn(f"{self.root}/base@{step}", (self.root / name / "config.yaml").read_text())
            done = hearth("plan", self.next, f"model.from={self.root}/base{which}")
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_adapters_on_a_run_and_a_run_with_adapters(self):
        words = ["optim.lr=3e-2", "train.steps=6", "train.eval_every=6"]
        loss = self.valid_loss("adapted", "lora.rank=4", *words)
        self.assertNotAlmostEqual(loss, min(m["valid_loss"] for m in self.metrics("base") if "valid_loss" in m), places=2)
        # As a base its adapters are part of it, for the whole of the model and below adapters of its own.
        for name, extra in (("whole", []), ("twice", ["lora.rank=2"]), ("dora", ["lora.rank=2", "lora.dora=true"])):
            self.assertAlmostEqual(self.valid_loss(name, f"model.from={self.root}/adapted", *extra), loss, places=4)
            self.assertEqual(self.tokens(self.root / name), self.tokens(self.root / "adapted"))
            self.resume(name)
            self.resume(name, "train.steps=2")

    def test_what_is_not_there(self):
        done = self.train("none", f"model.from={self.root}/base@7", recipe=self.next, code=2)
        self.assert_one_line(done, "no checkpoint of step 7", "12")
        done = self.train("none", f"model.from={self.root}/base@newest", recipe=self.next, code=2)
        self.assert_one_line(done, "best, last or a step")
        done = hearth("train", self.next, "-o", self.root / "base", "--force")
        self.assertEqual(done.returncode, 2)
        self.assert_one_line(done, "must not start from itself")
        self.assertTrue(self.checkpoint("base", 12).is_dir())


if __name__ == "__main__":
    unittest.main()
