#!/usr/bin/env python3
"""Holds what grammars let pass against PyPI's jsonschema and Python's re.

  tools/check_grammar.py --driver PROGRAM [--tokenizer PATH] [--count N]

For each schema of grammar_schemas.py: texts made by random choice among the
allowed tokens must be JSON that the schema holds for, and of a list of values
the grammar may take only those it holds for. Patterns are held against
re.fullmatch. Exit 77: jsonschema is not installed."""
import argparse
import datetime
import ipaddress
import json
import re
import subprocess
import sys
import urllib.parse

import grammar_schemas as cases
import peers

try:
    import jsonschema
except ImportError as error:
    peers.skip(error)

PATTERNS = ["a*b+c?", "(ab|a)(bc|c)?", "[^\"\\\\]{2,5}", r"\d{3}-\d{4}", r"[\w.]+@[a-z]+\.(com|org)",
            "(?:yes|no|maybe)( please)?", r"-?(0|[1-9][0-9]*)(\.[0-9]+)?", "[à-ü]+€?", "(a|b)*abb", "x{0,3}y{2,}z"]


# jsonschema checks these only with a package of their own, or less than a grammar holds.
CHECKER = jsonschema.Draft202012Validator.FORMAT_CHECKER
CHECKER.checks("date-time", ValueError)(lambda text: bool(datetime.datetime.fromisoformat(text)))
CHECKER.checks("time", ValueError)(lambda text: bool(datetime.time.fromisoformat(text)) or True)
CHECKER.checks("ipv6", ValueError)(lambda text: bool(ipaddress.IPv6Address(text)))
HOST = r"(?!.{254})(?:(?!-)[A-Za-z0-9-]{1,63}(?<!-)\.)*(?!-)(?![0-9]+$)[A-Za-z0-9-]{1,63}(?<!-)"
CHECKER.checks("hostname")(lambda text: bool(re.fullmatch(HOST, text)))
# RFC 3339, appendix A, with one way to write each part.
DURATION = (r"P(?=.)(?:\d+W|(?:\d+Y(?:\d+M(?:\d+D)?)?|\d+M(?:\d+D)?|\d+D)?"
            r"(?:T(?=.)(?:\d+H(?:\d+M(?:\d+S)?)?|\d+M(?:\d+S)?|\d+S))?)")
CHECKER.checks("duration")(lambda text: bool(re.fullmatch(DURATION, text)))


def is_uri(text):
    """By RFC 3986's characters and Python's own reading of hosts and ports."""
    parts = urllib.parse.urlsplit(text)
    if parts.netloc:
        parts.port  # raises ValueError where it is none
        if parts.netloc.endswith("]"):
            ipaddress.IPv6Address(parts.hostname)
    return bool(parts.scheme) and bool(re.fullmatch(r"(?:[A-Za-z0-9._~!$&'()*+,;=:@/?#\[\]-]|%[0-9A-Fa-f]{2})+", text))


CHECKER.checks("uri", ValueError)(is_uri)


class Driver:
    def __init__(self, program, tokenizer):
        words = [program] + ([tokenizer] if tokenizer else [])
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8")

    def ask(self, **request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


def compact(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def check_schema(driver, schema, number, count, bad):
    validator = jsonschema.Draft202012Validator(schema, format_checker=CHECKER)
    texts = [compact(value) for value in cases.VALUES]
    answer = driver.ask(kind="schema", source=schema, seed=number, count=count, tokens=120, texts=texts)
    if "error" in answer:
        bad.append(f"{compact(schema)}: {answer['error']}")
        return 0, 0
    finished = 0
    for made in answer["made"]:
        if not made["ended"]:
            continue
        finished += 1
        try:
            reason = next((e.message for e in validator.iter_errors(json.loads(made["text"]))), None)
        except ValueError as error:
            reason = f"not JSON: {error}"
        if reason:
            bad.append(f"{compact(schema)} made {made['text']!r}: {reason}")
    if finished == 0 and count >= 20:
        bad.append(f"{compact(schema)}: no text was finished")
    taken = 0
    for value, accepted in zip(cases.VALUES, answer["accepts"]):
        taken += accepted
        if accepted and not validator.is_valid(value):
            bad.append(f"{compact(schema)} takes {compact(value)}, which is not valid")
    return finished, taken


def check_pattern(driver, pattern, number, count, bad):
    answer = driver.ask(kind="regex", source=pattern, seed=number, count=count, tokens=30)
    made = [one["text"] for one in answer.get("made", []) if one["ended"]]
    if not made and count >= 20:
        bad.append(f"{pattern}: {answer.get('error', 'no text was finished')}")
    bad += [f"{pattern} made {text!r}" for text in made if not re.fullmatch(pattern, text)]
    # What was made, with one character more, less or other.
    changed = [text[:-1] for text in made] + [text + "a" for text in made] + ["b" + text[1:] for text in made]
    answer = driver.ask(kind="regex", source=pattern, texts=changed)
    bad += [f"{pattern} on {text!r}: {accepted}" for text, accepted in zip(changed, answer["accepts"])
            if accepted != bool(re.fullmatch(pattern, text))]
    return len(made) + len(changed)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--driver", required=True)
    parser.add_argument("--tokenizer")
    parser.add_argument("--count", type=int, default=50)
    arguments = parser.parse_args()
    driver, bad, finished, taken, matched = Driver(arguments.driver, arguments.tokenizer), [], 0, 0, 0
    for number, schema in enumerate(cases.ACCEPTED):
        made, accepted = check_schema(driver, schema, number, arguments.count, bad)
        finished += made
        taken += accepted
    for schema, word in cases.REFUSED:
        answer = driver.ask(kind="schema", source=schema)
        if word not in answer.get("error", ""):
            bad.append(f"{compact(schema)} must be refused with {word}: {answer}")
    for number, pattern in enumerate(PATTERNS):
        matched += check_pattern(driver, pattern, number, arguments.count, bad)
    for line in bad[:40]:
        print(line)
    print(f"{len(cases.ACCEPTED)} schemas: {finished} finished texts, {taken} values taken, "
          f"{len(cases.REFUSED)} refused; {len(PATTERNS)} patterns, {matched} texts; {len(bad)} wrong")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
