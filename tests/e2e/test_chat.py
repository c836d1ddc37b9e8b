"""hearth chat: turns, commands, a context that is too short, and Ctrl-C in a real terminal."""
import json
import os
import pathlib
import pty
import re
import select
import subprocess
import time
import unittest

from test_generate import HEARTH, TEMPLATE, Folder, hearth


class Terminal:
    """A chat behind a pseudo-terminal."""

    def __init__(self, *words):
        self.master, slave = pty.openpty()
        self.run = subprocess.Popen([HEARTH, *map(str, words)], stdin=slave, stdout=slave, stderr=slave,
                                    start_new_session=True, preexec_fn=self.take_terminal(slave))
        os.close(slave)
        self.seen = ""

    @staticmethod
    def take_terminal(slave):
        import fcntl
        import termios
        return lambda: fcntl.ioctl(slave, termios.TIOCSCTTY, 0)

    def type(self, text):
        os.write(self.master, text.encode())

    def until(self, text, seconds=60):
        limit = time.time() + seconds
        while text not in self.seen and time.time() < limit:
            if select.select([self.master], [], [], 0.1)[0]:
                try:
                    self.seen += os.read(self.master, 65536).decode(errors="replace")
                except OSError:
                    break
        assert text in self.seen, f"no {text!r} in {self.seen!r}"
        before, self.seen = self.seen.split(text, 1)
        return before

    def close(self):
        if self.run.poll() is None:
            self.run.kill()
        self.run.wait()
        os.close(self.master)


class Chat(Folder):
    def setUp(self):
        super().setUp()
        (self.model / "chat_template.jinja").write_text(TEMPLATE)

    def chat(self, lines, *words, code=0):
        run = hearth("chat", self.model, "--temp", "0", "--max-tokens", "6", *words, stdin="\n".join(lines) + "\n")
        self.assertEqual(run.returncode, code, run.stderr)
        return run

    def test_turns_are_in_the_prompt_of_the_next(self):
        document = json.loads(self.chat(["hi", "and you?"], "--system", "be", "--json").stdout)
        self.assertEqual(document["schema"], "hearth.chat/1")
        self.assertEqual([m["role"] for m in document["messages"]], ["user", "assistant"] * 2)
        self.assertEqual(document["system"], "be")
        plain = self.chat(["hi", "and you?"], "--system", "be")
        answers = [m["content"] for m in document["messages"][1::2]]
        self.assertEqual(plain.stdout, "".join(a + "\n" for a in answers))
        # The second turn finds the first one's tokens.
        self.assertRegex(plain.stderr.splitlines()[-1], r"[1-9]\d* of \d+ prompt tokens were kept")
        alone = json.loads(self.chat(["and you?"], "--json").stdout)["messages"][1]["content"]
        self.assertNotEqual(alone, answers[1])

    def test_commands(self):
        kept = self.root / "talk.json"
        run = self.chat(["/help", "/system", "/system be kind", "hi", f"/save {kept}", "/clear", f"/load {kept}", "/quit",
                         "never asked"])
        self.assertIn("/save FILE", run.stderr)
        self.assertNotIn("/save", run.stdout)
        self.assertIn("there is no system message", run.stderr)
        self.assertIn("system: be kind", run.stderr)
        self.assertIn("2 messages are in", run.stderr)
        saved = json.loads(kept.read_text())
        self.assertEqual(saved["system"], "be kind")
        self.assertEqual(saved["messages"][0], {"role": "user", "content": "hi"})
        on = json.loads(self.chat(["more"], "--load", kept, "--json").stdout)
        self.assertEqual(on["messages"][:2], saved["messages"])
        self.assertEqual(len(on["messages"]), 4)
        once = json.loads(self.chat(["/system be kind", "hi", "more"], "--json").stdout)
        self.assertEqual(once["messages"], on["messages"])

    def test_a_system_message_that_the_template_drops_is_refused(self):
        dropping = "{% for m in messages %}{% if m.role != 'system' %}<{{ m.role }}>{{ m.content }}{% endif %}{% endfor %}"
        (self.model / "chat_template.jinja").write_text(dropping + "<assistant>")
        run = self.chat(["/system be brief", "/system", "hi"])
        self.assertIn("error: a system message is not read by the chat template", run.stderr)
        self.assertIn("there is no system message", run.stderr)
        self.assertNotEqual(run.stdout, "")
        self.assertIn("is not read by the chat template", self.chat(["hi"], "--system", "be brief", code=2).stderr)
        kept = self.root / "talk.json"
        kept.write_text('{"system": "be brief", "messages": []}')
        self.assertIn("is not read by the chat template", self.chat(["hi"], "--load", kept, code=2).stderr)

    def test_flags_are_named_before_the_talk(self):
        run = self.chat(["hi"], "--logit-bias", "999=1", code=2)
        self.assertIn("error: --logit-bias must name tokens from 0 to 299, got 999", run.stderr)

    def test_what_goes_wrong_is_a_line_and_the_talk_goes_on(self):
        (self.root / "other.txt").write_text("mine")
        (self.root / "bad.json").write_text('{"messages": [{"role": "assistant", "content": "x"}]}')
        run = self.chat(["/frobnicate", "/save", f"/save {self.root}/other.txt", f"/load {self.root}/none.json",
                         f"/load {self.root}/bad.json", "hi"])
        errors = [line for line in run.stderr.splitlines() if line.startswith("error: ")]
        for error, says in zip(errors, ("/frobnicate is no command", "/save needs a file", "is there already", "none.json",
                                        "in turn")):
            self.assertIn(says, error)
        self.assertEqual(len(errors), 5)
        self.assertEqual((self.root / "other.txt").read_text(), "mine")
        self.assertNotEqual(run.stdout, "")

    def test_a_place_that_cannot_be_written_costs_no_talk(self):
        loop = self.root / "loop"
        loop.symlink_to(loop)
        places = [f"{self.root}/{'x' * 300}", loop, f"{self.root}/none/x.json", "/proc/x.json", self.root, "-"]
        document = json.loads(self.chat(["hi", *(f"/save {place}" for place in places), "again"], "--json").stdout)
        self.assertEqual(len(document["messages"]), 4)
        run = self.chat(["hi", *(f"/save {place}" for place in places), "again"])
        self.assertEqual(run.stderr.count("error: "), len(places), run.stderr)
        self.assertTrue(loop.is_symlink())

    def test_an_engine_that_fails_costs_no_talk(self):
        # Every token is forbidden: no request can be answered.
        words = [word for i in range(self.VOCAB) for word in ("--logit-bias", f"{i}=-inf")]
        document = self.chat(["hi", "again"], *words, "--json")
        self.assertEqual(json.loads(document.stdout)["messages"], [])
        self.assertEqual(document.stderr.count("error: [infer.sampler] no token is allowed"), 2)

    def test_another_conversation_is_not_written_over(self):
        a, b = self.root / "a.json", self.root / "b.json"
        run = self.chat(["hi", f"/save {a}", "more", f"/save {a}", "/clear", "other", f"/save {a}", f"/save {b}", f"/load {a}",
                         f"/save {b}", f"/save {a}"])
        self.assertEqual(run.stderr.count("is there already"), 2, run.stderr)
        self.assertEqual(len(json.loads(a.read_text())["messages"]), 4)
        self.assertEqual(json.loads(b.read_text())["messages"][0]["content"], "other")
        # Nor what another program has put there meanwhile.
        terminal = Terminal("chat", self.model, "--temp", "0", "--max-tokens", "2", "--load", a)
        self.addCleanup(terminal.close)
        terminal.until("> ")
        a.write_text("mine")
        terminal.type(f"/save {a}\n")
        terminal.until("is there already")
        self.assertEqual(a.read_text(), "mine")

    def test_home_and_no_system(self):
        home = self.root / "home"
        home.mkdir()
        run = subprocess.run([HEARTH, "chat", str(self.model), "--temp", "0", "--max-tokens", "2", "--system", "be"],
                             input="hi\n/save ~/a.json\n/system -\n/system\n/load ~/a.json\n/system\n", text=True,
                             capture_output=True, env={**os.environ, "HOME": str(home)})
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(json.loads((home / "a.json").read_text())["system"], "be")
        self.assertEqual(run.stderr.count("there is no system message"), 2)
        self.assertEqual(run.stderr.count("system: be"), 1)

    def test_a_seed_is_drawn_and_said(self):
        words = ["hearth", "chat", self.model, "--max-tokens", "8", "--json"]
        seeds = [json.loads(hearth(*words[1:], stdin="hi\n").stdout) for _ in range(2)]
        self.assertNotEqual(seeds[0]["seed"], seeds[1]["seed"])
        again = json.loads(hearth(*words[1:], "--seed", seeds[0]["seed"], stdin="hi\n").stdout)
        self.assertEqual(again, seeds[0])
        run = hearth("chat", self.model, "--seed", "5", "--ngram", "2", "--verbose", "--max-tokens", "4", stdin="hi\n")
        self.assertIn("seed: 5", run.stderr)
        self.assertRegex(run.stderr, r"guesses: \d+ made")

    def test_a_long_talk_leaves_its_beginning_out(self):
        context = self.config["max_position_embeddings"]
        run = self.chat(["the cat sat"] * 40)
        left = re.findall(rf"longer than the context of {context} tokens: its first (\d+) messages are left out", run.stderr)
        self.assertTrue(left, run.stderr)
        # Several at once, so that most turns find all but their own text.
        self.assertLess(len(left), 20)
        kept = [(int(a), int(b)) for a, b in re.findall(r"(\d+) of (\d+) prompt tokens were kept", run.stderr)]
        self.assertEqual(len(kept), 40)
        self.assertGreater(len([1 for a, b in kept if a > b / 2]), 20, kept)
        run = self.chat(["the cat " * 2 * context, "hi"])
        self.assertIn("error: this message alone is", run.stderr)
        self.assertNotEqual(run.stdout, "")

    def test_lines_join_and_no_template_continues(self):
        document = json.loads(self.chat(["one \\", "two"], "--json").stdout)
        self.assertEqual(document["messages"][0]["content"], "one \ntwo")
        raw = self.chat(["the cat"], "--raw")
        self.assertIn("continued as it is", raw.stderr)
        alone = self.generate("-p", "the cat", "--raw", "--max-tokens", "6")
        self.assertEqual(raw.stdout, alone["text"] + "\n")

    def test_ctrl_c_stops_the_answer_and_not_the_program(self):
        self.config["max_position_embeddings"] = 1 << 16
        self.config["eos_token_id"] = None
        self.write_config()
        end = json.loads((self.model / "tokenizer.json").read_text())["added_tokens"][0]["id"]
        terminal = Terminal("chat", self.model, "--temp", "1", "--max-tokens", "60000", "--kv-budget", "64",
                            "--logit-bias", f"{end}=-inf")
        self.addCleanup(terminal.close)
        terminal.until("> ")
        terminal.type("\x03")  # nothing runs: only a word about how to leave
        terminal.until("Ctrl-D or /quit leaves")
        terminal.until("> ")
        terminal.type("tell me\n")
        terminal.until("\n")
        time.sleep(0.5)
        terminal.type("\x03")
        terminal.until("stopped after ")
        terminal.until("> ")
        self.assertIsNone(terminal.run.poll())
        terminal.type("/quit\n")
        self.assertEqual(terminal.run.wait(60), 0)


class Stories(unittest.TestCase):
    def test_the_known_text(self):
        root = pathlib.Path(os.environ["HEARTH_SOURCE"])
        model = root / "../shared/data/weights/stories260K-hf"
        if not model.exists():
            self.skipTest(f"no {model}")
        want = json.loads((root / "tests/golden/real_models.json").read_text())["models"]["stories260K-hf"]["greedy"]
        run = hearth("chat", model, "--temp", "0", "--max-tokens", len(want["ids"]), "--quiet", stdin="\n")
        self.assertEqual(run.stdout, want["text"] + "\n", run.stderr)


if __name__ == "__main__":
    unittest.main()
