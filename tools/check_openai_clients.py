#!/usr/bin/env python3
"""The `openai` client from PyPI, unchanged, against `hearth serve`: chats, completions, responses and embeddings; then
the one from npm (check_openai_clients.mjs).

usage: check_openai_clients.py [MODEL]
MODEL chats; by default SmolLM2 where ./dev fetched it. Skips (77) what is not installed: PyPI's openai, node with
npm's openai (NODE_PATH, or as ./dev test --peers=light fetches them)."""
import asyncio
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import peers
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


def check_embeddings(client, model):
    texts = ["The cat sits on the mat.", "A cat is sitting on a mat.", "Interest rates rose by a quarter point."]
    # By itself the client asks for base64 and decodes it.
    answer = client.embeddings.create(model=model, input=texts)
    vectors = [d.embedding for d in answer.data]
    plain = client.embeddings.create(model=model, input=texts[0], encoding_format="float").data[0].embedding
    product = lambda a, b: sum(x * y for x, y in zip(a, b))
    check("embeddings: as many as texts", [d.index for d in answer.data] == [0, 1, 2] and answer.usage.prompt_tokens > 0)
    check("embeddings: a length of one", all(abs(product(v, v) - 1) < 1e-4 for v in vectors))
    check("embeddings: base64 and float agree", len(plain) == len(vectors[0]) and product(plain, vectors[0]) > 0.999)
    check("embeddings: what means the same is nearer",
          product(vectors[0], vectors[1]) > max(product(vectors[0], vectors[2]), product(vectors[1], vectors[2])))
    few = client.embeddings.create(model=model, input=[[1, 2, 3], [4]], dimensions=16)
    check("embeddings: token ids, dimensions", [len(d.embedding) for d in few.data] == [16, 16])


def check_responses(client, model):
    options = {"model": model, "temperature": 0, "max_output_tokens": 24}
    chat = client.chat.completions.create(model=model, messages=ASK, temperature=0, max_tokens=24)
    whole = client.responses.create(input=ASK[0]["content"], **options)
    check("responses", whole.output_text == chat.choices[0].message.content, whole.output_text)
    check("responses: usage", whole.usage.input_tokens == chat.usage.prompt_tokens)
    with client.responses.stream(input=ASK, **options) as stream:
        pieces = [e.delta for e in stream if e.type == "response.output_text.delta"]
        last = stream.get_final_response()
    check("responses: the stream helper", "".join(pieces) == whole.output_text == last.output_text, pieces)
    cut = client.responses.create(model=model, input=ASK, max_output_tokens=1)
    check("responses: one that is cut", cut.status == "incomplete" and cut.incomplete_details.reason == "max_output_tokens")
    tool = {"type": "function", "strict": True, **TOOLS[0]["function"]}
    asked = {"model": model, "tools": [tool], "tool_choice": "required", "parallel_tool_calls": False, "temperature": 0}
    call = client.responses.create(input=ASK, **asked).output[0]
    check("responses: a call", call.type == "function_call" and isinstance(json.loads(call.arguments)["city"], str), call)
    with client.responses.stream(input=ASK, **asked) as stream:
        kinds = [e.type for e in stream]
        told = stream.get_final_response().output[0]
    check("responses: a call, streamed", json.loads(told.arguments) == json.loads(call.arguments)
          and kinds.count("response.function_call_arguments.delta") > 1, kinds)
    said = [*ASK, call, {"type": "function_call_output", "call_id": call.call_id, "output": "sunny"}]
    back = client.responses.create(model=model, input=said, tools=[tool], max_output_tokens=8)
    check("responses: the result goes back", back.usage.input_tokens > whole.usage.input_tokens)
    form = {"format": {"type": "json_schema", "name": "city", "strict": True, "schema": SCHEMA}}
    value = json.loads(client.responses.create(model=model, input=ASK, text=form, temperature=0).output_text)
    check("responses: json_schema", set(value) == {"city", "people"}, value)


def check_leniencies(client, model):
    """What clients send without being asked to, and agents without thinking."""
    raw = client.chat.completions.with_raw_response.create(
        model=model, messages=[{**ASK[0], "name": "bob"}], max_tokens=1_000_000, top_p=0, store=True, metadata={"a": "b"},
        reasoning_effort="low", user="u", service_tier="flex", stop=["."], verbosity="low", prompt_cache_key="k",
        tools=TOOLS, response_format={"type": "json_schema", "json_schema": {"name": "city", "schema": SCHEMA}})
    check("leniencies: options", raw.parse().choices[0].finish_reason and int(raw.headers["x-hearth-max-tokens"]) > 0)
    broken = {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": "{\"city\": "}}
    said = [*ASK, {"role": "assistant", "content": None, "annotations": [], "tool_calls": [broken]},
            {"role": "tool", "tool_call_id": "call_1", "content": "an error"}]
    answer = client.chat.completions.create(model=model, messages=said, tools=TOOLS, max_tokens=4)
    check("leniencies: broken arguments", answer.usage.completion_tokens > 0)


def check_without_tools(client, model):
    """A template that knows no tools."""
    call = client.chat.completions.create(model=model, messages=ASK, tools=TOOLS, tool_choice="required", max_tokens=200,
                                          temperature=0, parallel_tool_calls=False)
    made = call.choices[0].message
    check("no tools in the template: a call", made.tool_calls[0].function.name == "get_weather", made)
    said = [*ASK, made, {"role": "tool", "tool_call_id": made.tool_calls[0].id, "content": "sunny"}]
    back = client.chat.completions.create(model=model, messages=said, tools=TOOLS, max_tokens=8)
    check("no tools in the template: the result goes back", back.usage.prompt_tokens > call.usage.prompt_tokens)


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
    for ask in (lambda: client.embeddings.create(model=model, input="word " * 50_000),
                lambda: client.responses.create(model=model, input="word " * 50_000)):
        try:
            ask()
            check("too long", False)
        except openai.BadRequestError as error:
            check("too long", error.code == "context_length_exceeded", error)
    try:
        client.responses.create(model=model, input="x", previous_response_id="resp_1")
        check("an earlier response", False)
    except openai.BadRequestError as error:
        check("an earlier response", error.param == "previous_response_id", error)
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
    here = pathlib.Path(__file__).parent
    own = here.parent / ".deps/peers/bin/node"
    node = str(own) if own.exists() else shutil.which("node")
    places = [os.environ.get("NODE_PATH", ""), here.parent / ".deps/node_modules"]
    folder = next((p for p in places if p and (pathlib.Path(p) / "openai").is_dir()), None)
    if not node or not folder:
        peers.skip_without("node with npm's openai")
    run = subprocess.run([node, here / "check_openai_clients.mjs", url, model],
                         env={**os.environ, "HEARTH_KEY": key, "HEARTH_NODE_MODULES": folder})
    check("npm's client", run.returncode == 0)


def main():
    try:
        import openai
    except ImportError as error:
        peers.skip(error)
    model = sys.argv[1] if len(sys.argv) > 1 else serve_process.small_chat_model()
    if not model:
        peers.skip_without("model that chats (SmolLM2)")
    with serve_process.Server(model) as server:
        check_without_tools(openai.OpenAI(base_url=server.url + "/v1", api_key="none", timeout=300), server.model)
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
            check_responses(client, server.model)
            check_embeddings(client, server.model)
            check_leniencies(client, server.model)
            check_errors(openai, client, server.model, server.url)
            asyncio.run(check_async(openai, server.url, key, server.model))
            check_npm(server.url, key, server.model)
        print(f"{len(done)} checks hold")
    return 0


if __name__ == "__main__":
    sys.exit(main())
