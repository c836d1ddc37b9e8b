"""hearth train on tiny models: options, objectives, bad steps, memory, what a run is as a model, and recipe errors."""
import json
import math
import os
import pathlib
import shutil
import struct
import subprocess
import tempfile
import unittest

from train_case import HEARTH, TINY, TrainCase, hearth


def tensors(path):
    """The float32 tensors of a safetensors file, as lists."""
    raw = path.read_bytes()
    size = struct.unpack("<Q", raw[:8])[0]
    header, data = json.loads(raw[8:8 + size]), raw[8 + size:]
    header.pop("__metadata__", None)
    return {name: struct.unpack(f"<{(t['data_offsets'][1] - t['data_offsets'][0]) // 4}f", data[slice(*t["data_offsets"])])
            for name, t in header.items()}


class Options(TrainCase):
    def last_loss(self, run):
        return self.metrics(run)[-1]["loss"]

    def assert_close(self, one, other, step, limit):
        a = tensors(self.checkpoint(one, step) / "weights.safetensors")
        b = tensors(self.checkpoint(other, step) / "weights.safetensors")
        self.assertEqual(a.keys(), b.keys())
        for name in a:
            worst = max(abs(x - y) for x, y in zip(a[name], b[name]))
            self.assertLessEqual(worst, limit, name)

    def test_the_update_is_the_same_however_it_is_cut(self):
        words = ["train.precision=fp32", "train.steps=4"]
        self.train("whole", *words)
        for name, extra in {"rows": ["train.micro_batch_size=3"], "accumulated": ["train.gradient_accumulation_steps=4"],
                            "together": ["train.micro_batch_size=2", "train.eval_interval=4"],
                            "again": ["train.checkpointing=all"], "every": ["train.checkpointing=2"]}.items():
            self.train(name, *words, *extra)
            self.assert_close("whole", name, 4, 2e-4)

    def test_a_tight_budget_is_kept_by_smaller_micro_batches(self):
        words = ["train.precision=fp32", "train.steps=4", "train.tokens_per_step=4096", "data.length=128"]
        recipe = self.write_recipe("long.yaml", TINY)
        self.train("pinned", *words, "train.micro_batch_size=1", recipe=recipe)
        done = self.train("roomy", *words, "--json", recipe=recipe)
        peak = json.loads(done.stdout)["peak_mib"]
        done = self.train("tight", *words, f"train.memory={int(0.7 * peak * 1024)}K", recipe=recipe)
        rows = {run: self.metrics(run)[-1]["micro_batch"] for run in ("roomy", "tight")}
        self.assertLess(rows["tight"], rows["roomy"])
        self.assert_close("pinned", "tight", 4, 2e-4)
        done = self.train("hopeless", *words, "train.memory=700K", recipe=recipe, code=1)
        self.assertEqual(len([x for x in done.stderr.splitlines() if x.startswith("error: ")]), 1, done.stderr)

    def test_float16_follows_bf16_and_its_scale_follows_overflows(self):
        words = ["train.steps=30", "train.eval_every=0"]
        self.train("bf16", *words)
        self.train("fp16", *words, "train.precision=fp16")
        self.assertEqual({m["loss_scale"] for m in self.metrics("fp16")}, {65536})
        self.assertAlmostEqual(self.last_loss("fp16"), self.last_loss("bf16"), delta=0.02)
        done = self.train("overflows", *words, "train.precision=fp16", "train.loss_scale=4294967296")
        self.assertIn("beyond float16", done.stderr)
        steps = self.metrics("overflows")
        skipped = [m["step"] for m in steps if m.get("skipped")]
        self.assertEqual(skipped[:2], [1, 2])
        self.assertLess(len(skipped), 25)
        for before, after in zip(steps, steps[1:]):
            self.assertEqual(after["loss_scale"], before["loss_scale"] / (2 if before.get("skipped") else 1))
        self.assertEqual({e["event"] for e in self.events("overflows")}, {"overflow"})
        self.assertLess(steps[-1]["loss"], steps[0]["loss"])

    def test_loss_options_run_and_change_the_loss(self):
        self.train("plain", "train.steps=4")
        for word in ("train.label_smoothing=0.1", "train.z_loss=1e-2", "train.neftune=10"):
            self.train(word, word, "train.steps=4")
            self.assertNotEqual(self.last_loss(word), self.last_loss("plain"), word)
            self.assertTrue(math.isfinite(self.last_loss(word)))

    def test_schedules(self):
        for name in ("constant", "linear", "cosine", "wsd"):
            self.train(name, f"optim.schedule={name}", "optim.min_lr=0.1", "train.eval_every=0", "train.save_every=0")
            rates = [m["lr"] for m in self.metrics(name)]
            self.assertAlmostEqual(max(rates), 3e-3)
            self.assertLess(rates[0], max(rates))
            if name != "constant":
                self.assertLess(rates[-1], 0.6 * max(rates))

    def test_enumerated_lengths(self):
        recipe = self.write_recipe("lengths.yaml", TINY)
        self.train("lengths", "train.seq_lengths=[16, 32, 64]", "train.shape_probs=[0.5, 0.3, 0.2]",
                   "train.shape_guarantee=12", "train.steps=24", recipe=recipe)
        lengths = [m["length"] for m in self.metrics("lengths")]
        self.assertEqual(set(lengths), {16, 32, 64})
        for m in self.metrics("lengths"):
            self.assertLessEqual(m["micro_batch"] * m["length"], 256)

    def test_gates_train_and_are_read_where_their_schedule_stands(self):
        for number, (unit, alpha) in enumerate([("glu", "learnable"), ("gtu", "linear"), ("swish", "cosine"),
                                                ("reglu", "entropy"), ("gelu", "confidence"), ("mish", "fixed")]):
            name = f"gate{number}"
            recipe = self.write_recipe("gate.yaml", TINY)
            done = self.train(name, f"model.gate.unit={unit}", f"model.gate.alpha={alpha}", "model.gate.value=0.5",
                              "model.gate.steps=12", "train.precision=fp32", "train.eval_tokens=100000", "--json",
                              recipe=recipe)
            valid = json.loads(done.stdout)["valid_loss"]
            gate = json.loads((self.root / name / "model/config.json").read_text())["gate"]
            self.assertEqual((gate["alpha"], gate["step"]), (alpha, 12))
            # Held-out text is scored by another command, from the folder and from the checkpoint.
            scores = [json.loads(hearth("eval", "ppl", model, "--text", self.text(), "--ctx", 32, "--json").stdout)
                      for model in (self.root / name / "model", f"{self.root / name}@12")]
            self.assertAlmostEqual(self.nll(scores[0]), self.nll(scores[1]), places=3)
            self.assertLess(abs(self.nll(scores[0]) - valid), 0.8)

    def nll(self, score):
        return score["nll"]

    def text(self):
        path = self.root / "text.txt"
        if not path.exists():
            done = hearth("data", "synth", "--kind", "stories", "--n", 20, "--seed", 9)
            self.assertEqual(done.returncode, 0, done.stderr)
            lines = [json.loads(line) for line in done.stdout.splitlines()]
            path.write_text("\n".join(line["text"] for line in lines))
        return path

    def test_validation_is_plain_cross_entropy_whatever_training_adds(self):
        words = ["train.steps=1", "optim.lr=1e-12", "train.precision=fp32"]
        losses = [json.loads(self.train(f"scored{i}", *words, *extra, "--json").stdout)["valid_loss"]
                  for i, extra in enumerate([[], ["train.label_smoothing=0.3", "train.z_loss=0.1"]])]
        self.assertAlmostEqual(*losses, places=6)

    def test_epochs(self):
        recipe = self.write_recipe("epochs.yaml", {**TINY, "train": "{tokens_per_step: 2048, save_every: 50}"})
        tokens = [json.loads(self.train(f"epochs{e}", f"train.epochs={e}", "--json", recipe=recipe).stdout)["tokens"]
                  for e in (1, 2)]
        self.assertEqual(tokens[1], 2 * tokens[0])
        self.assert_one_line(self.train("endless", "train.epochs=1e300", recipe=recipe, code=2), "train.epochs", "10000")

    def test_rows_fit_learnt_positions(self):
        gpt2 = {**TINY, "model": "{arch: gpt2, dim: 32, layers: 2, heads: 2, ffn: 64}"}
        recipe = self.write_recipe("positions.yaml", gpt2)
        # Held-out rows are as long as the longest that is trained on, not as data.length has it.
        done = self.train("lengths2", "train.seq_lengths=[16, 32]", "data.length=1024", "train.steps=2", "--json",
                          recipe=recipe)
        self.assertLess(json.loads(done.stdout)["valid_loss"], 7)
        for command in ("train", "plan"):
            done = hearth(command, recipe, "model.max_length=16", *(["-o", self.root / "short"] if command == "train" else []))
            self.assertEqual(done.returncode, 2)
            self.assert_one_line(done, "data.length", "16 positions", "model.max_length", "32")
        self.assertFalse((self.root / "short/config.yaml").exists())
        done = self.train("longer", f"model.from={self.root}/lengths2", "data.length=64", "data.tokenizer=null",
                          recipe=recipe, code=2)
        self.assert_one_line(done, "data.length", "32 positions")

    def test_the_end_is_told_as_it_was(self):
        done = self.train("stopped", "optim.lr=1e-30", "train.eval_every=2", "train.early_stop=2", "train.steps=50")
        self.assertIn("stopped early", done.stdout)
        self.assertIn("of the best step, 2: validation loss", done.stdout)
        again = self.resume("stopped")
        self.assertIn("stopped early", again.stdout)
        self.assertNotIn("tokens/s", again.stdout)
        self.assertEqual(self.metrics("stopped")[-1]["step"], 6)
        one = json.loads(self.train("single", "train.steps=1", "--json").stdout)
        self.assertGreater(one["tokens_per_s"], 0)
        done = json.loads(self.resume("single", "--json").stdout)
        self.assertNotIn("tokens_per_s", done)
        self.assertNotIn("peak_mib", done)

    def test_early_stop_and_the_best_checkpoint(self):
        # A rate this high makes things worse after a while.
        done = self.train("early", "optim.lr=0.5", "optim.warmup=0", "train.steps=200", "train.eval_every=2",
                          "train.early_stop=3", "train.health.enabled=false", "train.keep=1", "--json")
        result = json.loads(done.stdout)
        self.assertTrue(result["stopped_early"])
        self.assertLess(result["steps"], 200)
        best = json.loads((self.root / "early/best.json").read_text())
        self.assertAlmostEqual(result["best_valid_loss"], best["valid_loss"])
        self.assertTrue(self.checkpoint("early", best["step"]).is_dir())
        self.assertEqual(result["steps"], best["step"] + 6)
        same = hearth("generate", self.root / "early", "-p", "Once", "--raw", "--temp", 0, "--max-tokens", 12)
        other = hearth("generate", f"{self.root / 'early'}@{best['step']}", "-p", "Once", "--raw", "--temp", 0, "--max-tokens", 12)
        self.assertEqual(same.returncode, 0, same.stderr)
        self.assertEqual(same.stdout, other.stdout)

    def test_a_run_is_a_model(self):
        self.train("asmodel")
        run = self.root / "asmodel"
        for model in (run, f"{run}@last", f"{run}@best", f"{run}@8", run / "model"):
            done = hearth("inspect", model)
            self.assertEqual(done.returncode, 0, done.stderr)
            done = hearth("eval", "ppl", model, "--text", self.text(), "--ctx", 32)
            self.assertEqual(done.returncode, 0, done.stderr)
            done = hearth("generate", model, "-p", "Once", "--raw", "--max-tokens", 4)
            self.assertEqual(done.returncode, 0, done.stderr)
        done = hearth("generate", f"{run}@7", "-p", "Once", "--raw", "--max-tokens", 4)
        self.assertEqual(done.returncode, 2)
        self.assert_one_line(done, "step 7", "8, 12")


class BadSteps(TrainCase):
    def test_a_loss_that_is_not_finite_is_skipped_rolled_back_and_explained(self):
        done = self.train("nan", "optim.lr=1e30", "optim.clip=0", "optim.warmup=0", "train.steps=40", "train.save_every=1",
                          "train.keep=9", "train.precision=fp32", code=1)
        events = self.events("nan")
        self.assertEqual([e["event"] for e in events], ["skip", "skip", "roll back", "skip", "skip", "stop"])
        for event in events:
            self.assertTrue(event["samples"])
            self.assertEqual(len(event["samples"][0]), 4)
        self.assertIn("rolled back from step", done.stderr)
        self.assertIn("events.jsonl", done.stderr)
        self.assert_one_line(done, "training stopped", "roll-back")

    def test_after_a_roll_back_everything_is_from_before_the_trouble(self):
        self.train("sick", "train.steps=30", "train.save_every=1", "train.eval_every=0")
        done = self.resume("sick", "train.steps=60", "optim.lr=3000", "optim.clip=0", "optim.schedule=constant", code=1)
        self.assert_one_line(done, "training stopped", "--resume")
        for folder in (self.root / "sick/checkpoints").iterdir():
            for name, values in tensors(folder / "weights.safetensors").items():
                self.assertLess(max(map(abs, values)), 100, (folder, name))
        self.resume("sick", "train.steps=60", "optim.lr=1e-3", "optim.clip=1")
        self.assertEqual([m["step"] for m in self.metrics("sick")], list(range(1, 61)))

    def test_a_run_that_ends_with_no_finite_loss_fails(self):
        words = ["optim.lr=1e12", "optim.clip=0", "optim.warmup=0", "train.steps=2", "train.precision=fp32",
                 "train.eval_every=0"]
        done = self.train("ended", *words, code=1)
        self.assert_one_line(done, "diverged", "validation loss", "not finite")
        self.assertFalse((self.root / "ended/model/model.safetensors").exists())
        self.assert_one_line(self.resume("ended", code=1), "diverged")

    def test_a_rate_that_is_too_high_for_a_while(self):
        """The state after a roll-back keeps the smaller rate, and the batches that went wrong are not drawn again."""
        done = self.train("rolled", "optim.lr=1e30", "optim.clip=0", "optim.warmup=0", "train.steps=40",
                          "train.save_every=1", "train.keep=40", "train.precision=fp32", code=1)
        drawn = [json.dumps(e["samples"]) for e in self.events("rolled")]
        self.assertEqual(len(drawn), len(set(drawn)))


class Preferences(TrainCase):
    def test_pairs_are_told_apart(self):
        self.train("base", "train.steps=30")
        pairs = self.root / "pairs.jsonl"
        rows = [{"prompt": f"Once {i}", "chosen": " there was a cat.", "rejected": " no no no no."} for i in range(12)]
        pairs.write_text("".join(json.dumps(r) + "\n" for r in rows))
        for name, extra in {"dpo-lora": {"lora": "{rank: 4}"}, "dpo-full": {}, "dpo-fp16": {}}.items():
            recipe = self.write_recipe(f"{name}.yaml", {
                "model": f"{{from: {self.root}/base/model}}",
                "data": f"{{train: {pairs}, length: 32, cache: CACHE}}",
                "train": "{objective: dpo, tokens_per_step: 256, steps: 25}",
                "optim": "{lr: 3.0e-3}", **extra})
            self.train(name, *(["train.precision=fp16"] if name == "dpo-fp16" else []), recipe=recipe)
            losses = [m["loss"] for m in self.metrics(name)]
            self.assertAlmostEqual(losses[0], math.log(2), delta=0.02)
            self.assertLess(losses[-1], 0.5)

    def test_records_without_pairs_are_refused(self):
        self.train("plain")
        recipe = self.write_recipe("nopairs.yaml", {
            "model": f"{{from: {self.root}/plain/model}}",
            "data": "{synth: {kind: stories, n: 50}, length: 32, cache: CACHE}", "train": "{objective: dpo}"})
        self.assert_one_line(self.train("refused", recipe=recipe, code=2), "chosen")


class Mistakes(TrainCase):
    def test_recipes(self):
        cases = {
            "optim: {learning: 1}": ["recipe.yaml:1", "optim.learning"],
            "train: {steps: many}": ["recipe.yaml:1", "train.steps", "integer"],
            "train: {steps: 0}": ["recipe.yaml:1", "train.steps"],
            "\ntrain: {objectve: lm}": ["recipe.yaml:2", "objective"],
            "train: {precision: int4}": ["recipe.yaml:1", "bf16"],
            "train: [1, 2": ["recipe.yaml:"],
            "data: {train: nowhere.jsonl, tokenizer: {train: {vocab: 300}}}": ["nowhere.jsonl"],
            "data: {length: 32}": ["data."],
            "lora: {rank: 4}": ["model.from"],
            "train: {shape_probs: [1]}": ["shape_probs"],
            "train: {checkpointing: some}": ["checkpointing"],
            "model: {from: nowhere}\ndata: {synth: {n: 10}}": ["nowhere"],
            "model: {adapter: somewhere}\ndata: {synth: {n: 10}}": ["model.adapter"],
            "data: {train: empty.jsonl, tokenizer: {train: {vocab: 300}}}": ["must hold text"],
        }
        (self.root / "empty.jsonl").write_text("")
        for number, (text, parts) in enumerate(cases.items()):
            (self.root / "recipe.yaml").write_text(text + "\n")
            done = hearth("train", "recipe.yaml", "-o", f"bad{number}", cwd=self.root)
            with self.subTest(text):
                self.assertNotEqual(done.returncode, 0)
                self.assert_one_line(done, *parts)

    def test_no_recipe_and_a_missing_one(self):
        self.assert_one_line(hearth("train"), "recipe")
        self.assert_one_line(hearth("train", "nowhere.yaml"), "nowhere.yaml")

    def test_keys_lists_every_key(self):
        done = hearth("train", "--keys")
        self.assertEqual(done.returncode, 0, done.stderr)
        for key in ("optim.lr", "train.tokens_per_step", "lora.rank", "model.gate.unit", "data.synth.kind", "run.dir"):
            self.assertIn(key, done.stdout)

    def test_a_full_disk_keeps_what_was_saved(self):
        point = pathlib.Path(tempfile.mkdtemp())
        mount = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "none", point], capture_output=True, text=True)
        if mount.returncode != 0:
            self.skipTest(f"no small file system can be mounted here: {mount.stderr.strip()}")
        try:
            done = hearth("train", self.recipe, "-o", point / "run", "train.steps=200", "train.keep=100",
                          "optim.schedule=constant")
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assert_one_line(done, "space")
            saved = sorted((point / "run/checkpoints").iterdir())
            self.assertTrue(all(p.name.startswith("step-") for p in saved), saved)
            # With room again it goes on from the last that was whole.
            shutil.copytree(point / "run", self.root / "freed")
            self.resume("freed", "train.steps=60", "train.keep=1")
            self.train("roomy", "train.steps=60", "train.keep=1", "optim.schedule=constant")
            self.assert_same_end("roomy", "freed", 60)
        finally:
            subprocess.run(["umount", point], check=False)
            os.rmdir(point)


if __name__ == "__main__":
    unittest.main()
