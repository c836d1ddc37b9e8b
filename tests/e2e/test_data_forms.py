"""Every form of record in the table of docs/data.md is prepared as the table says, real files are read as they come,
and what is not used is told before the first step."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

HEARTH = os.environ["HEARTH_BINARY"]
SOURCE = pathlib.Path(os.environ["HEARTH_SOURCE"])
REAL = SOURCE.parent / "shared" / "data"
ROW = re.compile(r"^\| ([^|]+) \| `(\{.*?\})`[^|]* \| (.*) \|$")
TOKENIZER = "data.tokenizer={train: {vocab: 300}}"


def examples():
    """(form, record, what it is read as) of each row of the table."""
    found = map(ROW.match, (SOURCE / "docs" / "data.md").read_text().splitlines())
    return [(m[1], json.loads(m[2]), m[3]) for m in found if m]


class Forms(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = pathlib.Path(tempfile.mkdtemp())
        cls.env = dict(os.environ, HEARTH_CACHE=str(cls.root / "cache"))

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.root)

    def hearth(self, *words, code=0):
        done = subprocess.run([HEARTH, *map(str, words)], capture_output=True, text=True, env=self.env, cwd=self.root)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def write(self, name, records):
        path = self.root / name
        path.write_text("".join(json.dumps(r) + "\n" for r in records))
        return path

    def prepare(self, path, *words):
        done = self.hearth("data", "prepare", TOKENIZER, "data.template=chatml", *words, "--data", path, "--json")
        return json.loads(done.stdout)["report"]

    def test_every_form_of_the_table(self):
        table = examples()
        self.assertGreater(len(table), 20)
        for form, record, meaning in table:
            with self.subTest(form):
                report = self.prepare(self.write("one.jsonl", [record]))
                self.assertEqual(report["records"], 1)
                self.assertEqual(report["documents"], 2 if "preference" in form else 1)
                self.assertGreater(report["trained_tokens"], 0)
                told = " ".join(report["forms"])
                for part in re.findall(r"[a-z_]+(?: \+ [a-z_]+)* → [a-z]+", meaning):
                    self.assertIn(part, told)

    def test_several_forms_train_one_model(self):
        records = [record for form, record, _ in examples() if "preference" not in form] * 4
        recipe = self.root / "r.yaml"
        recipe.write_text(
            "model: {arch: llama, dim: 32, layers: 1, heads: 2, ffn: 64}\n"
            f"data: {{train: {self.write('all.jsonl', records)}, template: chatml, length: 64,\n"
            "  tokenizer: {train: {vocab: 300}}}\n"
            "train: {tokens_per_step: 256, steps: 3, eval_every: 0}\n")
        done = self.hearth("train", recipe, "-o", self.root / "run", "--threads", 1)
        self.assertIn("Alpaca: instruction + input → prompt, output → completion (4 of", done.stderr)
        before = done.stderr.index("Alpaca:")
        self.assertLess(before, done.stderr.index("ShareGPT: conversations → messages"))
        self.assertEqual(len((self.root / "run" / "metrics.jsonl").read_text().splitlines()), 3)

    def test_what_is_not_used_is_told(self):
        report = self.prepare(self.write("ids.jsonl", [{"text": "a b", "id": "x", "input": "lost", "n": 3}] * 2))
        self.assertEqual(report["unused"], {"id": 2, "input": 2})
        path = self.write("asks.jsonl", [{"instruction_text": "Do it.", "chosen": "a", "rejected": "b"}])
        done = self.hearth("data", "prepare", TOKENIZER, "--data", path, code=2)
        self.assertIn('it is empty in all 1; they also have "instruction_text"', done.stderr)
        self.assertIn("data.fields={prompt: NAME}", done.stderr)
        path = self.write("other.jsonl", [{"ask": "q", "reply": "a"}])
        done = self.hearth("data", "prepare", TOKENIZER, "--data", path, code=2)
        self.assertIn('it has "ask", "reply": data.fields={prompt: ask, completion: reply}', done.stderr)

    def test_a_folder_is_cut_into_its_splits(self):
        folder = self.root / "set"
        folder.mkdir()
        (folder / "train.csv").write_text('question,answer\n"1+1,\nsaid she",2\n2+2,4\n')
        (folder / "valid.json").write_text('{"data": [{"question": "3+3", "answer": "6"}]}')
        (folder / "test.jsonl").write_text('{"question": "4+4", "answer": "8"}\n')
        (folder / "picture.png").write_bytes(b"\x89PNG")
        (folder / "README.md").write_text("about")
        words = ["data", "prepare", TOKENIZER, "data.template=chatml"]
        done = self.hearth(*words, "--data", folder, "--json")
        report = json.loads(done.stdout)["report"]
        self.assertEqual((report["records"], report["valid_documents"], report["bad_lines"]), (3, 1, 0))
        for part in ("test.jsonl is not read: a test set", "valid.json is held out", "README.md", "picture.png"):
            self.assertIn(part, done.stderr)
        done = self.hearth(*words, "data.valid=1%", "--data", folder, "--json")
        self.assertEqual(json.loads(done.stdout)["report"]["records"], 2)
        self.assertIn("valid.json is not read: data.valid says", done.stderr)

    def test_windows_and_binary_files(self):
        (self.root / "win.csv").write_bytes("prompt;completion\r\nOù?;Là\r\n".encode("utf-16"))
        report = self.prepare(self.root / "win.csv")
        self.assertEqual((report["records"], report["bad_lines"], report["replaced_characters"]), (1, 0, 0))
        (self.root / "image.txt").write_bytes(bytes(range(256)) * 9)
        done = self.hearth("data", "prepare", "-t", self.tokenizer(), "--data", self.root / "image.txt", code=2)
        self.assertIn("this is no text in UTF-8", done.stderr)
        (self.root / "a.jsonl.xz").write_bytes(b"\xfd7zXZ")
        done = self.hearth("data", "prepare", TOKENIZER, "--data", self.root / "a.jsonl.xz", code=2)
        self.assertIn("xz -dk", done.stderr)

    def test_parquet(self):
        golden = SOURCE / "tests" / "golden" / "parquet"
        report = self.prepare(golden / "snappy.parquet", "data.fields={text: must}")
        self.assertEqual((report["records"], report["bad_lines"]), (60, 0))
        self.assertIn("text", report["unused"])
        # Chats: a fourth is null, a fourth empty, a fourth has a message that is null.
        report = self.prepare(golden / "nested.parquet", "data.mask=all")
        self.assertEqual((report["records"], report["bad_lines"]), (15, 45))
        (self.root / "cut.parquet").write_bytes((golden / "snappy.parquet").read_bytes()[:900])
        done = self.hearth("data", "prepare", "-t", self.tokenizer(), "--data", self.root / "cut.parquet", code=2)
        self.assertIn("cut.parquet: it is no Parquet file", done.stderr)

    def tokenizer(self):
        path = self.root / "t.json"
        if not path.exists():
            (self.root / "some.txt").write_text("some words here\n")
            self.hearth("tokenizer", "train", self.root / "some.txt", "--vocab", 260, "--special", "<|end|>", "-o", path)
        return path

    def test_roles_by_other_names(self):
        path = self.write("play.jsonl", [{"messages": [{"role": "narrator", "content": "Night."}, {"from": "gpt", "value": "Who?"}]}])
        done = self.hearth("data", "prepare", "-t", self.tokenizer(), "data.template=chatml", "--data", path, code=2)
        cure = 'data.fields={roles: {"narrator": user}}'
        self.assertIn(cure, done.stderr)
        self.assertEqual(self.prepare(path, cure)["records"], 1)

    def test_tools_that_no_template_reads_are_told(self):
        (self.root / "plain.jinja").write_text("{% for m in messages %}<{{ m.role }}>{{ m.content }}<end>{% endfor %}")
        chat = next(record for form, record, _ in examples() if form.startswith("OpenAI's fine"))
        called = self.write("called.jsonl", [chat])
        done = self.hearth("data", "prepare", TOKENIZER, "data.template=plain.jinja", "--data", called, code=2)
        self.assertIn("writes no tool calls", done.stderr)
        offered = self.write("offered.jsonl", [{"messages": ["Hi", "Hello"], "tools": chat["tools"]}])
        done = self.hearth("data", "prepare", TOKENIZER, "data.template=plain.jinja", "--data", offered)
        self.assertIn("1 documents have tools, which the chat template does not read", done.stdout)

    @unittest.skipUnless(REAL.is_dir(), "no ../shared/data here")
    def test_real_files_are_read_as_they_come(self):
        for name, records, form in [
                ("sft/gsm8k-train.jsonl", 7473, "questions and answers"),
                ("sft/instruction-data.json", 1100, "Alpaca"),
                ("sft/instruction-data-with-preference.json", 1100, "Alpaca preferences"),
                ("tools/seal-tools-dev.json", None, "ShareGPT")]:
            with self.subTest(name):
                report = self.prepare(REAL / name)
                self.assertEqual(report["bad_lines"], 0)
                self.assertEqual(report["empty_prompts"], 0)
                self.assertIn(report["records"], (records, report["records"] if records is None else records))
                told, = report["forms"]
                self.assertTrue(told.startswith(form + ": "), told)


if __name__ == "__main__":
    unittest.main()
