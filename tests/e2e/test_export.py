"""hearth export: a folder that hearth reads as the same model, adapters merged, refusals in one line."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

HEARTH = os.environ["HEARTH_BINARY"]
GOLDEN = pathlib.Path(os.environ["HEARTH_SOURCE"]) / "tests/golden"
BASE, ADAPTER = GOLDEN / "models/llama3-gqa", GOLDEN / "adapters/dora"


def hearth(*words):
    return subprocess.run([HEARTH, *map(str, words)], capture_output=True, text=True)


class Export(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.out = pathlib.Path(temporary.name) / "out"

    def document(self, *words):
        run = hearth(*words, "--json")
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        return json.loads(run.stdout)

    def log_probs(self, *words):
        said = self.document("generate", *words, "--ids", "1,5,9,33", "--max-tokens", "1", "--logprobs", "64",
                             "--dtype", "fp32")
        return [t["logprob"] for t in sorted(said["logprobs"][0]["top"], key=lambda t: t["id"])]

    def refused(self, *words, says):
        run = hearth(*words)
        self.assertEqual(run.returncode, 2, run.stderr)
        self.assertEqual(run.stdout, "")
        self.assertLessEqual(len(run.stderr.splitlines()), 2, run.stderr)
        self.assertIn(says, run.stderr)
        self.assertFalse(self.out.exists())

    def test_an_adapter_is_merged(self):
        said = self.document("export", "hf", BASE, "--adapter", ADAPTER, "-o", self.out, "--dtype", "fp32")
        self.assertEqual((said["schema"], said["merged_adapters"], said["dtype"]), ("hearth.export/1", 6, "f32"))
        merged, apart, plain = self.log_probs(self.out), self.log_probs(BASE, "--adapter", ADAPTER), self.log_probs(BASE)
        self.assertLess(max(abs(a - b) for a, b in zip(merged, apart)), 1e-4)
        self.assertGreater(max(abs(a - b) for a, b in zip(merged, plain)), 1e-2)

    def test_shards_and_dtypes(self):
        self.document("export", "hf", BASE, "-o", self.out, "--shard-size", "10KB")
        self.assertGreater(len(list(self.out.glob("model-*-of-*.safetensors"))), 1)
        self.assertEqual(self.log_probs(self.out), self.log_probs(BASE))
        self.assertEqual(json.loads((self.out / "config.json").read_text())["dtype"], "bfloat16")
        again = hearth("export", "hf", BASE, "-o", self.out)
        self.assertEqual(again.returncode, 2)
        self.assertIn("--force", again.stderr)
        self.assertEqual(hearth("export", "hf", BASE, "-o", self.out, "--force", "--dtype", "fp16").returncode, 0)
        self.assertEqual(json.loads((self.out / "config.json").read_text())["dtype"], "float16")

    def test_peft_adapters_are_written(self):
        self.document("export", "peft", BASE, "--adapter", ADAPTER, "-o", self.out)
        self.assertEqual(self.log_probs(BASE, "--adapter", self.out), self.log_probs(BASE, "--adapter", ADAPTER))

    def test_refusals(self):
        self.refused("export", "hf", BASE, says="--output")
        self.refused("export", "hf", BASE.parent / "none", "-o", self.out, says="no such model")
        self.refused("export", "hf", BASE, "-o", self.out, "--shard-size", "big", says="--shard-size")
        self.refused("export", "hf", BASE, "-o", self.out, "--dtype", "int3", says="--dtype")
        self.refused("export", "hf", BASE, "-o", self.out, "--adapter", BASE, says="adapter_config.json")
        self.refused("export", "hf", GOLDEN / "models/gpt2", "-o", self.out, "--adapter", ADAPTER, says="down_proj")
        self.refused("export", "peft", BASE, "-o", self.out, says="no adapter")


if __name__ == "__main__":
    unittest.main()
