"""hearth inspect: facts of small models made here, warnings, refusals."""
import json
import os
import pathlib
import struct
import subprocess
import tempfile
import unittest

HEARTH = os.environ["HEARTH_BINARY"]
SOURCE = pathlib.Path(os.environ["HEARTH_SOURCE"])
CONFIG = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 8, "intermediate_size": 12,
          "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 5,
          "max_position_embeddings": 16, "rope_theta": 10000.0, "torch_dtype": "float32", "tie_word_embeddings": True}


def safetensors(tensors):
    header, data = {}, b""
    for name, (dtype, shape, raw) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def inspect(*words):
    return subprocess.run([HEARTH, "inspect", *map(str, words)], capture_output=True, text=True,
                          env={**os.environ, "HF_HUB_OFFLINE": "1"})


class Inspect(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = pathlib.Path(self.folder.name)

    def model(self, tensors, **more):
        (self.root / "config.json").write_text(json.dumps({**CONFIG, **more}))
        (self.root / "model.safetensors").write_bytes(safetensors(tensors))
        return self.root

    def test_facts(self):
        path = self.model({"model.embed_tokens.weight": ("F32", [5, 8], b"\0" * 160),
                           "model.norm.weight": ("BF16", [8], b"\0" * 16)})
        run = inspect(path, "--json", "--tensors", "--check")
        self.assertEqual(run.returncode, 0, run.stderr)
        said = json.loads(run.stdout)
        self.assertEqual(said["schema"], "hearth.inspect/1")
        self.assertEqual(said["parameters"], 48)
        self.assertEqual(said["types"]["bf16"], {"tensors": 1, "parameters": 8, "bytes": 16})
        self.assertEqual(said["kv_bytes_per_token"], 2 * 3 * 2 * 2 * 2)
        self.assertEqual(said["memory_bytes"], 176)
        self.assertEqual(said["disk_bytes"], (path / "model.safetensors").stat().st_size)
        self.assertEqual(said["non_finite"], 0)
        self.assertEqual([t["name"] for t in said["tensors"]], ["model.embed_tokens.weight", "model.norm.weight"])
        self.assertTrue(any("generation_config" in w for w in said["warnings"]))

    def test_warnings(self):
        nan = struct.pack("<2f", float("nan"), 1)
        path = self.model({"model.embed_tokens.weight": ("F32", [4, 8], b"\0" * 128),
                           "model.layers.3.x": ("F32", [2], nan), "lm_head.weight": ("F32", [1], b"\0" * 4)})
        text = inspect(path, "--check").stdout
        self.assertIn("2 tensors are not used", text)
        self.assertIn("the embedding has 4 rows, the config says 5", text)
        self.assertIn("1 values in 1 tensors are NaN or infinite, first in model.layers.3.x", text)
        self.assertIn("no tokenizer", text)
        self.assertIn("it cannot be run: ", text)
        path = self.model({"model.norm.weight": ("BF16", [8], b"\0" * 16)}, logit_scale=0.5)
        self.assertIn("logit_scale", inspect(path).stdout)

    def test_mlx_quantised(self):
        path = self.model({"model.embed_tokens.weight": ("U32", [5, 8], b"\0" * 160),
                           "model.embed_tokens.scales": ("F16", [5, 1], b"\0" * 10),
                           "model.embed_tokens.biases": ("F16", [5, 1], b"\0" * 10)},
                          quantization={"bits": 4, "group_size": 64}, hidden_size=64)
        said = json.loads(inspect(path, "--json").stdout)
        self.assertEqual(said["format"], "MLX-quantised folder")
        self.assertEqual(said["parameters"], 5 * 64)

    def test_refusals(self):
        for line in (SOURCE / "tests/broken/model/expected.txt").read_text().splitlines():
            name, phrase = line.split("\t")
            run = inspect(SOURCE / "tests/broken/model" / name)
            self.assertEqual(run.returncode, 2, name)
            self.assertIn(phrase, run.stderr.splitlines()[0])
        run = inspect("hf:org/name", "--json")
        self.assertEqual(run.returncode, 2)
        self.assertIn("not in the cache", json.loads(run.stdout)["error"])


unittest.main()
