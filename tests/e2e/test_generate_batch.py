"""hearth generate --jsonl: answers as alone, resumed after any end, bad lines refused; grammars, guesses, penalties."""
import json
import os
import pathlib
import re
import signal
import subprocess
import time
import unittest

from test_generate import HEARTH, Folder, hearth


class Batch(Folder):
    def setUp(self):
        super().setUp()
        self.prompts = self.root / "prompts.jsonl"
        self.answers = self.root / "answers.jsonl"

    def write(self, lines):
        self.prompts.write_text("".join(json.dumps(line) + "\n" for line in lines))

    def batch(self, *words, code=0):
        run = hearth("generate", self.model, "--jsonl", self.prompts, "-o", self.answers, "--raw", *words)
        self.assertEqual(run.returncode, code, run.stdout + run.stderr)
        return run

    def read(self):
        lines = [json.loads(line) for line in self.answers.read_text().splitlines()]
        self.assertEqual(len({line["id"] for line in lines}), len(lines))
        return {line["id"]: line for line in lines}

    def test_each_answer_is_the_one_it_gets_alone(self):
        lines = [{"id": f"q{i}", "prompt": "the cat " * (i + 1), "max_tokens": 4 + i} for i in range(5)]
        lines.append({"prompt": "the dog", "temperature": 0.9, "seed": 7})
        self.write(lines)
        # One at a time, since sums over a batch may round otherwise.
        self.batch("--max-tokens", "6", "--batch", "1")
        got = self.read()
        self.assertEqual(set(got), {"q0", "q1", "q2", "q3", "q4", 6})
        for i in range(5):
            alone = self.generate("-p", "the cat " * (i + 1), "--raw", "--max-tokens", 4 + i)
            self.assertEqual(got[f"q{i}"]["text"], alone["text"])
            self.assertEqual(got[f"q{i}"]["finish"], alone["finish"])
            self.assertEqual(got[f"q{i}"]["prompt_tokens"], alone["prompt_tokens"])
        alone = self.generate("-p", "the dog", "--raw", "--max-tokens", 6, "--temp", 0.9, "--seed", 7)
        self.assertEqual(got[6]["text"], alone["text"])

    def test_batch_invariant_text_does_not_depend_on_the_batch(self):
        self.write([{"id": i, "prompt": "the " + "sun " * i, "temperature": 0.8, "seed": i} for i in range(6)])
        self.batch("--max-tokens", "12", "--batch", "1", "--batch-invariant")
        alone = self.read()
        self.batch("--max-tokens", "12", "--batch", "4", "--batch-invariant", "--force")
        self.assertEqual(self.read(), alone)

    def test_a_measured_batch_is_printed(self):
        self.write([{"id": i, "prompt": f"the {i}"} for i in range(9)])
        run = self.batch("--max-tokens", "4")
        self.assertRegex(run.stderr, r"batch \d+ of 1, .*tokens/s, .*x batch 1; p95 [\d.]+ ms a token against")
        self.assertIn("9 of 9 answered", run.stderr)

    def test_what_is_answered_is_skipped_and_a_torn_line_is_done_again(self):
        self.write([{"id": i, "prompt": f"the {i}"} for i in range(4)])
        self.batch("--max-tokens", "4", "--batch", "2")
        whole = self.read()
        lines = self.answers.read_text().splitlines(keepends=True)
        self.answers.write_text("".join(lines[:2]) + lines[2][:9])
        kept = {json.loads(line)["id"] for line in lines[:2]}
        document = json.loads(self.batch("--max-tokens", "4", "--json").stdout)
        self.assertEqual((document["answered"], document["skipped"]), (2, 2))
        self.assertEqual(self.read(), whole)
        self.assertTrue(self.answers.read_text().startswith("".join(lines[:2])))
        self.assertEqual(len(kept), 2)
        again = json.loads(self.batch("--json").stdout)
        self.assertEqual((again["answered"], again["skipped"]), (0, 4))
        fresh = json.loads(self.batch("--max-tokens", "4", "--json", "--force").stdout)
        self.assertEqual((fresh["answered"], fresh["skipped"]), (4, 0))

    def kill(self, how):
        self.write([{"id": i, "prompt": f"the {i}", "max_tokens": 20} for i in range(20)])
        words = ["generate", self.model, "--jsonl", self.prompts, "-o", self.answers, "--raw", "--batch", "2"]
        run = subprocess.Popen([HEARTH, *map(str, words)], stderr=subprocess.DEVNULL)
        limit = time.time() + 60
        while time.time() < limit and run.poll() is None:
            if self.answers.exists() and self.answers.read_text().count("\n") >= 3:
                break
            time.sleep(0.005)
        run.send_signal(how)
        return run.wait()

    def test_kill_9_loses_nothing_that_was_answered(self):
        self.kill(signal.SIGKILL)
        before = [line for line in self.answers.read_text().splitlines(keepends=True) if line.endswith("\n")]
        self.assertGreaterEqual(len(before), 3)
        self.batch()
        self.assertEqual(set(self.read()), set(range(20)))
        self.assertTrue(self.answers.read_text().startswith("".join(before)))

    def test_ctrl_c_keeps_what_was_answered(self):
        code = self.kill(signal.SIGINT)
        self.assertIn(code, (0, 130))
        self.assertTrue(all(json.loads(line)["finish"] != "cancelled"
                            for line in self.answers.read_text().splitlines()))
        self.batch()
        self.assertEqual(set(self.read()), set(range(20)))

    def test_one_that_fails_is_a_line_and_the_others_go_on(self):
        self.write([{"id": "long", "prompt": "the cat " * 4000}, {"id": "short", "prompt": "the"}])
        run = self.batch("--max-tokens", "3", code=1)
        self.assertIn("1 requests failed", run.stderr)
        got = self.read()
        self.assertIn("the model's context of", got["long"]["error"])
        self.assertEqual(got["short"]["made_tokens"], 3)

    def test_bad_lines_are_refused_with_their_number(self):
        command = ["generate", self.model, "--jsonl", self.prompts, "-o", self.answers]
        for line, says in (
                ('{"prompt": 3}', "prompt must be a string"), ('{"id": 1}', "one of prompt and messages"),
                ('{"prompt": "a", "promt": "b"}', "there is no key 'promt'"), ("[1]", "must be an object"),
                ('{"prompt": "a", "max_tokens": -1}', "max_tokens must be a whole number"),
                ('{"id": "x", "prompt": "a"}', 'an earlier line has the id "x" too'), ('{"id": {}, "prompt": "a"}', "id"),
                ("{", "prompts.jsonl:2")):
            self.prompts.write_text('{"id": "x", "prompt": "fine"}\n' + line + "\n")
            self.refused(*command, says=[says, "prompts.jsonl:2"])
        self.write([{"prompt": "a"}])
        self.answers.write_text("a file of mine\n")
        self.refused(*command, says="answers.jsonl")
        self.assertEqual(self.answers.read_text(), "a file of mine\n")
        self.refused("generate", self.model, "-p", "a", "-o", self.answers, says="--jsonl")
        self.refused("generate", self.model, "--jsonl", self.root / "none.jsonl", says="none.jsonl")
        run = hearth("generate", self.model, "--jsonl", self.prompts, "--json")
        self.assertEqual(run.returncode, 2)
        self.assertIn("-o FILE", json.loads(run.stdout)["error"])


class Controls(Folder):
    def test_guesses_leave_the_text_as_it_is(self):
        for draw in ([], ["--temp", "0.8", "--seed", "3"]):
            words = ["-p", "the cat sat on the mat", "--max-tokens", "40", "--batch-invariant", *draw]
            want = self.generate(*words)["ids"]
            self.assertEqual(self.generate(*words, "--ngram", "2")["ids"], want)
            self.assertEqual(self.generate(*words, "--draft", self.model)["ids"], want)
        self.refused("generate", self.model, "-p", "a", "--ngram", "2", "--draft", self.model, says="--draft and --ngram")

    def test_a_pattern_holds(self):
        for draw in ([], ["--temp", "1.5", "--seed", "5"]):
            text = self.generate("-p", "the", "--regex", "[0-9]{3}-(cat|dog)", "--max-tokens", "40", *draw)
            self.assertRegex(text["text"], r"^[0-9]{3}-(cat|dog)$")
            self.assertEqual(text["finish"], "stop")
        (self.root / "g.gbnf").write_text('root ::= "yes" | "no"\n')
        self.assertIn(self.generate("-p", "the", "--grammar", self.root / "g.gbnf")["text"], ("yes", "no"))
        (self.root / "s.json").write_text('{"type": "object", "properties": {"a": {"type": "boolean"}}, '
                                          '"required": ["a"], "additionalProperties": false}')
        made = self.generate("-p", "the", "--schema", self.root / "s.json", "--max-tokens", "200", "--temp", "0.5")
        if made["finish"] == "stop":
            self.assertIsInstance(json.loads(made["text"])["a"], bool)
        self.refused("generate", self.model, "-p", "a", "--regex", "(", says="")
        self.refused("generate", self.model, "-p", "a", "--regex", "a", "--grammar", "b", says="one of --schema")

    def test_bias_and_penalties(self):
        words = ["-p", "the", "--max-tokens", "6"]
        free = self.generate(*words)["ids"]
        biased = self.generate(*words, "--logit-bias", f"{free[0]}=-inf")["ids"]
        self.assertNotIn(free[0], biased)
        self.assertEqual(self.generate(*words, "--logit-bias", "65=1000")["ids"], [65] * 6)
        once = self.generate(*words, "--frequency-penalty", "1000")["ids"]
        self.assertEqual(len(set(once)), 6)
        self.refused("generate", self.model, "-p", "a", "--logit-bias", "x=1", says="ID=VALUE")
        self.refused("generate", self.model, "-p", "a", "--typical-p", "0", says="typical_p")

    def test_the_kv_formula_is_printed(self):
        run = hearth("generate", self.model, "-p", "the", "--max-tokens", "4")
        found = re.search(r"2 x (\d+) layers x (\d+) kv heads x (\d+) head dim x (\d+) tokens x (\d) bytes", run.stderr)
        self.assertTrue(found, run.stderr)
        document = self.generate("-p", "the", "--max-tokens", "4")
        product = 2
        for number in found.groups():
            product *= int(number)
        self.assertEqual(document["kv_bytes"], product)
        self.assertEqual(int(found[4]), document["prompt_tokens"] + 3)


class Stories(unittest.TestCase):
    def test_the_known_text(self):
        root = pathlib.Path(os.environ["HEARTH_SOURCE"])
        model = root / "../shared/data/weights/stories260K-hf"
        if not model.exists():
            self.skipTest(f"no {model}")
        want = json.loads((root / "tests/golden/real_models.json").read_text())["models"]["stories260K-hf"]["greedy"]
        words = ["generate", model, "--raw", "-p", "", "--max-tokens", len(want["ids"])]
        for more in ([], ["--ngram", 3], ["--draft", model]):
            self.assertEqual(hearth(*words, *more, "--quiet").stdout, want["text"] + "\n", more)
        small = json.loads(hearth(*words, "--kv", "int8", "--json").stdout)
        self.assertEqual(small["ids"][:60], want["ids"][:60])


if __name__ == "__main__":
    unittest.main()
