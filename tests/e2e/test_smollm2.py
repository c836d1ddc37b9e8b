"""SmolLM2-135M from its GGUF: an answer, and llama.cpp's perplexity within one percent."""
import json
import os
import pathlib
import subprocess
import sys
import unittest

HEARTH = os.environ["HEARTH_BINARY"]
SOURCE = pathlib.Path(os.environ["HEARTH_SOURCE"])
TEXT = SOURCE / "../shared/data/text/wikitext-2.valid.txt"
# llama-perplexity -c 512 --chunks 40 on that text and file.
LLAMACPP = 15.963


def find_model():
    given = os.environ.get("HEARTH_SMOLLM2")
    found = [pathlib.Path(given)] if given else sorted((SOURCE / ".deps/models").glob("SmolLM2-135M*.gguf"))
    return found[0] if found and found[0].exists() else None


MODEL = find_model()


def hearth(*words):
    run = subprocess.run([HEARTH, *map(str, words), "--json"], capture_output=True, text=True)
    if run.returncode != 0:
        raise AssertionError(run.stdout + run.stderr)
    return json.loads(run.stdout)


class SmolLM2(unittest.TestCase):
    def test_it_knows_the_capital_of_france(self):
        for words in ([], ["--kv", "int8"], ["--dense"]):
            document = hearth("generate", MODEL, "-p", "What is the capital of France?", *words)
            self.assertEqual(document["text"], "The capital of France is Paris.", words)
            self.assertEqual(document["finish"], "stop")

    def test_perplexity_is_llamacpps(self):
        if not TEXT.exists():
            self.skipTest(f"no {TEXT}")
        document = hearth("eval", "ppl", MODEL, "--text", TEXT, "--ctx", 512, "--windows", 40, "--method", "llamacpp")
        self.assertEqual(document["tokens"], 40 * 255)
        self.assertLess(abs(document["ppl"] / LLAMACPP - 1), 0.01, document)
        self.assertAlmostEqual(document["stderr"], 0.465, delta=0.01)


if __name__ == "__main__":
    if MODEL is None:
        print("SKIP: no SmolLM2-135M GGUF: set HEARTH_SMOLLM2, or run ./dev test --peers")
        sys.exit(77)
    unittest.main()
