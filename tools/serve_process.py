"""Starts `hearth serve` for a check and ends it: used by the check_*.py beside it and by tests."""
import json
import os
import pathlib
import resource
import signal
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Teaches tools as Hermes and Qwen do, so that any model can be asked for calls.
TOOL_TEMPLATE = """{%- if tools %}<|im_start|>system
You may call functions: {{ tools | tojson }}
For each call return <tool_call>{"name": ..., "arguments": ...}</tool_call>.<|im_end|>
{% endif %}{%- for m in messages %}<|im_start|>{{ m.role }}
{{ m.content }}{% for c in m.tool_calls or [] %}<tool_call>
{{ c.function | tojson }}
</tool_call>{% endfor %}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""


def binary():
    return os.environ.get("HEARTH_BINARY", str(ROOT / "build/release/hearth"))


def small_chat_model():
    """SmolLM2 where ./dev fetched it, or nothing."""
    found = sorted((ROOT / ".deps/models").glob("SmolLM2*.gguf"))
    return str(found[0]) if found else None


class Server:
    """with Server(MODEL, '--flag') as s: s.url, s.port, s.document"""

    def __init__(self, model, *flags, environment=None, limits=None):
        self.errors = tempfile.TemporaryFile()
        words = [binary(), "serve", str(model), "--port", "0", "--json", *map(str, flags)]

        def limit():
            for what, pair in (limits or {}).items():
                resource.setrlimit(what, pair)

        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=self.errors, env=environment,
                                        preexec_fn=limit if limits else None)
        line = self.process.stdout.readline()
        if not line.strip():
            self.process.wait()
            raise RuntimeError(f"hearth serve failed: {self.notes()}")
        text = line.decode()
        # The document may be indented: it ends with the line that closes it.
        while True:
            try:
                self.document = json.loads(text)
                break
            except json.JSONDecodeError:
                more = self.process.stdout.readline()
                if not more:
                    raise RuntimeError(f"hearth serve wrote no JSON: {text} {self.notes()}") from None
                text += more.decode()
        if "url" not in self.document:
            self.process.wait()
            raise RuntimeError(str(self.document))
        self.url, self.port = self.document["url"], self.document["port"]
        self.model = self.document["models"][0]

    def notes(self):
        self.errors.seek(0)
        return self.errors.read().decode()

    def stop(self, patience=60):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(patience)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
        self.process.stdout.close()
        self.errors.close()
