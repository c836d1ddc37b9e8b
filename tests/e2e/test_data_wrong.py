"""What a user can get wrong over hearth tokenizer and hearth data: one clear line, the exit code of the contract,
and nothing written or lost."""
import gzip
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

HEARTH = os.environ["HEARTH_BINARY"]
FULL = "/dev/full"


class Wrong(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.root = pathlib.Path(tempfile.mkdtemp())
        cls.env = dict(os.environ, HEARTH_CACHE=str(cls.root / "cache"))
        files = {
            "a.txt": "hello hello world\n", "a.jsonl": '{"text": "hi"}\n', "empty.txt": "", "empty.jsonl": "",
            "cut.json": '{"model":', "other.json": '{"a": 1}', "list.json": "[3]", "loop.jinja": "{% for x in %}", "plain.jinja": "{{ messages }}",
            "good.json": '[{"role": "user", "content": "x"}]', "nobody.json": '[{"role": "user"}]',
            "bad.jsonl": '{"text": 3}\nnope\n', "broken.yaml": "data: {train: a", "typo.yaml": "data: {lenght: 3}",
            "array.json": '[{"text": "a"}\n {"text": "b"}]\n',
        }
        for name, text in files.items():
            (cls.root / name).write_text(text)
        (cls.root / "plain.jsonl.gz").write_text("no gzip at all")
        (cls.root / "cut.jsonl.gz").write_bytes(gzip.compress(b'{"text": "hi"}\n' * 99)[:30])
        (cls.root / "folder").mkdir()
        (cls.root / "mine").mkdir()
        (cls.root / "mine" / "keep.txt").write_text("precious")
        cls.hearth(cls, "tokenizer", "train", "a.txt", "--vocab", "260", "--special", "<|end|>", "-o", "t.json")

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.root)

    def hearth(self, *words, stdin=b"", stdout=subprocess.PIPE):
        return subprocess.run([HEARTH, *words], input=stdin, stdout=stdout, stderr=subprocess.PIPE, env=self.env,
                              cwd=self.root)

    def refused(self, text, line, code=2, stdin=b""):
        before = sorted(p for p in self.root.rglob("*") if "cache" not in p.parts)
        run = self.hearth(*line.split(), stdin=stdin)
        error = run.stderr.decode()
        self.assertEqual(run.returncode, code, f"{line}: {error}")
        self.assertIn(text, error, line)
        told = [l for l in error.splitlines() if l.startswith("error: ")]
        self.assertEqual(len(told), 1, error)
        self.assertNotIn("filesystem error", error)
        after = sorted(p for p in self.root.rglob("*") if "cache" not in p.parts)
        self.assertEqual([p for p in before if p not in after], [], line)
        self.assertEqual([p for p in after if p not in before and p.is_file()], [], line)

    def test_tokenizer(self):
        for text, line in [
            ("one of: tokenizer encode", "tokenizer"),
            ("--tokenizer is required", "tokenizer encode"),
            ("no tokenizer at 'nope'", "tokenizer encode -t nope"),
            ("neither tokenizer.json nor", "tokenizer encode -t folder"),
            ("cut.json:1", "tokenizer encode -t cut.json"),
            ('no "model"', "tokenizer encode -t other.json"),
            ("a.txt at byte", "tokenizer encode -t a.txt"),
            ("'--jsnol' is not known; did you mean '--jsonl'", "tokenizer encode -t t.json --jsnol"),
            ("'stray' is one too many", "tokenizer encode -t t.json stray"),
            ("--text: 1 required", "tokenizer inspect -t t.json --text"),
            ("no tokenizer at 'nope'", "tokenizer inspect -t nope"),
            ("at least one text file", "tokenizer train"),
            ("no data files at nope", "tokenizer train nope -o x.json"),
            ("no data files at folder", "tokenizer train folder -o x.json"),
            ("must hold text, got none", "tokenizer train empty.txt -o x.json"),
            ("at least 256", "tokenizer train a.txt --vocab 10 -o x.json"),
            ("--vocab must be a whole number, got 'abc'", "tokenizer train a.txt --vocab abc -o x.json"),
            ("missing closing parenthesis", "tokenizer train a.txt --vocab 300 --pattern ( -o x.json"),
            ("no folder 'no'", "tokenizer train a.txt --vocab 300 -o no/x.json"),
            ("--force overwrites", "tokenizer train a.txt --vocab 300 -o t.json"),
            ("must differ", "tokenizer train a.txt --vocab 300 --special a --special a -o x.json"),
            ('bad.jsonl:1: column 10: "text" must be', "tokenizer train bad.jsonl --vocab 300 -o x.json"),
        ]:
            self.refused(text, line)

    def test_tokenizer_stdin(self):
        self.refused("<stdin>:2: column 2: not JSON", "tokenizer encode -t t.json --jsonl", stdin=b'"a"\n{\n')
        self.refused("<stdin>:1: must be a JSON string", "tokenizer encode -t t.json --jsonl", stdin=b"3\n")
        self.refused("must be ids", "tokenizer decode -t t.json", stdin=b"1 -2")
        self.refused("too large", "tokenizer decode -t t.json", stdin=b"99999999999")
        self.refused("array of ids", "tokenizer decode -t t.json --jsonl", stdin=b'[1, "a"]\n')
        handle = os.open(self.root / "folder", os.O_RDONLY)
        run = subprocess.run([HEARTH, "tokenizer", "encode", "-t", "t.json"], cwd=self.root, stdin=handle,
                             capture_output=True, env=self.env)
        os.close(handle)
        self.assertIn(b"cannot read standard input: Is a directory", run.stderr)
        self.assertEqual(run.returncode, 1)

    def test_ids_of_nothing_are_noted(self):
        run = self.hearth("tokenizer", "decode", "-t", "t.json", stdin=b"1 99999")
        self.assertEqual(run.returncode, 0)
        self.assertIn(b"1 of 2 ids are not in the vocabulary", run.stderr)

    def test_invalid_utf8_is_replaced(self):
        run = self.hearth("tokenizer", "encode", "-t", "t.json", stdin=b"a\xff\xfe b")
        back = self.hearth("tokenizer", "decode", "-t", "t.json", stdin=run.stdout)
        self.assertEqual(back.stdout.decode(), "a\ufffd\ufffd b")

    def test_json_is_one_document(self):
        run = self.hearth("tokenizer", "encode", "-t", "t.json", "--jsonl", "--json", stdin=b'"a"\n"b"\n')
        self.assertEqual(len(json.loads(run.stdout)["ids"]), 2)
        run = self.hearth("data", "synth", "--n", "3", "--json")
        self.assertEqual(len(json.loads(run.stdout)["records"]), 3)
        self.assertEqual(json.loads(self.hearth("data", "synth", "--n", "0", "--json").stdout)["records"], [])
        run = self.hearth("tokenizer", "encode", "-t", "nope", "--json")
        self.assertEqual(json.loads(run.stdout)["schema"], "hearth.error/1")

    def test_template(self):
        for text, line in [
            ("--messages is required", "tokenizer template -t loop.jinja"),
            ("no file of messages at 'nope'", "tokenizer template -t plain.jinja --messages nope"),
            ("no tokenizer or template at", "tokenizer template -t nope --messages good.json"),
            ("cut.json:1", "tokenizer template -t plain.jinja --messages cut.json"),
            ("list of objects, got object", "tokenizer template -t plain.jinja --messages other.json"),
            ("list of objects, got number at 0", "tokenizer template -t plain.jinja --messages list.json"),
            ("template line 1, column 13", "tokenizer template -t loop.jinja --messages good.json"),
            ("key=value", "tokenizer template -t loop.jinja --messages good.json --set foo"),
            ("must have a chat template", "tokenizer template -t t.json --messages good.json"),
        ]:
            self.refused(text, line)

    def test_prepare(self):
        for text, line in [
            ("name a recipe, or data", "data prepare"),
            ("no recipe at 'nope.yaml'", "data prepare nope.yaml"),
            ("got a folder without manifest.json", "data prepare folder"),
            ("got a data file", "data prepare a.jsonl"),
            ("broken.yaml:1", "data prepare broken.yaml"),
            ("did you mean 'data.length'", "data prepare typo.yaml"),
            ("data.tokenizer must name", "data prepare --data a.jsonl -o c"),
            ("no tokenizer at 'nope'", "data prepare --data a.jsonl -t nope -o c"),
            ("no data files at nope", "data prepare --data nope -t t.json -o c"),
            ("no data files at *.csv", "data prepare --data *.csv -t t.json -o c"),
            ("usable record, got none", "data prepare --data empty.jsonl -t t.json -o c"),
            ("the first, bad.jsonl:1", "data prepare --data bad.jsonl -t t.json -o c"),
            ("bad.jsonl:1: column 10", "data prepare --data bad.jsonl -t t.json -o c --on-bad-line fatal"),
            ("array.json:2: a comma must stand between", "data prepare --data array.json -t t.json -o c"),
            ("must be one of skip, fatal", "data prepare --data a.jsonl -t t.json -o c --on-bad-line maybe"),
            ("the bytes are neither", "data prepare --data plain.jsonl.gz -t t.json -o c --on-bad-line fatal"),
            ("cut short", "data prepare --data cut.jsonl.gz -t t.json -o c --on-bad-line fatal"),
            ("weight must be above 0", "data prepare --data a.jsonl:0 -t t.json -o c"),
            ("all sources of a mix need a weight", "data prepare --data a.jsonl a.txt:2 -t t.json -o c"),
            ("data.length must be an integer", "data prepare --data a.jsonl -t t.json -o c data.length=abc"),
            ("data.limit must be at least 0", "data prepare --data a.jsonl -t t.json -o c data.limit=-3"),
            ("below 1, got '150%'", "data prepare --data a.jsonl -t t.json -o c data.valid=150%"),
            ("data.mask must be one of", "data prepare --data a.jsonl -t t.json -o c data.mask=most"),
            ("must be empty or a token cache", "data prepare --data a.jsonl -t t.json -o mine"),
        ]:
            self.refused(text, line)
        self.refused("cannot create a.txt", "data prepare --data a.jsonl -t t.json -o a.txt", code=1)
        self.assertEqual((self.root / "mine" / "keep.txt").read_text(), "precious")

    def test_another_cache_is_not_replaced(self):
        self.assertEqual(self.hearth("data", "prepare", "--data", "a.txt", "-t", "t.json", "-o", "c2").returncode, 0)
        self.refused("holds a cache of other data", "data prepare --data a.jsonl -t t.json -o c2")
        shard = next((self.root / "c2").glob("*.tok"))
        shard.write_bytes(shard.read_bytes()[:20])
        self.refused("at least 128 bytes", "data inspect c2")

    def test_inspect(self):
        for text, line in [
            ("name a recipe, or data", "data inspect"),
            ("no recipe at 'nope'", "data inspect nope"),
            ("got a folder without manifest.json", "data inspect folder"),
            ("must not be negative", "data inspect --data a.jsonl -t t.json --documents -1"),
        ]:
            self.refused(text, line)

    def test_synth(self):
        self.refused("one of stories, arith, tools", "data synth --kind poems")
        self.refused("--n must be a whole number, got '1e3'", "data synth --n 1e3")
        self.refused("--seed must be a whole number, got 'x'", "data synth --seed x")

    @unittest.skipUnless(os.path.exists(FULL), "no /dev/full here")
    def test_a_full_disk_is_told(self):
        for words in (["data", "synth", "--n", "5000"], ["data", "synth", "--n", "1"],
                      ["tokenizer", "inspect", "-t", "t.json"]):
            with open(FULL, "wb") as full:
                run = self.hearth(*words, stdout=full)
            self.assertEqual(run.returncode, 1, words)
            self.assertIn(b"No space left on device", run.stderr)


if __name__ == "__main__":
    unittest.main()
