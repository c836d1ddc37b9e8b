"""Requests that mean harm: each would stop a server that did the work they ask for.

CASES: name, the line of the attack list it belongs to, kind and source of the grammar (for the driver, which needs no
model) or the body of the request, seconds within which an answer must come, and which answers are right. `body(model)`
gives the request's bytes for `path`. Sources are made when they are asked for: some have megabytes.

  tools/hostile_cases.py --driver build/release/tests/hearth_grammar_driver [--only WORD] [--limit SECONDS]
measures what each grammar takes by itself, and fails where one takes longer than it may or ends the program."""
import argparse
import dataclasses
import json
import subprocess
import sys
import time
from typing import Callable, Optional

CHAT = "/v1/chat/completions"
# A grammar is compiled or refused; what is honest must be compiled.
EITHER, TAKEN, REFUSED = (200, 400), (200,), (400,)


@dataclasses.dataclass
class Case:
    name: str
    line: int
    make: Callable  # the grammar's source, or the request without its model
    kind: str = "request"  # schema, regex, gbnf: of a grammar
    within: float = 2.0
    status: tuple = EITHER
    path: str = CHAT

    def request(self, model):
        request = {"model": model, "messages": [{"role": "user", "content": "the"}], "max_tokens": 4}
        made = self.make()
        if self.kind == "request":
            request.update(made)
        else:
            request["response_format"] = {
                "schema": lambda: {"type": "json_schema", "json_schema": {"name": "n", "schema": made}},
                "regex": lambda: {"type": "regex", "pattern": made},
                "gbnf": lambda: {"type": "gbnf", "grammar": made}}[self.kind]()
        return request

    def body(self, model):
        return json.dumps(self.request(model)).encode()


def names(count, size=6):
    return [f"k{i:0{size}d}" for i in range(count)]


def properties(count, **more):
    return {"type": "object", "properties": {name: {"type": "integer"} for name in names(count)}, **more}


def tool(parameters):
    return {"tools": [{"type": "function", "function": {"name": "f", "parameters": parameters}}],
            "tool_choice": {"type": "function", "function": {"name": "f"}}}


def wide_classes(count, between):
    return "root ::= " + between.join(f"[^{chr(0x4E00 + i % 20000)}]" for i in range(count))


def chain_of_defs(count):
    defs = {f"d{i}": {"$ref": f"#/$defs/d{i + 1}"} for i in range(count)}
    return {"$ref": "#/$defs/d0", "$defs": {**defs, f"d{count}": {"type": "integer"}}}


def two_recursions():
    one = {"properties": {"n": {"$ref": "#/$defs/a"}}}
    two = {"properties": {"n": {"$ref": "#/$defs/b"}}}
    return {"allOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}], "$defs": {"a": one, "b": two}}


def long_path():
    return {"properties": {"n" * 500_000: {"prefixItems": [{"type": "integer"}] * 20_000}}}


def nested(text, count, *quantifiers):
    for i in range(count):
        text = f"({text}){quantifiers[i % len(quantifiers)]}"
    return text


def members(count):
    return {"messages": [{"role": "user", "content": "the"}], "metadata": {name: "v" for name in names(count, 7)}}


CASES = [
    # 1: depth.
    Case("prefixItems of 20,000 true", 1, lambda: {"prefixItems": [True] * 20_000}, "schema"),
    Case("prefixItems of 19,000 integers", 1, lambda: {"prefixItems": [{"type": "integer"}] * 19_000}, "schema"),
    Case("prefixItems of 19,000 and as many demanded", 1, lambda: {
        "prefixItems": [{"type": "integer"}] * 19_000, "minItems": 19_000, "maxItems": 19_000}, "schema"),
    Case("chain of 20,000 alias rules", 1, lambda: "root ::= r0\n" + "".join(
        f"r{i} ::= r{i + 1}\n" for i in range(20_000)) + 'r20000 ::= "a"\n', "gbnf"),
    Case("chain of 20,000 rules with a letter each", 1, lambda: "root ::= r0\n" + "".join(
        f'r{i} ::= "a" r{i + 1} "b"\n' for i in range(20_000)) + 'r20000 ::= "a"\n', "gbnf"),
    Case("alias chain called 5,000 times", 1, lambda: "root ::= " + " | ".join(["r0"] * 5_000) + "\n" + "".join(
        f"r{i} ::= r{i + 1}\n" for i in range(20_000)) + 'r20000 ::= "a"\n', "gbnf"),
    Case("$ref chain of 15,000", 1, lambda: chain_of_defs(15_000), "schema"),
    Case("allOf of two recursive schemas", 1, two_recursions, "schema"),
    Case("anyOf in anyOf, 60 deep", 1, lambda: nested_anyof(60), "schema"),
    Case("groups 100 deep, each +", 1, lambda: nested("a", 99, "+"), "regex"),
    Case("groups 100 deep, each {4}", 1, lambda: nested("a", 99, "{4}"), "regex"),
    Case("groups 100 deep, * and ?", 1, lambda: nested("a", 99, "*", "?"), "regex"),
    Case("JSON 100,000 deep", 1, lambda: {"x": 0}, "request", status=REFUSED),
    # 2: work.
    Case("oneOf of 20,000 false", 2, lambda: {"oneOf": [False] * 20_000}, "schema"),
    Case("oneOf of 15,000 constants", 2, lambda: {"oneOf": [{"const": i} for i in range(15_000)]}, "schema"),
    Case("oneOf of 5,000 objects", 2, lambda: {"oneOf": [
        {"type": "object", "properties": {"t": {"const": str(i)}}, "required": ["t"]} for i in range(5_000)]}, "schema"),
    Case("oneOf of 5,000 objects without a mark", 2, lambda: {"oneOf": [properties(3) for i in range(5_000)]}, "schema"),
    Case("maxLength 5,000", 2, lambda: {"type": "string", "maxLength": 5_000}, "schema", 0.5, TAKEN),
    Case("maxLength 100,000", 2, lambda: {"type": "string", "maxLength": 100_000}, "schema", 0.5, TAKEN),
    Case("minLength 100,000", 2, lambda: {"type": "string", "minLength": 100_000}, "schema", 0.5, TAKEN),
    Case("200 texts of maxLength 100,000", 2, lambda: {"type": "object", "properties": {
        name: {"type": "string", "maxLength": 100_000 - i} for i, name in enumerate(names(200))}}, "schema", 1.0, TAKEN),
    Case("maxItems 100,000 of texts of 100,000", 2, lambda: {"type": "array", "maxItems": 100_000, "items": {
        "type": "string", "maxLength": 100_000}}, "schema", 0.5, TAKEN),
    Case("60,000 wide classes, one after the other", 2, lambda: wide_classes(60_000, " "), "gbnf"),
    Case("60,000 wide classes, one or the other", 2, lambda: wide_classes(60_000, " | "), "gbnf"),
    Case("one class of 100,000 characters", 2, lambda: "root ::= [" + "".join(
        chr(0x10000 + 3 * i) for i in range(100_000)) + "]+", "gbnf"),
    Case("2,700 classes of Unicode", 2, lambda: r"\p{L}" * 2_700, "regex"),
    Case("1,000 properties with additionalProperties", 2, lambda: properties(1_000, additionalProperties=True), "schema"),
    Case("10,000 properties with additionalProperties", 2, lambda: properties(10_000, additionalProperties=True), "schema"),
    Case("19,000 properties", 2, lambda: properties(19_000), "schema"),
    Case("19,000 properties, each required", 2, lambda: properties(19_000, required=names(19_000)), "schema"),
    Case("100,000 required names", 2, lambda: {"type": "object", "required": names(100_000)}, "schema"),
    Case("two enums of 8,000 in allOf", 2, lambda: {"allOf": [
        {"enum": names(8_000)}, {"enum": names(8_000)[::-1]}]}, "schema"),
    Case("two enums of 100,000 in allOf", 2, lambda: {"allOf": [
        {"enum": names(100_000)}, {"enum": names(100_000)[::-1]}]}, "schema"),
    Case("two lists of 50,000 properties in allOf", 2, lambda: {"allOf": [
        properties(9_000), properties(9_000, required=names(9_000))]}, "schema"),
    Case("allOf of 3,900 with a property each", 2, lambda: {"allOf": [
        {"properties": {name: {"type": "integer"}}} for name in names(3_900)]}, "schema"),
    Case("allOf of 20,000 true", 2, lambda: {"allOf": [True] * 20_000}, "schema"),
    Case("15,000 references into 15,000 definitions", 2, lambda: {
        "anyOf": [{"$ref": f"#/$defs/{name}"} for name in names(15_000)],
        "$defs": {name: {"const": name} for name in names(15_000)}}, "schema"),
    Case("enum of 100,000 names", 2, lambda: {"enum": names(100_000)}, "schema"),
    Case("enum of 8,000 names", 2, lambda: {"enum": names(8_000)}, "schema", 1.0, TAKEN),
    Case("a long name above 20,000 schemas", 2, long_path, "schema"),
    Case("100,000 alternatives that begin alike", 2, lambda: "root ::= " + " | ".join(
        f'"aaaa{i:06d}"' for i in range(60_000)), "gbnf"),
    Case("20,000 alternatives of rules that begin alike", 2, lambda: "root ::= " + " | ".join(
        f"r{i}" for i in range(20_000)) + "\n" + "".join(f'r{i} ::= "aaaa" [0-9]+ "{i}"\n' for i in range(20_000)), "gbnf"),
    Case("(a|aa){1,100000}", 2, lambda: "(a|aa){1,100000}", "regex"),
    Case("(a?){100000}", 2, lambda: "(a?){100000}", "regex"),
    Case("(a+){1,100000}", 2, lambda: "(a+){1,100000}", "regex"),
    Case("(a?b?c*){100000}", 2, lambda: "(a?b?c*){100000}", "regex"),
    Case("(.{1,1000}){1,1000}", 2, lambda: "(.{1,1000}){1,1000}", "regex"),
    Case("many names of 1 MB", 2, lambda: "root ::= " + "n" * 400_000 + "\n" + "n" * 400_000 + ' ::= ("a" "b"){5,900}', "gbnf"),
    Case("an unknown key of 8 MB", 2, lambda: {"k" * 8_000_000: 1}, status=REFUSED),
    Case("a message of the mark word, 2 MB", 2, lambda: {"messages": [
        {"role": "user", "content": "HEARTH_SAID" + "X" * 2_000_000}]}, within=5.0, status=REFUSED),
    Case("an object of 300,000 keys", 2, lambda: members(300_000), within=5.0),
    Case("20,000 messages", 2, lambda: {"messages": [{"role": "user", "content": "a"}] * 20_000}, within=5.0),
    Case("a tool's result and 20,000 messages", 2, lambda: {"messages": [
        {"role": "user", "content": "a"}, {"role": "tool", "tool_call_id": "c", "content": "b"},
        *[{"role": "user", "content": "a" * 130}] * 20_000]}, within=5.0),
    Case("a tool with 1,000 properties", 2, lambda: tool(properties(1_000, additionalProperties=True))),
]


def nested_anyof(depth):
    schema = {"type": "integer"}
    for _ in range(depth):
        schema = {"anyOf": [schema, {"type": "null"}]}
    return schema


def deep_json(model):
    return (b'{"model": ' + json.dumps(model).encode() + b', "messages": ' + b"[" * 100_000 + b"]" * 100_000 + b"}")


next(case for case in CASES if case.name.startswith("JSON")).body = deep_json


def ask(program, case, limit):
    """The seconds until the driver answered, and what it said."""
    request = {"kind": case.kind, "source": case.make(), "seed": 1, "walk": 40, "texts": [""]}
    began = time.monotonic()
    try:
        done = subprocess.run(program, input=json.dumps(request) + "\n", capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return limit, "no answer"
    took = time.monotonic() - began
    if done.returncode != 0 or not done.stdout:
        return took, f"ended with {done.returncode}"
    answer = json.loads(done.stdout)
    walk = answer.get("walk", {})
    # What reading the request and starting the program take is not the grammar's.
    if "ms" in answer:
        took = (answer["ms"] + walk.get("begin_ms", 0)) / 1000
    return took, (f"{answer.get('error', 'taken')} [{answer.get('units', 0)} units; a token at most "
                  f"{walk.get('max_ms', 0):.1f} ms, {walk.get('sum_ms', 0):.0f} ms in all {walk.get('error', '')}]")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--driver", required=True)
    parser.add_argument("--tokenizer", help="its tokens, and not every byte by itself")
    parser.add_argument("--only", default="")
    parser.add_argument("--limit", type=float, default=20)
    options = parser.parse_args()
    bad = 0
    for case in CASES:
        if case.kind == "request" or options.only not in case.name:
            continue
        took, said = ask([options.driver] + ([options.tokenizer] if options.tokenizer else []), case, options.limit)
        wrong = took > case.within or said.startswith("ended") or (case.status == TAKEN and not said.startswith("taken"))
        bad += wrong
        print(f"{took:7.2f} s  {'BAD ' if wrong else ''}{case.name}: {said[:150]}", flush=True)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
