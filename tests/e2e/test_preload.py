"""hearth preload and hearth profile load: packed weights are used by themselves, give the same text, are told and
made anew when they do not fit, and broken models are refused with or without them."""
import itertools
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

from zero_model import write_zeros

HEARTH = os.environ["HEARTH_BINARY"]
SOURCE = pathlib.Path(os.environ["HEARTH_SOURCE"])
MODELS = SOURCE / "tests/golden/models"
STORIES = SOURCE / "../shared/data/weights/stories260K-hf"
KNOWN = SOURCE / "tests/golden/real_models.json"


def catches(pid, number):
    """Whether the process has a handler for the signal by now."""
    try:
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return sys.platform != "linux"
    mask = next((line.split()[1] for line in status.splitlines() if line.startswith("SigCgt")), "0")
    return bool(int(mask, 16) >> (number - 1) & 1)


class Preload(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.root = pathlib.Path(self.temporary.name)
        self.model = self.root / "model"
        shutil.copytree(MODELS / "llama2", self.model)

    def environment(self):
        return dict(os.environ, HEARTH_CACHE=str(self.root / "cache"))

    def run_hearth(self, *words):
        return subprocess.run([HEARTH, *map(str, words)], capture_output=True, text=True, env=self.environment())

    def json(self, *words):
        run = self.run_hearth(*words, "--json")
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        return json.loads(run.stdout)

    def ids(self, *words):
        return self.json("generate", self.model, "--ids", "1,5,9", "--max-tokens", 12, *words)["ids"]

    def how(self, *words):
        return self.json("profile", "load", self.model, *words)["how"]

    def test_the_next_start_maps_it_and_says_the_same(self):
        for quant in ("none", "4", "8"):
            plain = self.ids("--quant", quant)
            self.assertNotEqual(self.how("--quant", quant), "packed cache")
            made = self.json("preload", self.model, "--quant", quant)
            self.assertTrue(pathlib.Path(made["path"]).exists())
            self.assertEqual(self.how("--quant", quant), "packed cache")
            self.assertNotEqual(self.how("--quant", quant, "--unpacked"), "packed cache")
            self.assertEqual(self.ids("--quant", quant), plain)
        listed = self.json("preload", "--list")
        self.assertEqual({one["variant"]["quant"] for one in listed["kept"]}, {"none", "q4_0", "q8_0"})
        self.assertGreater(listed["bytes"], 0)
        self.assertEqual(self.json("preload", "--clean")["removed_bytes"], listed["bytes"])
        self.assertEqual(self.json("preload", "--list")["kept"], [])
        self.assertNotEqual(self.how(), "packed cache")

    def test_what_does_not_fit_is_told_and_made_anew(self):
        plain = self.ids()
        path = pathlib.Path(self.json("preload", self.model)["path"])
        good = path.read_bytes()
        for bad in (good[:len(good) // 2], b"", good[:5000] + bytes([good[5000] ^ 1]) + good[5001:]):
            path.write_bytes(bad)
            run = self.run_hearth("generate", self.model, "--ids", "1,5,9", "--max-tokens", 12, "--json")
            self.assertEqual(run.returncode, 0, run.stderr)
            self.assertEqual(json.loads(run.stdout)["ids"], plain)
            self.assertIn("the packed weights are not used", run.stderr)
            self.assertIn("packed anew", run.stderr)
            self.assertEqual(self.how(), "packed cache")
        config = self.model / "config.json"
        config.write_text(config.read_text() + " ")
        run = self.run_hearth("generate", self.model, "--ids", "1,5,9", "--max-tokens", 12, "--json")
        self.assertIn("config.json has changed", run.stderr)
        self.assertEqual(json.loads(run.stdout)["ids"], plain)
        self.assertEqual(self.how(), "packed cache")

    def test_stories_tell_their_known_text_from_the_cache(self):
        if not STORIES.exists():
            self.skipTest(f"no {STORIES}")
        known = json.loads(KNOWN.read_text())["models"]["stories260K-hf"]["greedy"]
        self.model = STORIES.resolve()
        self.json("preload", self.model)
        self.assertEqual(self.how(), "packed cache")
        prompt = ",".join(map(str, known["prompt_ids"]))
        made = self.json("generate", self.model, "--ids", prompt, "--max-tokens", len(known["ids"]))
        self.assertEqual(made["ids"], known["ids"])

    def test_broken_models_are_refused_in_one_line(self):
        names = [line.split("\t")[0] for line in (SOURCE / "tests/broken/model/expected.txt").read_text().splitlines()]
        self.assertGreaterEqual(len(names), 10)
        for name in names[::3]:
            for words in (["preload"], ["generate", "--ids", "1"], ["profile", "load"]):
                run = self.run_hearth(*words, SOURCE / "tests/broken/model" / name, "--quant", "4")
                self.assertEqual(run.returncode, 2, (name, words, run.stderr))
                self.assertEqual(len([line for line in run.stderr.splitlines() if line.startswith("error:")]), 1, name)
                self.assertLessEqual(len(run.stderr.splitlines()), 2, run.stderr)
        self.assertFalse(list((self.root / "cache").glob("packed/*.pack")))

    def test_an_interrupt_is_one_line_and_leaves_nothing(self):
        packed = self.root / "cache/packed"
        for number, layers in itertools.product((signal.SIGINT, signal.SIGTERM), (8, 24)):
            write_zeros(self.model, layers)
            run = subprocess.Popen([HEARTH, "preload", str(self.model)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True, env=self.environment())
            while run.poll() is None and not catches(run.pid, number):
                time.sleep(0.001)
            run.send_signal(number)
            out, err = run.communicate(timeout=300)
            if run.returncode == 0 and layers == 8:
                continue  # it was faster than we were
            self.assertEqual((run.returncode, out), (130, ""), err)
            self.assertEqual(err.count("\n"), 1, err)
            self.assertIn("error: interrupted", err)
            self.assertEqual(list(packed.glob("*tmp*")), [])

    def test_what_cannot_be_removed_is_said(self):
        path = pathlib.Path(self.json("preload", self.model)["path"])
        path.parent.chmod(0o555)
        self.addCleanup(path.parent.chmod, 0o755)
        self.root.chmod(0o755)
        # Permissions stop everybody but root.
        user = {"user": 65534} if os.geteuid() == 0 else {}
        run = subprocess.run([HEARTH, "preload", "--clean"], capture_output=True, text=True, env=self.environment(), **user)
        self.assertEqual((run.returncode, run.stdout), (1, ""), run.stderr)
        self.assertIn(f"cannot remove {path}: Permission denied", run.stderr)
        self.assertTrue(path.exists())

    def test_tensors_that_nothing_uses_are_named_once(self):
        config = json.loads((self.model / "config.json").read_text())
        config["num_hidden_layers"] -= 1
        (self.model / "config.json").write_text(json.dumps(config))
        gone = f"model.layers.{config['num_hidden_layers']}.input_layernorm.weight"
        for words in (["preload", self.model], ["generate", self.model, "--ids", "1,5"],
                      ["generate", self.model, "--ids", "1,5", "--quiet"]):
            run = self.run_hearth(*words)
            self.assertEqual(run.returncode, 0, run.stderr)
            self.assertEqual(run.stderr.count("tensors are not used"), 1, run.stderr)
            self.assertIn(gone, run.stderr)

    def test_the_profile_adds_up(self):
        page = self.root / "load.html"
        p = self.json("profile", "load", self.model, "--quant", "8", "--html", page)
        self.assertEqual([x["name"] for x in p["phases"]], ["open", "header", "tokenizer", "build", "read", "convert",
                                                            "pack", "quantise", "memory", "first token"])
        self.assertAlmostEqual(sum(x["seconds"] for x in p["phases"]), p["seconds"], delta=1e-3)
        size = sum(x["bytes"] for x in p["shards"])
        self.assertEqual(size, p["bytes"])
        self.assertEqual(size, sum(x["bytes"] for x in p["classes"]))
        self.assertEqual({x["name"] for x in p["classes"]}, {"attention", "mlp", "embedding", "head", "norm"})
        self.assertGreater(p["memory"]["peak_resident"], p["memory"]["model_bytes"])
        self.assertIn(p["slow"]["part"], ["disk", "mapping", "memory pressure", "quantising", "converting",
                                          "initialising"])
        text = page.read_text()
        self.assertIn("<svg", text)
        self.assertNotIn("http", text)

    def test_wrong_words(self):
        for words, what in ((["preload"], "MODEL"), (["preload", self.model, "--list"], "one of"),
                            (["preload", self.model, "--quant", "7"], "--quant"),
                            (["profile", "load", self.model, "--read", "slowly"], "--read"),
                            (["profile", "load", self.model, "--html", "/no/such/folder/x.html"], "/no/such")):
            run = self.run_hearth(*words)
            self.assertEqual(run.returncode, 2, (words, run.stderr))
            self.assertIn(what, run.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
