"""Runs that survive: resumed, interrupted and damaged ones end in the bytes of one that was left alone."""
import json
import shutil
import signal
import subprocess
import time
import unittest

from train_case import HEARTH, TINY, TrainCase, hearth


class Resume(TrainCase):
    def check_resume(self, name, *words, recipe=None):
        self.train(f"{name}-whole", *words, recipe=recipe)
        # An earlier end would change the schedule: the run is cut by taking later checkpoints away.
        shutil.copytree(self.root / f"{name}-whole", self.root / f"{name}-cut")
        shutil.rmtree(self.checkpoint(f"{name}-cut", 12))
        done = self.resume(f"{name}-cut")
        self.assertNotIn("no checkpoint", done.stderr)
        self.assert_same_end(f"{name}-whole", f"{name}-cut", 12)
        whole, cut = self.metrics(f"{name}-whole"), self.metrics(f"{name}-cut")
        self.assertEqual([(m["step"], m["loss"], m["lr"]) for m in whole],
                         [(m["step"], m["loss"], m["lr"]) for m in cut])
        self.assertEqual(whole[-1]["valid_loss"], cut[-1]["valid_loss"])

    def test_full_in_both_precisions(self):
        self.threads = 2
        for precision in ("fp32", "bf16"):
            self.check_resume(precision, f"train.precision={precision}", "train.neftune=5")

    def test_float16_with_a_scale_that_falls_after_the_cut(self):
        self.check_resume("fp16", "train.precision=fp16", "train.loss_scale=4294967296")
        scales = [m["loss_scale"] for m in self.metrics("fp16-cut")]
        self.assertLess(scales[8], scales[0])

    def test_adapters_with_dropout_in_both_precisions(self):
        self.train("base")
        for precision in ("fp32", "bf16"):
            recipe = self.adapter_recipe(f"lora-{precision}.yaml", dropout=0.2)
            self.check_resume(f"lora-{precision}", f"train.precision={precision}", recipe=recipe)

    def test_the_base_below_adapters_stays_what_it_was(self):
        for name, seed in (("base", 1), ("alt", 2)):
            self.train(name, f"run.seed={seed}", "--force")
        recipe = self.adapter_recipe("over.yaml")
        for name, dora in (("over", "false"), ("over-dora", "true")):
            self.train(name, "train.steps=4", f"lora.dora={dora}", recipe=recipe)
            config = (self.root / name / "config.yaml").read_text()
            done = self.resume(name, f"model.from={self.root}/alt/model", "train.steps=6", code=2)
            self.assert_one_line(done, "model.from must be the base that the run began with", "alt/model")
            self.assertEqual(config, (self.root / name / "config.yaml").read_text())
        # Elsewhere, with the same bytes.
        shutil.copytree(self.root / "base/model", self.root / "moved")
        self.resume("over", f"model.from={self.root}/moved", "train.steps=6")
        # Another in the place of the one it was.
        shutil.copy(self.root / "alt/model/model.safetensors", self.root / "moved/model.safetensors")
        self.assert_one_line(self.resume("over", "train.steps=8", code=2), "must be the base", "moved")
        # Where every weight is trained, the start is of no matter any more.
        self.train("full", f"model.from={self.root}/base/model", "train.steps=4", "data.tokenizer=null")
        self.resume("full", f"model.from={self.root}/alt/model", "train.steps=6")

    def adapter_recipe(self, name, dropout=0.0, dora="false"):
        return self.write_recipe(name, {
            "model": f"{{from: {self.root}/base/model}}",
            "data": "{synth: {kind: stories, n: 200, seed: 2}, valid: 5%, length: 32, cache: CACHE}",
            "train": "{tokens_per_step: 256, steps: 12, save_every: 4, eval_every: 6, eval_tokens: 2000}",
            "optim": "{lr: 3.0e-3}",
            "lora": f"{{rank: 4, dropout: {dropout}, dora: {dora}}}",
        })

    def test_every_optimiser_trains_and_resumes(self):
        for name in ("adamw", "adamw8bit", "lion", "adafactor", "muon"):
            rate = "optim.lr=1e-3" if name == "lion" else "optim.lr=3e-3"
            self.check_resume(name, f"optim.name={name}", rate, "train.steps=12")
            losses = [m["loss"] for m in self.metrics(f"{name}-whole")]
            self.assertLess(losses[-1], losses[0] - 0.05, name)

    def test_a_finished_run_is_left_as_it_is(self):
        self.train("finished")
        before = (self.checkpoint("finished", 12) / "weights.safetensors").read_bytes()
        self.resume("finished")
        self.assertEqual(before, (self.checkpoint("finished", 12) / "weights.safetensors").read_bytes())

    def test_a_run_can_be_made_longer(self):
        self.train("short")
        self.resume("short", "train.steps=16")
        self.assertEqual(self.metrics("short")[-1]["step"], 16)
        self.assertIn("steps: 16\n", (self.root / "short/config.yaml").read_text())

    def test_sigint_saves_and_names_the_command_that_goes_on(self):
        self.train("quiet", "train.steps=200", "train.save_every=0", "train.keep=1")
        for signum in (signal.SIGINT, signal.SIGTERM):
            run = self.root / f"stopped-{signum}"
            process = subprocess.Popen([HEARTH, "train", self.recipe, "-o", run, "--threads", str(self.threads), "train.steps=200",
                                        "train.save_every=0", "train.keep=1"], stderr=subprocess.PIPE, text=True)
            self.wait_for_steps(run, 20)
            process.send_signal(signum)
            error = process.communicate()[1]
            self.assertEqual(process.returncode, 130, error)
            self.assertIn(f"hearth train --resume {run}", error)
            self.resume(run.name)
            self.assert_same_end("quiet", run.name, 200)

    def test_the_command_that_goes_on_can_be_pasted(self):
        run = self.root / "sp é/it's"
        process = subprocess.Popen([HEARTH, "train", self.recipe, "-o", run, "--threads", "1", "train.steps=100000",
                                    "train.save_every=100000"], stderr=subprocess.PIPE, text=True)
        self.wait_for_steps(run, 2)
        process.send_signal(signal.SIGINT)
        command = process.communicate()[1].splitlines()[-1].strip()
        self.assertTrue(command.startswith("hearth train --resume "), command)
        shown = subprocess.run(["sh", "-c", command.replace("hearth", f"{HEARTH}", 1) + " --print-config"],
                               capture_output=True, text=True)
        self.assertEqual(shown.returncode, 0, shown.stderr)

    def test_a_run_goes_on_and_is_read_from_any_folder(self):
        (self.root / "there").mkdir()
        (self.root / "elsewhere").mkdir()
        lines = [json.dumps({"text": f"Once there were {i} cats and {i % 7} dogs."}) for i in range(200)]
        (self.root / "there/cats.jsonl").write_text("\n".join(lines[:190]))
        (self.root / "there/held.jsonl").write_text("\n".join(lines[190:]))
        recipe = self.write_recipe("there.yaml", {
            **TINY, "data": "{train: cats.jsonl, valid: held.jsonl, tokenizer: {train: {vocab: 270}}, length: 32, cache: kept}",
            "train": "{tokens_per_step: 256, steps: 2}"})
        words = ["train.steps=1", "-o", "over", "lora.rank=2", "model.from=base", "data.tokenizer=null", "data.cache=''"]
        for command in ([recipe, "-o", "base"], [recipe, *words]):
            done = hearth("train", *command, "--threads", 1, cwd=self.root / "there")
            self.assertEqual(done.returncode, 0, done.stderr)
        for command in (["train", "--resume", "../there/base", "train.steps=3"],
                        ["train", "--resume", "../there/base", "data.valid=../there/held.jsonl", "train.steps=4"],
                        ["train", "--resume", self.root / "there/over", "train.steps=2"],
                        ["generate", "../there/over", "-p", "Once", "--raw", "--max-tokens", 2]):
            done = hearth(*command, cwd=self.root / "elsewhere")
            self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(list((self.root / "elsewhere").iterdir()), [])

    def test_what_went_wrong_is_told_however_quiet(self):
        self.train("quietly")
        weights = self.checkpoint("quietly", 12) / "weights.safetensors"
        weights.write_bytes(weights.read_bytes()[:-4])
        done = self.resume("quietly", "--quiet", "--json")
        self.assertIn("warning: checkpoint of step 12 is not valid", done.stderr)
        self.assertIn("step 12", json.loads(done.stdout)["warnings"][0])
        self.assertNotIn("warnings", json.loads(self.resume("quietly", "--json").stdout))

    def wait_for_steps(self, run, steps):
        for _ in range(1200):
            path = run / "metrics.jsonl"
            if path.exists() and path.read_text().count("\n") >= steps:
                return
            time.sleep(0.05)
        self.fail("the run does not get going")

    def test_a_damaged_checkpoint_is_named_and_passed_over(self):
        self.train("good")
        for file in ("weights.safetensors", "optimizer.safetensors", "state.json", "checksums.json"):
            name = f"damaged-{file}"
            shutil.copytree(self.root / "good", self.root / name)
            path = self.checkpoint(name, 12) / file
            raw = bytearray(path.read_bytes())
            raw[len(raw) // 2] ^= 0x10
            path.write_bytes(raw)
            done = self.resume(name)
            self.assertIn("step-000012", done.stderr)
            self.assertIn(file, done.stderr)
            self.assert_same_end("good", name, 12)

    def test_damaged_weights_are_not_used(self):
        """Wherever a checkpoint is read: as a model, as the best, as the only one left."""
        self.train("sound", "train.keep=1")
        best = json.loads((self.root / "sound/best.json").read_text())["step"]
        shutil.copytree(self.root / "sound", self.root / "flipped")
        for folder in (self.root / "flipped/checkpoints").iterdir():
            path = folder / "weights.safetensors"
            raw = bytearray(path.read_bytes())
            raw[-9] ^= 0x40
            path.write_bytes(raw)
        for model in (self.root / "flipped", f"{self.root / 'flipped'}@last"):
            done = hearth("generate", model, "-p", "Once", "--raw", "--max-tokens", 2)
            self.assertEqual(done.returncode, 2, done.stdout)
            self.assert_one_line(done, "weights.safetensors", "hash")
        before = sorted(p.name for p in (self.root / "flipped/checkpoints").iterdir())
        done = self.resume("flipped", code=1)
        self.assert_one_line(done, "none of the checkpoints", "--force")
        self.assertEqual(before, sorted(p.name for p in (self.root / "flipped/checkpoints").iterdir()))
        # The best is missing: another is looked for, and RUN says so until there is one.
        shutil.copytree(self.root / "sound", self.root / "headless")
        shutil.rmtree(self.checkpoint("headless", best))
        done = hearth("generate", self.root / "headless", "-p", "Once", "--raw", "--max-tokens", 2)
        self.assertEqual(done.returncode, 2)
        self.assert_one_line(done, f"best step {best}" if best != 12 else "checkpoint")

    def test_a_best_checkpoint_that_is_damaged_is_best_no_longer(self):
        self.train("bent", "train.steps=4", "train.eval_every=2", "train.save_every=2")
        self.resume("bent", "train.steps=12", "optim.lr=1e-30")  # no gain from here on
        best = json.loads((self.root / "bent/best.json").read_text())["step"]
        self.assertLess(best, 12)
        weights = self.checkpoint("bent", best) / "weights.safetensors"
        raw = bytearray(weights.read_bytes())
        raw[-1] ^= 255
        weights.write_bytes(raw)
        done = self.resume("bent", "train.steps=13", "--json")
        self.assertIn("cannot be read any more", done.stderr)
        result = json.loads(done.stdout)
        self.assertEqual(result["best_step"], 13)
        self.assertEqual(json.loads((self.root / "bent/best.json").read_text())["step"], 13)

    def test_a_finished_run_without_its_checkpoints_is_not_started_anew(self):
        self.train("emptied")
        model = (self.root / "emptied/model/model.safetensors").read_bytes()
        shutil.rmtree(self.root / "emptied/checkpoints")
        self.assert_one_line(self.resume("emptied", "train.steps=3", code=1), "there any more")
        self.assertEqual(model, (self.root / "emptied/model/model.safetensors").read_bytes())

    def test_a_second_process_is_refused(self):
        run = self.root / "held"
        process = subprocess.Popen([HEARTH, "train", self.recipe, "-o", run, "train.steps=100000"],
                                   stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        try:
            self.wait_for_steps(run, 1)
            done = hearth("train", "--resume", run)
            self.assertNotEqual(done.returncode, 0)
            self.assert_one_line(done, "held")
        finally:
            process.kill()
            process.wait()

    def test_a_fresh_run_does_not_overwrite_one(self):
        self.train("kept")
        done = hearth("train", self.recipe, "-o", self.root / "kept")
        self.assertEqual(done.returncode, 2)
        self.assert_one_line(done, "kept")
        self.train("kept", "--force", "train.steps=2")

    def test_a_key_that_cannot_change_is_refused_and_nothing_is_written(self):
        self.train("begun")
        before = (self.root / "begun/config.yaml").read_text()
        cases = {"optim.name=lion": "optim.name", "model.dim=64": "model.dim", "data.length=16": "data.length",
                 "train.tokens_per_step=512": "train.tokens_per_step", "run.seed=9": "run.seed",
                 "lora.rank=4": "model.from", "train.steps=5": "train.steps",
                 "train.gradient_accumulation_steps=4 train.micro_batch_size=1": "256 tokens"}
        for words, named in cases.items():
            done = hearth("train", "--resume", self.root / "begun", *words.split(), "optim.lr=1e-4")
            self.assertEqual(done.returncode, 2, words)
            self.assert_one_line(done, named)
            self.assertEqual(before, (self.root / "begun/config.yaml").read_text(), words)
        self.resume("begun", "train.steps=14", "optim.lr=1e-4")
        self.assertEqual([m["step"] for m in self.metrics("begun")], list(range(1, 15)))

    def test_a_run_that_goes_on_stays_where_it_is(self):
        self.train("stays")
        for words in ((f"run.dir={self.root}/leaves",), ("-o", self.root / "leaves")):
            self.assert_one_line(self.resume("stays", *words, code=2), "a run goes on where it is")
        self.assertFalse((self.root / "leaves").exists())

    def test_resume_without_a_run(self):
        (self.root / "nothing").mkdir()
        done = hearth("train", "--resume", self.root / "nothing")
        self.assertEqual(done.returncode, 2)
        self.assert_one_line(done, "nothing")

    def test_metrics_are_one_line_a_step(self):
        self.train("lines")
        self.assertEqual([m["step"] for m in self.metrics("lines")], list(range(1, 13)))
        best = json.loads((self.root / "lines/best.json").read_text())
        valid = {m["step"]: m["valid_loss"] for m in self.metrics("lines") if "valid_loss" in m}
        self.assertEqual(best["step"], min(valid, key=valid.get))


if __name__ == "__main__":
    unittest.main()
