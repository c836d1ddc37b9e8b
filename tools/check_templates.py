#!/usr/bin/env python3
"""Compares Hearth's chat templates with transformers' apply_chat_template.

Two sets: the language cases of tests/golden/jinja_cases.jsonl, and every
template found next door (../shared) over the matrix of template_matrix.py.
--write-golden answers both with the oracle into tests/golden, so that a machine
without the packages still checks bytes. Exit 77: packages are not installed.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys

import peers
import template_matrix as matrix

ROOT = pathlib.Path(__file__).resolve().parent.parent
GOLDEN = ROOT / "tests" / "golden"
SMALL_TOOLS = ("none", "many")
ANY_ERROR = "any error"
SHARED = pathlib.Path(os.environ.get("HEARTH_SHARED_DIR", ROOT.parent / "shared")) / "data"


def load_oracle():
    try:
        import datetime
        import logging

        logging.disable(logging.CRITICAL)
        import jinja2  # noqa: F401
        from transformers.utils import chat_template_utils as utils
    except ImportError as error:
        peers.skip(error)

    class Fixed(datetime.datetime):
        @classmethod
        def now(cls, tz=None):
            return cls(2026, 3, 7, 14, 5, 9)

    utils.datetime = Fixed
    return utils


def answer(function):
    try:
        return {"text": function()}
    except RecursionError:
        return {"error": "recursion"}
    except Exception as error:  # noqa: BLE001 - whatever the template raises
        return {"error": str(error), "type": type(error).__name__}


def find_templates(extra):
    """name -> (source, special tokens)."""
    found = {}
    tokens = {"bos_token": "<s>", "eos_token": "</s>"}
    for path in sorted((SHARED / "fixtures" / "templates").glob("*.jinja")):
        found[path.stem] = (path.read_text(encoding="utf-8"), tokens)
    for folder in sorted((SHARED / "tokenizers").glob("*")):
        config = json.loads((folder / "tokenizer_config.json").read_text())
        special = {k: v for k, v in config.items() if k.endswith("_token") and isinstance(v, str)}
        source = config.get("chat_template")
        if (folder / "chat_template.jinja").exists():
            source = (folder / "chat_template.jinja").read_text(encoding="utf-8")
        if source:
            found["tokenizer " + folder.name] = (source, special)
    for path in extra:
        found[pathlib.Path(path).name] = (pathlib.Path(path).read_text(encoding="utf-8"), tokens)
    found["generation"] = (matrix.GENERATION, tokens)
    return found


def built_in():
    source = ROOT / "src" / "hearth" / "text" / "chat" / "builtin_template.cpp"
    return source.read_text(encoding="utf-8").split('R"~~(')[1].split(')~~"')[0]


def chat_requests(templates, small):
    for name, (source, tokens) in templates.items():
        for chat, messages in matrix.CONVERSATIONS.items():
            for tool_name, tools in matrix.TOOLS.items():
                for option, variables in matrix.VARIABLES.items():
                    for mode in ("plain", "prompt", "continue"):
                        if small and (option != "plain" or tool_name not in SMALL_TOOLS or mode == "continue"):
                            continue
                        documents = matrix.DOCUMENTS if option == "documents" else None
                        yield {"name": name, "chat": chat, "tools_name": tool_name, "option": option, "source": source,
                               "tokens": tokens, "messages": messages, "tools": tools, "documents": documents,
                               "variables": variables, "generation_prompt": mode == "prompt",
                               "continue_final": mode == "continue"}


def chat_answer(utils, request):
    def render():
        chats, _ = utils.render_jinja_template(
            [json.loads(json.dumps(request["messages"]))], tools=request["tools"], documents=request["documents"],
            chat_template=request["source"], add_generation_prompt=request["generation_prompt"],
            continue_final_message=request["continue_final"],
            **{**request["tokens"], **request["variables"]})
        return chats[0]
    result = answer(render)
    # The package refuses in its own words, or trips over content it cannot add to.
    refused = request["continue_final"] and (
        "continue_final_message" in result.get("error", "") or isinstance(request["messages"][-1].get("content"), dict))
    return {"error": ANY_ERROR} if refused else result


def bare_answer(utils, request):
    return answer(lambda: utils._compile_jinja_template(request["source"]).render(**request["variables"]))


def drive(driver, requests):
    lines = "".join(json.dumps(r) + "\n" for r in requests)
    done = subprocess.run([driver], input=lines.encode(), capture_output=True, check=True)
    return [json.loads(line) for line in done.stdout.decode().split("\n") if line]


def agrees(want, got):
    if "text" in want:
        return got.get("text") == want["text"]
    # Both must fail, with the same message where it is not about addresses.
    return "error" in got and (got["error"] == want["error"] or want["error"] in ("recursion", ANY_ERROR))


def compare(title, requests, wanted, got, show):
    wrong = [(r, w, g) for r, w, g in zip(requests, wanted, got) if not agrees(w, g)]
    errors = sum("error" in w for w in wanted)
    print(f"{title}: {len(wanted) - len(wrong)} of {len(wanted)} agree ({errors} of them errors)")
    for request, want, have in wrong[:show]:
        label = {k: request[k] for k in ("name", "chat", "tools_name", "option", "generation_prompt", "continue_final") if k in request}
        print("  ", label or request["source"])
        print("     want", json.dumps(want, ensure_ascii=False)[-700:])
        print("     have", json.dumps(have, ensure_ascii=False)[-700:])
    return len(wrong)


def unicode_cases():
    """Every character below 0x20000 through the string methods, where Python
    has the Unicode version the tables were made from."""
    import unicodedata

    tables = ROOT / "src" / "hearth" / "text" / "template" / "text_tables.cpp"
    if f"Unicode {unicodedata.unidata_version}" not in tables.read_text(encoding="utf-8")[:200]:
        return []
    whole = "{{ s.upper() }}|{{ s.lower() }}|{{ s.casefold() }}|{{ s.swapcase() }}|{{ [s] }}|{{ s|tojson }}|{{ s.split() }}"
    each = ("{% for c in s %}{{ c.title() }}{{ c.capitalize() }}{% for t in (c.isalpha(), c.isdecimal(), c.isdigit(),"
            " c.isnumeric(), c.isspace(), c.isupper(), c.islower(), c.istitle(), c.isprintable()) %}{{ t|int }}{% endfor %}{% endfor %}")
    cases = []
    for start in range(0, 0x20000, 2048):
        text = "".join(chr(c) for c in range(start, start + 2048) if not 0xD800 <= c <= 0xDFFF)
        cases += [{"source": source, "variables": {"s": text}} for source in (whole, each) if text]
    return cases


def read_cases():
    """The first line holds the variables of all cases."""
    with open(GOLDEN / "jinja_cases.jsonl", encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    return [{"source": line["source"], **lines[0]} for line in lines[1:]]


def write_golden(utils, templates):
    cases = read_cases()
    with open(GOLDEN / "jinja_cases.jsonl", "w", encoding="utf-8") as file:
        file.write(json.dumps({"variables": cases[0]["variables"]}, ensure_ascii=False) + "\n")
        for case in cases:
            fresh = {"source": case["source"], **bare_answer(utils, case)}
            fresh.pop("type", None)
            file.write(json.dumps(fresh, ensure_ascii=False) + "\n")
    (GOLDEN / "chats.json").write_text(
        json.dumps({"conversations": matrix.CONVERSATIONS, "tools": matrix.TOOLS}, ensure_ascii=False) + "\n", encoding="utf-8")
    with open(GOLDEN / "chat_answers.jsonl", "w", encoding="utf-8") as file:
        for name in templates:
            requests = [r for r in chat_requests({name: templates[name]}, small=True)]
            answers = [digest(chat_answer(utils, r)) for r in requests]
            source = digest({"text": templates[name][0]})
            file.write(json.dumps({"template": name, "source": source, "tokens": templates[name][1], "answers": answers}) + "\n")


def digest(reply):
    """FNV-1a of the text, or of "error: " and the message."""
    value = 0xCBF29CE484222325
    for byte in reply.get("text", "error: " + reply.get("error", "")).encode():
        value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return f"{value:016x}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--driver", required=True)
    parser.add_argument("--write-golden", action="store_true")
    parser.add_argument("--show", type=int, default=10)
    parser.add_argument("templates", nargs="*", help="more .jinja files")
    options = parser.parse_args()
    utils = load_oracle()
    templates = find_templates(options.templates)
    if options.write_golden:
        write_golden(utils, templates)
    templates["chatml, built in"] = (built_in(), {"eos_token": "<|im_end|>"})
    cases = read_cases()
    wrong = compare("language", cases, [bare_answer(utils, c) for c in cases], drive(options.driver, cases), options.show)
    cases = unicode_cases()
    wrong += compare("unicode", cases, [bare_answer(utils, c) for c in cases], drive(options.driver, cases), options.show)
    requests = list(chat_requests(templates, small=False))
    wanted = [chat_answer(utils, r) for r in requests]
    wrong += compare(f"chats ({len(templates)} templates)", requests, wanted, drive(options.driver, requests), options.show)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
