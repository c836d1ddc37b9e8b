"""hearth generate --jsonl: answers as alone, resumed after any end, bad lines refused; grammars, guesses, penalties."""
import json
import os
import pathlib
import re
import signal
import subprocess
import time
import unittest

from test_generate import HEARTH, TEMPLATE, Folder, hearth, interrupt_when_asked


class BatchFolder(Folder):
    """A model with a place for prompts and answers."""

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


class Batch(BatchFolder):
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
        self.assertRegex(run.stderr, r"batch \d+ of 1, .*tokens/s, .*x batch 1; a step takes [\d.]+ ms, p95 [\d.]+x that, against")
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
        again = json.loads(self.batch("--max-tokens", "4", "--json").stdout)
        self.assertEqual((again["answered"], again["skipped"]), (0, 4))
        self.assertEqual(again["schema"], "hearth.generate.batch/1")
        fresh = json.loads(self.batch("--max-tokens", "4", "--json", "--force").stdout)
        self.assertEqual((fresh["answered"], fresh["skipped"]), (4, 0))

    def test_equal_prompts_draw_differently_and_a_seed_repeats_it(self):
        self.write([{"id": i, "prompt": "the"} for i in range(3)])
        draw = ["--max-tokens", "12", "--temp", "1.2", "--batch", "1"]
        self.batch(*draw)
        first = self.read()
        self.assertEqual(len({line["text"] for line in first.values()}), 3)
        alone = self.generate("-p", "the", "--raw", *draw[:4], "--seed", first[1]["seed"])
        self.assertEqual(alone["ids"], first[1]["ids"])
        self.batch(*draw, "--force")
        self.assertNotEqual({line["seed"] for line in self.read().values()}, {line["seed"] for line in first.values()})
        self.batch(*draw, "--force", "--seed", "4")
        fixed = self.read()
        # The seed is the line's by its id, wherever it stands.
        self.write([{"id": i, "prompt": "the"} for i in (2, 0, 1)])
        self.batch(*draw, "--force", "--seed", "4")
        self.assertEqual(self.read(), fixed)

    def test_keys_do_as_the_flags_do(self):
        free = self.generate("-p", "the", "--raw", "--max-tokens", "8")
        first = free["ids"][0]
        middle = re.search(r"[!-~]{2}", free["text"][1:]).group()
        cases = {
            "bias": ({"logit_bias": {str(first): "-inf", "65": 2.5}}, ["--logit-bias", f"{first}=-inf", "--logit-bias", "65=2.5"]),
            "stop": ({"stop": middle}, ["--stop", middle]),
            "stops": ({"stop": ["zzz", middle]}, ["--stop", "zzz", "--stop", middle]),
            "draw": ({"temperature": 1.3, "top_k": 9, "min_p": 0.05, "typical_p": 0.9, "top_p": 0.8, "seed": 5},
                     ["--temp", "1.3", "--top-k", "9", "--min-p", "0.05", "--typical-p", "0.9", "--top-p", "0.8", "--seed", "5"]),
            "again": ({"repetition_penalty": 1.5, "frequency_penalty": 0.4, "presence_penalty": 0.3},
                      ["--repeat-penalty", "1.5", "--frequency-penalty", "0.4", "--presence-penalty", "0.3"]),
            "probs": ({"logprobs": 2}, ["--logprobs", "2"])}
        self.write([{"id": name, "prompt": "the", **keys} for name, (keys, flags) in cases.items()])
        self.batch("--max-tokens", "8", "--batch", "1")
        got = self.read()
        for name, (keys, flags) in cases.items():
            alone = self.generate("-p", "the", "--raw", "--max-tokens", "8", *flags)
            self.assertEqual(got[name]["ids"], alone["ids"], name)
            self.assertEqual(got[name]["text"], alone["text"], name)
            self.assertEqual(got[name].get("logprobs"), alone.get("logprobs"), name)

    def test_a_first_line_that_cannot_run_does_not_end_the_others(self):
        self.write([{"id": "long", "prompt": "the cat " * 4000}, {"id": "none", "prompt": ""}] +
                   [{"id": i, "prompt": f"the {i}"} for i in range(8)])
        run = self.batch("--max-tokens", "2", "--json", code=1)
        document = json.loads(run.stdout)  # one, however it ended
        self.assertEqual((document["answered"], document["failed"]), (8, 2))
        self.assertIn("error: 2 requests failed", run.stderr)
        self.assertEqual(len([line for line in self.read().values() if "text" in line]), 8)

    def test_a_batch_larger_than_the_queue(self):
        self.write([{"id": i, "prompt": "a"} for i in range(700)])
        self.batch("--max-tokens", "1", "--batch", "300")
        self.assertEqual(len(self.read()), 700)

    def test_ctrl_c_while_batches_are_measured(self):
        self.config["max_position_embeddings"] = 1 << 14
        self.write_config()
        self.write([{"id": i, "prompt": "the cat " * 30} for i in range(64)])
        words = ["generate", self.model, "--jsonl", self.prompts, "-o", self.answers, "--raw", "--threads", "1"]
        run = subprocess.Popen([HEARTH, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        interrupt_when_asked(self, run)
        out, err = run.communicate(timeout=120)
        self.assertEqual(run.returncode, 130, err)
        if b"batch " not in err:  # it was still measuring
            self.assertFalse(self.answers.exists())

    def test_system_and_raw_with_messages(self):
        (self.model / "chat_template.jinja").write_text(TEMPLATE)
        own = [{"role": "system", "content": "own"}, {"role": "user", "content": "hi"}]
        self.write([{"id": "a", "messages": own[1:]}, {"id": "b", "messages": own}, {"id": "c", "prompt": "hi"},
                    {"id": "d", "messages": [{"role": "user", "content": [{"type": "text", "text": "h"}, {"type": "text", "text": "i"}]}]}])
        words = ["generate", self.model, "--jsonl", self.prompts, "-o", self.answers, "--max-tokens", "4", "--batch", "1"]
        run = hearth(*words, "--system", "be")
        self.assertEqual(run.returncode, 0, run.stderr)
        got = self.read()
        for name, prompt in (("a", "<system>be<user>hi<assistant>"), ("b", "<system>own<user>hi<assistant>"),
                             ("c", "<system>be<user>hi<assistant>"), ("d", "<system>be<user>hi<assistant>")):
            ids = hearth("tokenizer", "encode", "-t", self.model, "--no-special", stdin=prompt).stdout.split()
            alone = self.generate("--ids", ",".join(ids), "--max-tokens", "4")
            self.assertEqual(got[name]["ids"], alone["ids"])
        self.refused(*words, "--raw", "--force", says=["prompts.jsonl:1: --raw continues a text"])
        (self.model / "chat_template.jinja").unlink()
        self.refused(*words, "--force", says="has no chat template")

    def kill(self, how):
        self.write([{"id": i, "prompt": f"the {i}", "max_tokens": 120} for i in range(20)])
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
        self.assertTrue(got["long"]["error"].startswith("the prompt must leave room"), got["long"])
        self.assertIn("the model's context of", got["long"]["error"])
        self.assertEqual(got["short"]["made_tokens"], 3)
        self.assertIn("1 of 2 answered, 0 were before, 1 failed", run.stderr)
        run = hearth("generate", self.model, "--jsonl", self.prompts, "-o", self.answers, "--raw", "--max-tokens", "3",
                     "--json")
        self.assertEqual(run.returncode, 1)
        counts = json.JSONDecoder().raw_decode(run.stdout)[0]
        self.assertEqual([counts[k] for k in ("answered", "skipped", "failed")], [0, 1, 1])

    def test_messages_that_the_template_drops_fail(self):
        dropping = "{% for m in messages %}{% if m.role == 'user' %}{{ m.content }}{% endif %}{% endfor %}<assistant>"
        (self.model / "chat_template.jinja").write_text(dropping)
        said = [{"role": "user", "content": "the"}, {"role": "tool", "content": "42", "tool_call_id": "1"}]
        self.write([{"id": "tool", "messages": said}, {"id": "user", "messages": said[:1]}])
        run = hearth("generate", self.model, "--jsonl", self.prompts, "-o", self.answers, "--max-tokens", "3")
        self.assertEqual(run.returncode, 1, run.stderr)
        got = self.read()
        self.assertIn("messages[1], of the tool, is not read by the chat template", got["tool"]["error"])
        self.assertEqual(got["user"]["made_tokens"], 3)
        self.write([{"id": "user", "messages": said[:1]}])
        self.refused("generate", self.model, "--jsonl", self.prompts, "-o", self.answers, "--force", "--system", "be",
                     says="--system is not read by the chat template")
        self.refused("generate", self.model, "-p", "the", "--system", "be", says="--system is not read by the chat template")

    def test_bad_lines_are_refused_with_their_number(self):
        command = ["generate", self.model, "--jsonl", self.prompts, "-o", self.answers]
        for line, says in (
                ('{"prompt": 3}', "'prompt' must be a string"), ('{"id": 1}', "one of prompt and messages"),
                ('{"prompt": "a", "promt": "b"}', "did you mean 'prompt'"), ("[1]", "must be an object"),
                ('{"prompt": "a", "max_tokens": -1}', "'max_tokens' must be a whole number"),
                ('{"prompt": "a", "max_tokens": 0}', "'max_tokens' must be a whole number from 1"),
                ('{"prompt": "a", "temperature": -1}', "'temperature' must be 0 or more, got -1"),
                ('{"prompt": "a", "repetition_penalty": 0}', "'repetition_penalty' must be more than 0"),
                ('{"prompt": "a", "seed": -1}', "'seed' must be a whole number from 0"),
                ('{"prompt": "a", "seed": 1e30}', "'seed' must be a whole number from 0"),
                ('{"prompt": "a", "stop": ""}', "'stop' must be a text or a list of texts, none empty"),
                ('{"prompt": "a", "logit_bias": {"x": 1}}', "'logit_bias' must have token ids"),
                ('{"prompt": "a", "logit_bias": {"1": "inf"}}', "'logit_bias' must have numbers"),
                ('{"prompt": "a", "logit_bias": {"1": 2, "01": 3}}', "'logit_bias' must name each token once"),
                ('{"id": "x", "prompt": "a"}', 'an earlier line has the id "x" too'), ('{"id": {}, "prompt": "a"}', "id"),
                ('{"prompt": "a", "prompt": "b"}', '"prompt" is given twice'),
                ('{"prompt": "a"}\0{"prompt": "b"}', "NUL"),
                ('{"messages": []}', "at least one message"), ('{"messages": ["hi"]}', "messages[0] must be an object"),
                ('{"messages": [{"role": "user"}]}', "'messages[0].content' is missing"),
                ('{"messages": [{"role": 3, "content": "a"}]}', "'messages[0].role' must be a string"),
                ('{"messages": [{"role": "king", "content": "a"}]}', "must be system, developer, user"),
                ('{"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}', "must be text"),
                ('{"prompt": "a", "tools": {}}', "'tools' must be a list"),
                ("{", "prompts.jsonl:2:2: not JSON")):
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

    def test_guesses_are_counted(self):
        words = ["-p", "the cat sat on the mat", "--max-tokens", "40"]
        self.assertNotIn("guesses", self.generate(*words))
        for how in (["--ngram", "2"], ["--draft", self.model]):
            guesses = self.generate(*words, *how)["guesses"]
            self.assertGreaterEqual(guesses["drafted"], guesses["accepted"])
        # A model is right about itself.
        self.assertGreater(guesses["accepted"], 0)
        run = hearth("generate", self.model, *words, "--draft", self.model, "--verbose")
        self.assertRegex(run.stderr, r"guesses: \d+ made, \d+ right \(\d+ %\)")
        (self.root / "p.jsonl").write_text('{"prompt": "the cat sat on the mat"}\n')
        run = hearth("generate", self.model, "--jsonl", self.root / "p.jsonl", "-o", self.root / "a.jsonl", "--draft", self.model,
                     "--json")
        self.assertGreater(json.loads(run.stdout)["guesses"]["drafted"], 0)

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
        self.refused("generate", self.model, "-p", "a", "--typical-p", "0", says="--typical-p")

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


class Tools(Folder):
    """One token of the vocabulary is a whole call, and a bias makes it come."""

    CALL = '<tool_call>{"name": "add", "arguments": {"x": 1}}</tool_call>'
    TEMPLATE = "{% if tools %}{{ tools | tojson }}<tool_call>{% endif %}" + TEMPLATE
    LIST = [{"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}]

    def setUp(self):
        super().setUp()
        (self.model / "chat_template.jinja").write_text(self.TEMPLATE)
        run = hearth("tokenizer", "train", self.root / "text.txt", "--vocab", self.VOCAB, "--special", "<|end|>", "--special",
                     self.CALL, "-o", self.model / "tokenizer.json", "--quiet", "--force")
        self.assertEqual(run.returncode, 0, run.stderr)
        added = json.loads((self.model / "tokenizer.json").read_text())["added_tokens"]
        self.call = next(t["id"] for t in added if t["content"] == self.CALL)
        self.tools = self.root / "tools.json"
        self.tools.write_text(json.dumps(self.LIST))

    def test_calls_are_told_from_text(self):
        words = ["-p", "hi", "--max-tokens", "1", "--logit-bias", f"{self.call}=1000"]
        self.assertNotIn("tool_calls", self.generate(*words))
        made = self.generate(*words, "--tools", self.tools)
        self.assertEqual((made["finish"], made["text"]), ("tool_calls", ""))
        self.assertEqual(made["tool_calls"], [{"id": "call_0", "type": "function",
                                               "function": {"name": "add", "arguments": '{"x":1}'}}])
        prompt = json.dumps(self.LIST) + "<tool_call><user>hi<assistant>"
        ids = hearth("tokenizer", "encode", "-t", self.model, "--no-special", stdin=prompt).stdout.split()
        self.assertEqual(made["prompt_tokens"], len(ids))
        plain = hearth("generate", self.model, *words, "--tools", self.tools, "--quiet")
        self.assertEqual(json.loads(plain.stdout), made["tool_calls"][0])
        # The call and its result go back as messages.
        lines = [{"id": "own", "prompt": "hi", "tools": self.LIST}, {"id": "back", "messages": [
            {"role": "user", "content": "hi"}, {"role": "assistant", "tool_calls": made["tool_calls"]},
            {"role": "tool", "tool_call_id": "call_0", "content": "2"}]}]
        (self.root / "p.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        run = hearth("generate", self.model, "--jsonl", self.root / "p.jsonl", *words[2:])
        got = {line["id"]: line for line in map(json.loads, run.stdout.splitlines())}
        self.assertEqual(got["own"]["tool_calls"], made["tool_calls"])
        self.assertEqual(got["own"]["finish"], "tool_calls")
        self.assertEqual(got["back"]["finish"], "length")

    def test_what_cannot_be(self):
        words = ["generate", self.model, "-p", "a", "--tools", self.tools]
        self.refused(*words, "--raw", says="--tools needs a chat template")
        self.refused(*words, "--regex", "a", says="no room for a tool call")
        (self.model / "chat_template.jinja").write_text(TEMPLATE)
        self.refused(*words, says="knows no tools")
        self.tools.write_text('[{"type": "function"}]')
        self.refused(*words, says=["tools.json", "'tools[0].function' is missing"])
        self.tools.write_text("{}")
        self.refused(*words, says=["tools.json", "must be a list"])


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
