"""Conversations, tools and options that tools/check_templates.py renders with
every template. Odd ones are in on purpose: they must fail with one message."""

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Weather of a place, today & tomorrow <now>.",
        "parameters": {
            "type": "object",
            "properties": {
                "place": {"type": "string", "description": "City, e.g. \"Zürich\""},
                "days": {"type": "integer", "description": "  How many days ", "minimum": 1, "maximum": 10},
                "units": {"type": "string", "enum": ["C", "F"], "description": "unit's sign", "default": None},
                "detail": {"type": ["string", "null"], "description": "é"},
            },
            "required": ["place"],
        },
        "return": {"type": "string", "description": "a sentence"},
    },
}
SUM = {
    "type": "function",
    "function": {
        "name": "sum",
        "description": "Adds numbers",
        "parameters": {
            "type": "object",
            "properties": {
                "values": {"type": "array", "items": {"type": "number"}, "description": "numbers"},
                "opts": {"type": "object", "additionalProperties": {"type": "boolean"}, "description": "d"},
                "exact": {"type": "boolean", "description": "b"},
            },
            "required": ["values"],
        },
    },
}
CLOCK = {"type": "function", "function": {"name": "clock", "description": "Now", "parameters": {"type": "object", "properties": {}}}}
BARE = {"name": "bare", "description": "No wrapper", "parameters": {"type": "object", "properties": {"x": {"type": "string", "description": "x"}}}}

TOOLS = {"none": None, "one": [WEATHER], "many": [WEATHER, SUM, CLOCK], "empty": [], "bare": [BARE]}


def user(text):
    return {"role": "user", "content": text}


def bot(text, **more):
    return {"role": "assistant", "content": text, **more}


def system(text):
    return {"role": "system", "content": text}


def call(name, arguments, identity="call00001"):
    return {"type": "function", "id": identity, "function": {"name": name, "arguments": arguments}}


def result(text, identity="call00001", name="get_weather"):
    return {"role": "tool", "name": name, "tool_call_id": identity, "content": text}


CONVERSATIONS = {
    "one": [user("Hello")],
    "system": [system("Be brief."), user("Hello")],
    "two": [user("Hi"), bot("Hello! How can I help?"), user("Tell me a joke.")],
    "ends with assistant": [user("Hi"), bot("Hello!")],
    "long": [system("  You are kind.\n"), user("a"), bot("b"), user(" c "), bot("\n d\n"), user("e"), bot("f")],
    "unicode": [system("Être concis 🎉"), user("你好，世界 👩‍👩‍👧‍👦 \u200b \u00a0x\u3000"), bot("مرحبا\u2028line"), user("ΑΣ ß ǆ")],
    "markup": [user("<b>&amp; \"q\" 'p' \\ {{ x }} {% y %}</b>"), bot("`code`\t\r\n<|im_end|>"), user("ok")],
    "empty content": [user(""), bot(""), user("  \n ")],
    "none content": [user("x"), bot(None), user("y")],
    "think": [user("2+2?"), bot("<think>\nadd\n</think>\n\n4"), user("3+3?"), bot("<think>add</think>6")],
    "think last open": [user("2+2?"), bot("<think>\nadd\n</think>\n\n4"), user("3+3?")],
    "reasoning": [user("2+2?"), bot("4", reasoning_content="  add them \n"), user("3+3?"), bot("6", reasoning_content="again")],
    "thinking alias": [user("2+2?"), bot("4", thinking="hmm")],
    "no_think": [system("Answer. /no_think"), user("Hi"), bot("\n\nYo"), user("Bye")],
    "think system": [system("/think hard  "), user("Hi")],
    "call": [user("Weather in Zürich?"), bot("", tool_calls=[call("get_weather", {"place": "Zürich", "days": 2})]),
             result("{\"c\": 21.5}"), bot("It is 21.5 °C.")],
    "call no content key": [user("Weather?"), {"role": "assistant", "tool_calls": [call("get_weather", {"place": "Rome"})]},
                            result("sunny"), bot("Sunny.")],
    "call none content": [user("Weather?"), bot(None, tool_calls=[call("get_weather", {"place": "Rome"})]), result("sunny"), bot("Sunny.")],
    "call with text": [user("Weather?"), bot("Let me look.", tool_calls=[call("get_weather", {"place": "O'Hare \"x\" <y>", "n": [1, 2.0, None, True, 1e20, 1e-7]})]),
                       result("rain"), user("Thanks"), bot("Welcome.")],
    "call string arguments": [user("Weather?"), bot("", tool_calls=[call("get_weather", "{\"place\": \"Rome\"}")]), result("sunny")],
    "two calls": [user("Both?"), bot("", tool_calls=[call("get_weather", {"place": "A"}, "aaaaaaaa1"), call("sum", {"values": [1, 2]}, "bbbbbbbb2")]),
                  result("sun", "aaaaaaaa1"), result("3", "bbbbbbbb2", "sum"), bot("Sun and 3."), user("ok")],
    "call bad id": [user("Weather?"), bot("", tool_calls=[call("get_weather", {}, "x")]), result("sunny", "x")],
    "call no id": [user("Weather?"), bot("", tool_calls=[{"function": {"name": "sum", "arguments": {}}}]), {"role": "tool", "content": "3"}],
    "flat call": [user("Weather?"), bot("", tool_calls=[{"name": "sum", "arguments": {"values": []}}]), {"role": "tool", "content": "3"}],
    "empty calls": [user("Hi"), bot("Yo", tool_calls=[]), user("Bye")],
    "null calls": [user("Hi"), bot("Yo", tool_calls=None), user("Bye")],
    "tool dict content": [user("x"), bot("", tool_calls=[call("sum", {"values": [1]})]), result({"content": {"a": [1, 2]}, "b": None})],
    "tool list content": [user("x"), bot("", tool_calls=[call("sum", {"values": [1]})]), result(["a", {"b": 1.5}])],
    "parts": [user([{"type": "text", "text": "look"}, {"type": "image"}]), bot([{"type": "text", "text": "seen"}])],
    "starts with assistant": [bot("I begin."), user("Why?")],
    "user twice": [user("a"), user("b")],
    "assistant twice": [user("a"), bot("b"), bot("c")],
    "system late": [user("a"), system("now be brief"), user("b")],
    "system only": [system("alone")],
    "system twice": [system("a"), system("b"), user("c")],
    "unknown role": [user("a"), {"role": "critic", "content": "bad"}],
    "no role": [{"content": "a"}],
    "no content": [{"role": "user"}],
    "number content": [user(42), bot("ok")],
    "tool first": [{"role": "tool", "content": "orphan", "tool_call_id": "call00001"}],
    "tool after user": [user("a"), result("x"), user("b")],
    "ipython": [user("run"), {"role": "ipython", "content": "out"}],
    "extra keys": [{"role": "user", "content": "a", "name": "Bob", "weight": 0}, bot("b", refusal=None)],
    "items key": [{"role": "user", "content": "a", "items": [1], "get": 3}],
    "response marker": [user("q"), bot("a"), user("<tool_response>\nx\n</tool_response>"), bot("b"), user("c")],
}

VARIABLES = {
    "plain": {},
    "thinking on": {"enable_thinking": True, "thinking": True, "open_thinking": True},
    "thinking off": {"enable_thinking": False},
    "llama": {"tools_in_user_message": False, "date_string": "1 Jan 2030"},
    "builtin": {"builtin_tools": ["get_weather", "code_interpreter"]},
    "documents": {"controls": {"citations": True, "length": "long", "hallucinations": 1}},
}
DOCUMENTS = [{"doc_id": 7, "title": "t", "text": "Facts."}, {"doc_id": "b", "text": "More: é"}]

GENERATION = """{%- for m in messages %}
{%- if m.role == 'assistant' %}
<a>{% generation %}
{{ m.content }}<eos>
{% endgeneration %}

{%- else %}
<{{ m.role[0] }}>{{ m.content }}
{%- endif %}
{%- endfor %}
{% if add_generation_prompt %}<a>{% endif %}"""
