"""Recipes and what they are checked for, the data a run is not trained on, preference pairs, adapters over a rounded base."""
import json
import math
import os
import pathlib
import subprocess
import unittest

from train_case import HEARTH, TINY, TrainCase, hearth

RECIPES = pathlib.Path(__file__).resolve().parents[2] / "recipes"


def jsonl(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


class DataThatIsLost(TrainCase):
    def recipe_of(self, name, data, **sections):
        return self.write_recipe(f"{name}.yaml", {**TINY, "data": f"{{{data}, cache: CACHE}}", **sections})

    def test_long_texts_are_split_over_rows(self):
        words = "the cat sat on the mat and looked at the dog . "
        file = jsonl(self.root / "long.jsonl", [{"text": words * (1 + i % 40)} for i in range(60)])
        recipe = self.recipe_of("long", f"train: {file}, tokenizer: {{train: {{vocab: 300}}}}, length: 32, valid: 5%")
        done = self.train("long", "train.steps=4", recipe=recipe)
        self.assertIn("split over rows", done.stderr)
        self.assertNotIn("never trained on", done.stderr)
        shown = json.loads(hearth("data", "inspect", recipe, "--json").stdout)
        self.assertGreater(shown["overlong"]["split"], 10)
        self.assertEqual(shown["overlong"]["lost_tokens"], 0)
        done = self.train("cut", "train.steps=4", "data.overlong=truncate", recipe=recipe)
        self.assertRegex(done.stderr, r"warning: .* cut; .* tokens \(.* %\) are never trained on")
        done = hearth("data", "inspect", recipe, "data.overlong=truncate")
        self.assertRegex(done.stdout, r"cut; .* tokens \(.* %\) are never trained on")

    def test_bad_lines_are_told_and_can_be_fatal_later(self):
        file = self.root / "bad.jsonl"
        file.write_text('{"text": "one good line of text, and not a short one"}\n{"text": 5}\nnot json\n{}\n' * 30)
        recipe = self.recipe_of("bad", f"train: {file}, tokenizer: {{train: {{vocab: 260}}}}, length: 16")
        words = ["train.steps=1", "train.eval_every=0"]
        done = self.train("skipped", *words, "--quiet", recipe=recipe)
        self.assertIn("warning: 90 of 120 records could not be read and are left out; the first, ", done.stderr)
        self.assertIn("bad.jsonl:2: ", done.stderr)
        done = self.train("fatal", *words, "data.on_bad_line=fatal", recipe=recipe, code=2)
        self.assert_one_line(done, "bad.jsonl:2: ")
        self.assertFalse((self.root / "fatal").exists())

    def test_a_split_that_holds_nothing_out_is_told(self):
        words = ["data.valid=0.0001%", "train.steps=2"]
        recipe = self.write_recipe("held.yaml", TINY)
        done = self.train("none", *words, recipe=recipe)
        self.assertIn("holds out none of 200 documents", done.stderr)
        done = self.train("early", *words, "train.early_stop=2", recipe=recipe, code=2)
        self.assert_one_line(done, "train.early_stop", "data.valid")

    def test_an_array_of_records_is_read(self):
        rows = [{"instruction": f"Say {i}.", "input": f"number {i}", "output": f"It is {i}."} for i in range(50)]
        file = self.root / "array.json"
        file.write_text(json.dumps(rows, indent=4))
        recipe = self.recipe_of("array", f"train: {file}, tokenizer: {{train: {{vocab: 300}}}}, length: 32, fields: "
                                "{prompt: instruction, completion: output, input: input}")
        shown = json.loads(hearth("data", "inspect", recipe, "--json", "--documents", 50).stdout)
        self.assertEqual(shown["report"]["records"], 50)
        text = "".join(t[1] for t in shown["documents"][0]["shown"])
        self.assertIn("number 0", text)


class Checks(TrainCase):
    def test_a_mistake_is_found_before_data_is_made_and_leaves_no_folder(self):
        for words, part in ((["train.seq_lengths=[16,24]"], "train.seq_lengths"),
                            (["train.seq_lengths=[16,32]", "train.shape_probs=[0.5,0.6]"], "train.shape_probs"),
                            (["train.checkpointing=99"], "train.checkpointing"), (["train.memory=0"], "train.memory"),
                            (["quant.enabled=true"], "quant.enabled")):
            for command in (["train", self.recipe, "-o", self.root / "wrong"], ["plan", self.recipe],
                            ["train", self.recipe, "--print-config"]):
                done = hearth(*command, *words)
                self.assertEqual(done.returncode, 2, words)
                self.assert_one_line(done, part)
        self.assertFalse((self.root / "wrong").exists())

    def test_a_start_that_failed_does_not_block_its_folder(self):
        file = jsonl(self.root / "few.jsonl", [{"text": "x"}])
        recipe = self.write_recipe("few.yaml", {**TINY, "data": f"{{train: {file}, tokenizer: {{train: {{vocab: 260}}}}, "
                                                "length: 32, cache: CACHE, max_tokens: 1}"})
        self.assert_one_line(self.train("again", "train.eval_every=0", recipe=recipe, code=2), "data.loader")
        self.assertFalse((self.root / "again").exists())
        # The same with a folder that holds a run: it stands until the new one can start.
        self.train("again", "train.steps=2")
        self.train("again", "train.eval_every=0", "--force", recipe=recipe, code=2)
        self.assertTrue(self.checkpoint("again", 2).is_dir())

    def test_force_replaces_a_run_and_nothing_else(self):
        self.train("replaced", "train.steps=2")
        (self.root / "replaced/model/tokenizer.model").write_text("old")
        self.train("replaced", "train.steps=1", "--force")
        self.assertFalse((self.root / "replaced/model/tokenizer.model").exists())
        self.assertFalse(self.checkpoint("replaced", 2).exists())
        theirs = self.root / "theirs"
        (theirs / "checkpoints").mkdir(parents=True)
        for name in ("config.yaml", "version", "app.py"):
            (theirs / name).write_text("theirs")
        self.assert_one_line(self.train("theirs", "--force", code=2), "must hold a run or nothing")
        self.assertEqual((theirs / "config.yaml").read_text(), "theirs")

    def test_resume_goes_on_where_it_is(self):
        self.train("here", "train.steps=2")
        for flags in (["--force"], ["-o", self.root / "there"]):
            self.assert_one_line(self.resume("here", *flags, code=2), "--resume")

    def test_sections_are_switched_off_by_null(self):
        file = jsonl(self.root / "own.jsonl", [{"text": f"Once upon a time there were {i} cats ."} for i in range(40)])
        recipe = self.write_recipe("off.yaml", {**TINY, "lora": "{rank: 2}"})
        self.train("off", "lora=null", "data.synth=null", f"data.train={file}", "train.steps=1", recipe=recipe)
        self.assertNotIn("lora", (self.root / "off/config.yaml").read_text())
        self.assert_one_line(self.train("words", "lora=off", recipe=recipe, code=2), "null to switch it off")

    def test_remarks(self):
        done = self.train("remarks", "train.steps=1", "train.tokens_per_step=100", "optim.warmup=9")
        self.assertIn("a step has 96 tokens, not 100", done.stderr)
        self.assertIn("never reaches optim.lr", done.stderr)

    def test_sections_of_later_commands_are_carried(self):
        self.train("later", "train.steps=1", "coreml.compute_units=cpu_only", "coreml.enumerate_shapes=[32]")
        self.assertIn("compute_units: cpu_only", (self.root / "later/config.yaml").read_text())

    def test_json_and_stdin(self):
        values = json.loads(hearth("train", self.recipe, "--print-config", "--json", "lora.rank=2", "model.from=x",
                                   "data.length=32").stdout)
        self.assertEqual(values["schema"], "hearth.train.config/1")
        rows = {row["key"]: row for row in values["values"]}
        self.assertEqual(rows["lora.rank"], {"key": "lora.rank", "value": 2, "origin": "command line"})
        self.assertEqual(rows["lora.targets"]["value"], ["q_proj", "v_proj"])
        keys = json.loads(hearth("train", "--keys", "--json").stdout)
        self.assertEqual(keys["schema"], "hearth.train.keys/1")
        self.assertIn("quant.enabled", {row["key"] for row in keys["keys"]})
        text = self.recipe.read_text()
        for words in (["train", "-", "-o", str(self.root / "piped"), "train.steps=1"], ["plan", "-"],
                      ["data", "inspect", "-"]):
            done = subprocess.run([HEARTH, *words], input=text, capture_output=True, text=True, timeout=300)
            self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue((self.root / "piped/config.yaml").exists())
        done = hearth("sweep", "nowhere.yaml")
        self.assertEqual(done.returncode, 2)
        self.assert_one_line(done, "nowhere.yaml")

    def test_threads_are_a_key_and_flag_and_environment_win(self):
        def threads(*words, **environment):
            done = subprocess.run([HEARTH, "plan", str(self.recipe), "--json", *words], capture_output=True, text=True,
                                  env={**os.environ, **environment}, timeout=300)
            return json.loads(done.stdout)["threads"]
        self.assertEqual(threads("run.threads=1"), 1)
        self.assertEqual(threads("run.threads=1", "--threads", "3"), 3)
        self.assertEqual(threads("run.threads=1", HEARTH_THREADS="2"), 2)

    def test_threads_are_shown_as_they_run(self):
        def shown(*words, **environment):
            done = subprocess.run([HEARTH, "train", str(self.recipe), "--print-config", "run.threads=1", *words],
                                  capture_output=True, text=True, env={**os.environ, **environment}, timeout=300)
            return [line for line in done.stdout.splitlines() if line.startswith("run.threads")][0]
        self.assertRegex(shown("--threads", "3"), "= 3 .*--threads")
        self.assertRegex(shown(HEARTH_THREADS="2"), "= 2 .*HEARTH_THREADS")
        self.assertRegex(shown(), "= 1 .*command line")
        # It is this command's, not the run's.
        self.train("threaded", "train.steps=1", "run.threads=2")
        self.assertIn("threads: 2\n", (self.root / "threaded/config.yaml").read_text())

    def test_a_run_is_no_recipe(self):
        self.train("arun", "train.steps=1")
        done = hearth("train", self.root / "arun")
        self.assertEqual(done.returncode, 2)
        self.assert_one_line(done, "is a run", f"--resume {self.root / 'arun'}")
        done = hearth("plan", self.root)
        self.assertEqual(done.returncode, 2)
        self.assert_one_line(done, "is a folder")

    def test_a_result_that_does_not_arrive_gives_no_wrong_advice(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([HEARTH, "train", self.recipe, "-o", self.root / "told", "train.steps=1"], stdout=full,
                                  stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 1)
        self.assert_one_line(done, "standard output")
        self.assertNotIn("again", done.stderr)

    def test_answers_beyond_the_rows_are_told_with_what_may_help(self):
        file = jsonl(self.root / "long.jsonl", [{"prompt": "word " * 300, "completion": "yes"} for _ in range(9)])
        recipe = self.write_recipe("beyond.yaml", {
            **TINY, "data": f"{{train: {file}, tokenizer: {{train: {{vocab: 260}}}}, length: 32, cache: CACHE}}",
            "train": "{tokens_per_step: 256, steps: 2}"})
        self.assert_one_line(self.train("beyond", recipe=recipe, code=2), "can be trained on", "data.length")

    def test_the_alpha_sweep_is_the_grid_of_its_plan(self):
        rows = json.loads(hearth("sweep", RECIPES / "sweep-alpha.yaml", "--dry-run", "--json").stdout)["rows"]
        self.assertEqual(len(rows), 10)
        self.assertEqual(rows[0]["run"], "gate=fixed+0.0,lr=5.0e-4")
        self.assertEqual({row["run"].split(",")[0] for row in rows},
                         {"gate=fixed+0.0", "gate=fixed+0.5", "gate=fixed+0.8", "gate=learnable+0.5", "gate=cosine+200"})


class Lengths(TrainCase):
    def values(self, *words):
        done = hearth("train", self.root / "free.yaml", "--print-config", "--json", *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return {row["key"]: row for row in json.loads(done.stdout)["values"]}, done.stderr

    def test_the_mix_of_the_profile_is_taken_where_none_is_named(self):
        self.write_recipe("free.yaml", {**TINY, "data": "{synth: {kind: stories, n: 200}, tokenizer: {train: {vocab: 300}}}",
                                        "train": "{steps: 1}"})
        rows, said = self.values("hardware.profile=m1-pro")
        self.assertEqual(rows["train.seq_lengths"]["value"], [512, 1024, 2048, 4096])
        self.assertEqual(rows["train.shape_probs"]["value"], [0.45, 0.4, 0.12, 0.03])
        self.assertEqual(rows["train.seq_lengths"]["origin"], "profile m1-pro")
        self.assertIn("the mix of profile m1-pro", said)
        rows, said = self.values()
        self.assertTrue(rows["train.seq_lengths"]["origin"].startswith("profile "))
        # Lengths that a step or the model cannot hold are left out.
        for words in (["train.tokens_per_step=2048"], ["model.max_length=2048"]):
            rows, said = self.values("hardware.profile=m1-pro", *words)
            self.assertEqual(rows["train.seq_lengths"]["value"], [512, 1024, 2048])
            self.assertAlmostEqual(sum(rows["train.shape_probs"]["value"]), 1)
        for words in (["data.length=256"], ["train.seq_lengths=[64]"], ["data.pack=false"]):
            rows, said = self.values(*words)
            self.assertNotIn("profile", rows["train.seq_lengths"]["origin"])
            self.assertNotIn("the mix of", said)
        done = hearth("train", self.root / "free.yaml", "--print-config", "hardware.profile=m99")
        self.assert_one_line(done, "m99")
        done = hearth("plan", self.root / "free.yaml", "--machine", "m1-pro", "--json")
        self.assertIn("profile m1-pro", done.stderr)


class Preferences(TrainCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        rows = [{"prompt": f"Once {i}", "chosen": " there was a cat.", "rejected": " no no no no."} for i in range(20)]
        cls.pairs = jsonl(cls.root / "pairs.jsonl", rows[:12])
        cls.held = jsonl(cls.root / "held.jsonl", rows[12:])
        done = hearth("train", cls.recipe, "-o", cls.root / "base", "train.steps=30", "--threads", 1)
        assert done.returncode == 0, done.stderr

    def recipe_of(self, name, data="", **sections):
        return self.write_recipe(f"{name}.yaml", {
            "model": f"{{from: {self.root}/base/model}}",
            "data": f"{{train: {self.pairs}, length: 32, cache: CACHE{data}}}",
            "train": "{objective: dpo, tokens_per_step: 256, steps: 20}", "optim": "{lr: 3.0e-3}", **sections})

    def test_a_file_of_pairs_validates(self):
        recipe = self.recipe_of("valid", f", valid: {self.held}", lora="{rank: 4}")
        done = self.train("valid", recipe=recipe)
        self.assertRegex(done.stdout, r"validation loss 0\.\d+ \([\d.]+ % of pairs told apart\)")
        self.assertNotIn("perplexity", done.stdout)
        losses = []
        # One held-out split, filled up with fewer or more empty rows.
        for tokens in (256, 1024, 4096):
            name = f"valid{tokens}"
            done = self.train(name, f"train.tokens_per_step={tokens}", "train.steps=1", "optim.lr=1e-9", "--json",
                              recipe=recipe)
            result = json.loads(done.stdout)
            losses.append(result["valid_loss"])
            self.assertIn("valid_accuracy", result)
        for loss in losses:
            self.assertAlmostEqual(loss, math.log(2), places=3)
        plain = jsonl(self.root / "plain.jsonl", [{"text": "no pair"}] * 3)
        recipe = self.recipe_of("mixed", f", valid: {plain}", lora="{rank: 4}")
        self.assert_one_line(self.train("mixed", recipe=recipe, code=2), "chosen and rejected")

    def test_going_on_from_an_adapter_starts_from_it(self):
        recipe = self.recipe_of("first", lora="{rank: 4}")
        self.train("first", recipe=recipe)
        self.train("second", "train.steps=2", f"model.adapter={self.root}/first/adapter", recipe=recipe)
        self.assertAlmostEqual(self.metrics("second")[0]["loss"], math.log(2), delta=2e-3)
        self.assertLess(self.metrics("first")[-1]["loss"], 0.66)

    def test_pairs_are_not_for_the_language_model_objective(self):
        recipe = self.recipe_of("aslm")
        done = self.train("aslm", "train.objective=lm", "data.pack=false", recipe=recipe, code=2)
        self.assert_one_line(done, "train.objective dpo")


class Adapters(TrainCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        done = hearth("train", cls.recipe, "-o", cls.root / "base", "train.steps=40", "--threads", 1)
        assert done.returncode == 0, done.stderr

    def recipe_of(self, name, **sections):
        return self.write_recipe(f"{name}.yaml", {
            **TINY, "model": f"{{from: {self.root}/base/model}}",
            "data": "{synth: {kind: stories, n: 100, seed: 1}, valid: 5%, length: 32, cache: CACHE}",
            "train": "{tokens_per_step: 256, steps: 6}", **sections})

    def test_the_base_can_be_rounded(self):
        recipe = self.recipe_of("rounded", lora="{rank: 4, targets: [q_proj, v_proj, down_proj]}")
        peaks, losses = {}, {}
        for bits in (0, 8, 4):
            done = self.train(f"bits{bits}", f"lora.quantize_base={bits}", "--json", recipe=recipe)
            losses[bits] = json.loads(done.stdout)["valid_loss"]
            plan = json.loads(hearth("plan", recipe, f"lora.quantize_base={bits}", "--json").stdout)
            peaks[bits] = plan["memory"]["weights"] + plan["memory"]["packed copies"]
        self.assertGreater(peaks[0], peaks[8])
        self.assertGreater(peaks[8], peaks[4])
        self.assertNotEqual(losses[0], losses[4])
        self.assertLess(abs(losses[0] - losses[8]), 0.05)
        done = hearth("generate", self.root / "bits4", "-p", "Once", "--raw", "--max-tokens", 4)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.resume("bits4", "train.steps=8")

    def test_float16_follows_bf16_whatever_the_adapters(self):
        recipe = self.recipe_of("half", lora="{rank: 4, targets: [q_proj, v_proj, down_proj]}")
        for name, words in {"lora": [], "dropout": ["lora.dropout=0.1"], "dora": ["lora.dora=true"],
                            "int8": ["lora.quantize_base=8"], "int4": ["lora.quantize_base=4"]}.items():
            losses = {}
            for precision in ("bf16", "fp16"):
                done = self.train(f"{precision}-{name}", f"train.precision={precision}", *words, "--json", recipe=recipe)
                losses[precision] = json.loads(done.stdout)["valid_loss"]
            self.assertAlmostEqual(losses["fp16"], losses["bf16"], delta=0.02, msg=name)
        # Either way on, and the run can be read.
        self.resume("fp16-int4", "train.steps=7")
        self.resume("fp16-int4", "train.steps=8", "train.precision=bf16")
        self.resume("bf16-lora", "train.steps=7", "train.precision=fp16")
        done = hearth("generate", self.root / "fp16-int4", "-p", "Once", "--raw", "--max-tokens", 4)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_rounded_base_may_have_a_head_of_its_own(self):
        done = hearth("train", self.recipe, "-o", self.root / "untied", "model.tie=false", "train.steps=40", "--threads", 1)
        self.assertEqual(done.returncode, 0, done.stderr)
        recipe = self.recipe_of("own", lora="{rank: 4}", model=f"{{from: {self.root}/untied/model}}")
        losses = {bits: json.loads(self.train(f"own{bits}", f"lora.quantize_base={bits}", "--json", recipe=recipe).stdout)["valid_loss"]
                  for bits in (0, 8)}
        self.assertLess(abs(losses[0] - losses[8]), 0.05)
        done = hearth("generate", self.root / "own8", "-p", "Once", "--raw", "--max-tokens", 4)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_every_target_must_name_a_layer(self):
        recipe = self.recipe_of("targets", lora="{targets: [q_proj, nothing]}")
        for command in (["train", recipe, "-o", self.root / "targets"], ["plan", recipe]):
            done = hearth(*command)
            self.assertEqual(done.returncode, 2)
            self.assert_one_line(done, "'nothing'", "q_proj")

    def test_a_tokenizer_of_its_own_must_be_the_models(self):
        data = "{synth: {kind: stories, n: 200, seed: 1}, valid: 5%, tokenizer: {train: {vocab: VOCAB}}, length: 32, " \
               "arrange: stream, cache: CACHE}"
        for vocab, code in ((320, 0), (300, 2)):
            recipe = self.recipe_of(f"vocab{vocab}", data=data.replace("VOCAB", str(vocab)))
            done = self.train(f"vocab{vocab}", recipe=recipe, code=code)
            if code:
                self.assert_one_line(done, "data.tokenizer", "trained anew")

    def test_a_fine_tuning_recipe_can_be_looked_at(self):
        recipe = self.recipe_of("look")
        done = hearth("data", "inspect", recipe, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        shown = json.loads(done.stdout)
        self.assertEqual((shown["batches"][0]["rows"], shown["batches"][0]["length"]), (8, 32))
        self.assertEqual(shown["drift"], [])

    def test_sizes_of_a_new_model_are_remarked_on(self):
        done = self.train("sizes", "model.dim=64", "train.steps=1", recipe=self.recipe_of("sizes"))
        self.assertIn("model.dim is for new models and not used", done.stderr)


if __name__ == "__main__":
    unittest.main()
