"""hearth tokenizer template: exact bytes on stdout, spans with --json."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

HEARTH = os.environ["HEARTH_BINARY"]
TEMPLATE = """{{ bos_token }}{% for m in messages %}<{{ m.role }}>{{ m.content }}</>
{% endfor %}
{% if tools %}{{ tools|tojson }}{% endif %}
{% if add_generation_prompt %}<assistant>{% if think %}T{% endif %}{% endif %}"""
MESSAGES = [{"role": "user", "content": "é \"q\""}, {"role": "assistant", "content": "a"}]


class TokenizerTemplate(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        root = pathlib.Path(self.folder.name)
        (root / "chat_template.jinja").write_text(TEMPLATE)
        (root / "tokenizer_config.json").write_text(json.dumps({"bos_token": "<s>"}))
        (root / "m.json").write_text(json.dumps(MESSAGES))
        (root / "tools.json").write_text(json.dumps([{"name": "f"}]))
        (root / "raises.jinja").write_text("a\n{{ raise_exception('no ' ~ messages|length) }}")

    def run_template(self, *words, source=""):
        command = [HEARTH, "tokenizer", "template", "-t", os.path.join(self.folder.name, source),
                   "--messages", os.path.join(self.folder.name, "m.json"), *words]
        return subprocess.run(command, capture_output=True)

    def test_bytes(self):
        base = "<s><user>é \"q\"</>\n<assistant>a</>\n"
        self.assertEqual(self.run_template().stdout.decode(), base)
        run = self.run_template("--tools", os.path.join(self.folder.name, "tools.json"), "--generation-prompt",
                                "--set", "think=true")
        self.assertEqual(run.stdout.decode(), base + '[{"name": "f"}]<assistant>T')

    def test_json_has_the_spans(self):
        document = json.loads(self.run_template("--json").stdout)
        self.assertEqual(document["schema"], "hearth.tokenizer.template/1")
        text = document["text"].encode()
        self.assertEqual([text[t["begin"]:t["end"]] for t in document["turns"]], [b"a</>\n"])

    def test_errors_say_where(self):
        run = self.run_template(source="raises.jinja")
        self.assertEqual((run.returncode, run.stdout), (2, b""))
        self.assertIn(b"line 2, column 19: no 2", run.stderr)
        self.assertEqual(self.run_template("--set", "x").returncode, 2)


if __name__ == "__main__":
    unittest.main()
