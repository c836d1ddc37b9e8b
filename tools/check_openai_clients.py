#!/usr/bin/env python3
"""The `openai` client from PyPI, unchanged, against `hearth serve`; then the one from npm (check_openai_clients.mjs).

usage: check_openai_clients.py [MODEL]
MODEL chats; by default SmolLM2 where ./dev fetched it. Skips (77) what is not installed: PyPI's openai, node with
npm's openai (NODE_PATH or node_modules beside this project)."""
import asyncio
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import serve_process

ASK = [{"role": "user", "content": "What is the capital of France? Answer in one word."}]
TOOLS = [{"type": "function", "function": {
    "name": "get_weather", "description": "Weather of a city",
    "parameters": {"type": "object", "properties": {"city": {"type": "string", "maxLength": 20}},
                   "required": ["city"], "additionalProperties": False}}}]
SCHEMA = {"type": "object", "properties": {"city": {"type": "string", "maxLength": 12}, "people": {"type": "integer"}},
          "required": ["city", "people"], "additionalProperties": False}
done = []


def check(name, holds, detail=""):
    done.append(name)
    print(f"  {'ok' if holds else 'FAILED'}  {name} {detail if not holds else ''}")
    if not holds:
        sys.exit(1)


def check_chat(client, model):
    check("models.list", client.models.list().data[0].id == model)
    check("models.retrieve", client.models.retrieve(model).id == model)
    options = {"model": model, "messages": ASK, "temperature": 0, "max_tokens": 24}
    whole = client.chat.completions.create(**options)
    text = whole.choices[0].message.content
    check("chat", bool(text) and whole.usage.completion_tokens > 0, text)
    stream = client.chat.completions.create(**options, stream=True, stream_options={"include_usage": True})
    pieces, usage = [], None
    for event in stream:
        pieces += [c.delta.content or "" for c in event.choices]
        usage = event.usage or usage
    check("chat, streamed: the same text", "".join(pieces) == text, "".join(pieces))
    check("chat, streamed: usage", usage.completion_tokens == whole.usage.completion_tokens)
    probs = client.chat.completions.create(**options, logprobs=True, top_logprobs=3).choices[0].logprobs.content
    check("logprobs", len(probs[0].top_logprobs) == 3 and probs[0].logprob <= 0)
    drawn = {"model": model, "messages": ASK, "n": 2, "seed": 7, "max_tokens": 12, "temperature": 1.0}
    first, second = (client.chat.completions.create(**drawn) for _ in range(2))
    check("n", len(first.choices) == 2)
    check("seed", [c.message.content for c in first.choices] == [c.message.content for c in second.choices])
    cut = client.chat.completions.create(**options, stop=[text[2:4]])
    check("stop", cut.choices[0].message.content == text[:text.find(text[2:4])])


def check_text(client, model):
    answer = client.completions.create(model=model, prompt="Paris is", max_tokens=0, echo=True, logprobs=2)
    probs = answer.choices[0].logprobs
    check("completions: a prompt's log-probabilities",
          probs.token_logprobs[0] is None and all(p <= 0 for p in probs.token_logprobs[1:]))
    check("completions: the prompt back", answer.choices[0].text == "Paris is", answer.choices[0].text)
    many = client.completions.create(model=model, prompt=["a", "b"], max_tokens=2)
    check("completions: many prompts", [c.index for c in many.choices] == [0, 1])


def check_forms(client, model):
    answer = client.chat.completions.create(
        model=model, messages=ASK, max_tokens=200, temperature=0,
        response_format={"type": "json_schema", "json_schema": {"name": "city", "strict": True, "schema": SCHEMA}})
    value = json.loads(answer.choices[0].message.content)
    check("json_schema", set(value) == {"city", "people"} and isinstance(value["people"], int), value)
    call = client.chat.completions.create(model=model, messages=ASK, tools=TOOLS, tool_choice="required", max_tokens=200,
                                          temperature=0, parallel_tool_calls=False)
    made = call.choices[0].message.tool_calls
    check("tools: required", call.choices[0].finish_reason == "tool_calls" and made[0].function.name == "get_weather")
    check("tools: arguments", isinstance(json.loads(made[0].function.arguments)["city"], str))
    said = [*ASK, call.choices[0].message, {"role": "tool", "tool_call_id": made[0].id, "content": "sunny"}]
    back = client.chat.completions.create(model=model, messages=said, tools=TOOLS, max_tokens=8)
    check("tools: the result goes back", back.usage.prompt_tokens > 0)
    name, arguments = "", ""
    for event in client.chat.completions.create(model=model, messages=ASK, tools=TOOLS, tool_choice="required",
                                                max_tokens=200, temperature=0, stream=True):
        for choice in event.choices:
            for piece in choice.delta.tool_calls or []:
                name = piece.function.name or name
                arguments += piece.function.arguments or ""
    check("tools: streamed", name == "get_weather" and "city" in json.loads(arguments.split("}{")[0]), arguments)


def check_errors(openai, client, model, url):
    def raises(kind, **options):
        try:
            client.chat.completions.create(**{"model": model, "messages": ASK, "max_tokens": 1, **options})
        except kind as error:
            return error
        return None
    check("unknown model", raises(openai.NotFoundError, model="other") is not None)
    error = raises(openai.BadRequestError, extra_body={"temprature": 1})
    check("unknown option is named", error is not None and error.param == "temprature", error)
    other = openai.OpenAI(base_url=url + "/v1", api_key="wrong-key-wrong-key", max_retries=0)
    try:
        other.models.list()
        check("wrong key", False)
    except openai.AuthenticationError:
        check("wrong key", True)


async def check_async(openai, url, key, model):
    async with openai.AsyncOpenAI(base_url=url + "/v1", api_key=key) as client:
        async def one(i):
            stream = await client.chat.completions.create(model=model, messages=ASK, stream=True, max_tokens=8, seed=i)
            return "".join([e.choices[0].delta.content or "" async for e in stream])
        texts = await asyncio.gather(*(one(i) for i in range(8)))
        check("async client, eight at once", all(texts))


def check_npm(url, key, model):
    node = shutil.which("node")
    here = pathlib.Path(__file__).parent
    places = [os.environ.get("NODE_PATH", ""), str(here.parent / "node_modules")]
    folder = next((p for p in places if p and (pathlib.Path(p) / "openai").is_dir()), None)
    if not node or not folder:
        print("SKIP: node or npm's openai is not installed")
        return False
    run = subprocess.run([node, here / "check_openai_clients.mjs", url, model],
                         env={**os.environ, "HEARTH_KEY": key, "HEARTH_NODE_MODULES": folder})
    check("npm's client", run.returncode == 0)
    return True


def main():
    try:
        import openai
    except ImportError:
        print("SKIP: PyPI's openai is not installed")
        return 77
    model = sys.argv[1] if len(sys.argv) > 1 else serve_process.small_chat_model()
    if not model:
        print("SKIP: no model that chats: give one")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        key = "a-key-for-this-check-only"
        keys, template = pathlib.Path(folder) / "keys", pathlib.Path(folder) / "tools.jinja"
        keys.write_text(key + "\n")
        template.write_text(serve_process.TOOL_TEMPLATE)
        with serve_process.Server(model, "--api-key-file", keys, "--chat-template", template) as server:
            print(f"openai {openai.__version__} against {server.url}")
            client = openai.OpenAI(base_url=server.url + "/v1", api_key=key, max_retries=0, timeout=300)
            check_chat(client, server.model)
            check_text(client, server.model)
            check_forms(client, server.model)
            check_errors(openai, client, server.model, server.url)
            asyncio.run(check_async(openai, server.url, key, server.model))
            both = check_npm(server.url, key, server.model)
    print(f"{len(done)} checks hold" + ("" if both else ", npm's client skipped"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
