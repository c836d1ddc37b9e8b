"""The file of a batch's answers: what is not ours stays, what changed is asked again, one run at a time, pipes."""
import fcntl
import json
import os
import pathlib
import shutil
import subprocess
import unittest

from test_generate import HEARTH, hearth
from test_generate_batch import BatchFolder


class Answers(BatchFolder):
    def setUp(self):
        super().setUp()
        self.write([{"id": i, "prompt": f"the {i}"} for i in range(3)])

    def command(self, *words, out=None):
        return ["generate", self.model, "--jsonl", self.prompts, "-o", out or self.answers, "--raw", "--max-tokens", "3", *words]

    def counts(self, *words):
        document = json.loads(self.batch("--max-tokens", "3", "--json", *words).stdout)
        return document["answered"], document["skipped"], document["failed"]

    def test_what_is_not_ours_is_never_touched(self):
        ours = {"id": 1, "text": "a", "of": ".".join(["0123456789abcdef"] * 3)}
        for content in ("My thesis", "two\nlines", "two\nlines\n", '{"id": 1, "prompt": "mine"}\n', '{"id": 1, "text": "a"}\n',
                        '{"id": 1, "te', json.dumps({**ours, "of": "x"}) + "\n", json.dumps({**ours, "id": None}) + "\n",
                        json.dumps({**ours, "text": 3}) + "\n", "[1]\n", "\0\0\0"):
            self.answers.write_text(content)
            run = self.refused(*self.command(), says=["answers.jsonl:", "this is no answer of hearth generate"])
            self.assertIn("--force", run.stderr)
            self.assertEqual(self.answers.read_text(), content)
        weights = self.model / "model.safetensors"
        before = weights.read_bytes()
        self.refused(*self.command(out=weights), says="this is no answer")
        self.assertEqual(weights.read_bytes(), before)
        self.assertEqual(self.counts("--force"), (3, 0, 0))
        # Ours, and something behind it.
        whole = self.answers.read_text()
        for tail in ("my notes", "my notes\n", '{"prompt": "x"'):
            self.answers.write_text(whole + tail)
            self.refused(*self.command(), says="answers.jsonl:4: this is no answer")
            self.assertEqual(self.answers.read_text(), whole + tail)

    def test_force_waits_until_the_model_is_there(self):
        self.answers.write_text("mine")
        shutil.move(self.model / "tokenizer.json", self.root)
        self.refused(*self.command("--force"), says="neither tokenizer.json")
        self.assertEqual(self.answers.read_text(), "mine")
        self.answers.unlink()
        self.refused(*self.command(), says="neither tokenizer.json")
        self.assertFalse(self.answers.exists())

    def test_prompts_are_not_written_over(self):
        text = self.prompts.read_text()
        linked, hard = self.root / "linked", self.root / "hard"
        linked.symlink_to(self.prompts)
        os.link(self.prompts, hard)
        for out in (self.prompts, linked, hard):
            for force in ([], ["--force"]):
                self.refused(*self.command(*force, out=out), says="over the prompts")
        words = ["generate", self.model, "--jsonl", "-", "-o", self.prompts, "--raw", "--force"]
        with open(self.prompts) as stdin:
            run = subprocess.run([HEARTH, *map(str, words)], stdin=stdin, capture_output=True)
        self.assertEqual(run.returncode, 2, run.stderr)
        self.assertEqual(self.prompts.read_text(), text)

    def test_an_edited_line_is_asked_again_and_the_others_stay(self):
        self.assertEqual(self.counts(), (3, 0, 0))
        before = self.read()
        self.write([{"prompt": f"the {i}", "id": i, "max_tokens": 2 + (i == 1)} for i in range(3)])
        # Line 1 asks for three tokens by itself now, the others for two.
        run = self.batch("--max-tokens", "3")
        self.assertIn("3 that say something else by now are asked again", run.stderr)
        self.assertEqual([self.read()[i]["made_tokens"] for i in range(3)], [2, 3, 2])
        self.write([{"id": i, "prompt": "the 0" if i == 0 else f"a {i}"} for i in range(2)])
        self.assertEqual(self.counts(), (2, 0, 0))
        got = self.read()
        self.assertEqual(got[0], before[0])
        self.assertEqual(got[2]["made_tokens"], 2)  # no longer asked, and kept
        self.write([{"prompt": "the 0", "id": 0}, {"id": 9, "prompt": "new"}])
        self.assertEqual(self.counts(), (1, 1, 0))

    def test_other_options_and_another_model_are_refused(self):
        self.batch("--max-tokens", "3")
        kept = self.answers.read_text()
        for other in (["--temp", "0.5"], ["--stop", "x"], ["--seed", "3"], ["--logprobs", "1"], ["--kv", "int8"],
                      ["--logit-bias", "5=1"], ["--regex", "a+"]):
            run = self.refused(*self.command(*other), says="answers.jsonl:1 was answered with other options")
            self.assertIn("--force", run.stderr)
        # What does not change an answer does not count, nor where the model lies.
        moved = self.root / "moved"
        shutil.move(self.model, moved)
        for same in ([], ["--batch", "2"], ["--threads", "1"], ["--ngram", "2"]):
            run = hearth("generate", moved, *self.command(*same)[2:], "--json")
            self.assertEqual(json.loads(run.stdout)["skipped"], 3)
        config = json.loads((moved / "config.json").read_text())
        (moved / "config.json").write_text(json.dumps({**config, "rms_norm_eps": 1e-3}))
        self.refused("generate", moved, *self.command()[2:], says="answers.jsonl:1 was answered by another model")
        self.assertEqual(self.answers.read_text(), kept)

    def test_a_failed_line_is_asked_again(self):
        self.write([{"id": "long", "prompt": "the cat " * 4000}, {"id": "short", "prompt": "the"}])
        run = self.batch("--max-tokens", "3", code=1)
        self.assertIn("the same command asks them again", run.stderr)
        self.write([{"id": "long", "prompt": "the cat"}, {"id": "short", "prompt": "the"}])
        self.assertEqual(self.counts(), (1, 1, 0))
        self.assertEqual([line["id"] for line in map(json.loads, self.answers.read_text().splitlines())], ["short", "long"])
        # Whatever options it failed with.
        self.write([{"id": "long", "prompt": "the cat " * 4000}])
        self.batch("--max-tokens", "3", "--force", code=1)
        self.batch("--max-tokens", "5", code=1)

    def test_a_last_line_without_its_end_counts_where_it_is_whole(self):
        self.batch("--max-tokens", "3")
        whole = self.answers.read_text()
        self.answers.write_text(whole.rstrip("\n"))
        self.assertEqual(self.counts(), (0, 3, 0))
        self.write([{"id": i, "prompt": f"the {i}"} for i in range(4)])
        self.assertEqual(self.counts(), (1, 3, 0))
        self.assertTrue(self.answers.read_text().startswith(whole))
        self.answers.write_text("")
        self.assertEqual(self.counts(), (4, 0, 0))

    def test_one_run_at_a_time(self):
        self.batch("--max-tokens", "3")
        kept = self.answers.read_text()
        with open(self.answers) as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            for force in ([], ["--force"]):
                self.refused(*self.command(*force), says="another process writes its answers to")
        self.assertEqual(self.answers.read_text(), kept)

    def test_pipes_and_devices(self):
        run = subprocess.run([HEARTH, *map(str, self.command(out="/dev/stdout"))], capture_output=True, timeout=120)
        self.assertEqual({json.loads(line)["id"] for line in run.stdout.splitlines()}, {0, 1, 2})
        pipe = self.root / "pipe"
        os.mkfifo(pipe)
        for force in ([], ["--force"]):
            run = subprocess.Popen([HEARTH, *map(str, self.command(*force, out=pipe))], stderr=subprocess.DEVNULL)
            self.assertEqual(len(pipe.read_text().splitlines()), 3)
            self.assertEqual(run.wait(120), 0)
            self.assertTrue(pipe.is_fifo())
        self.assertEqual(hearth(*self.command("--force", out="/dev/null")).returncode, 0)
        self.assertTrue(pathlib.Path("/dev/null").is_char_device())
        self.refused(*self.command(out=self.root), says="is a folder")
        # And in.
        read, write = os.pipe()
        os.write(write, self.prompts.read_bytes())
        os.close(write)
        words = ["generate", self.model, "--jsonl", f"/dev/fd/{read}", "--raw", "--max-tokens", "2"]
        run = subprocess.run([HEARTH, *map(str, words)], capture_output=True, pass_fds=[read], timeout=120)
        os.close(read)
        self.assertEqual(len(run.stdout.splitlines()), 3, run.stderr)
        empty = hearth("generate", self.model, "--jsonl", "/dev/null", "-o", self.answers, "--json")
        self.assertEqual(json.loads(empty.stdout)["answered"], 0)


if __name__ == "__main__":
    unittest.main()
