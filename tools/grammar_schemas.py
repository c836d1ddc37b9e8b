"""Schemas for tools/check_grammar.py: what is generated for each must be valid
for it; and schemas that must be refused, by the word that names why."""


def obj(properties, required=None, **more):
    return {"type": "object", "properties": properties,
            "required": sorted(properties) if required is None else required, **more}


S, I, N, B = {"type": "string"}, {"type": "integer"}, {"type": "number"}, {"type": "boolean"}
CLOSED = {"additionalProperties": False}
TREE = {"$ref": "#/$defs/tree", "$defs": {"tree": obj(
    {"v": I, "kids": {"type": "array", "items": {"$ref": "#/$defs/tree"}, "maxItems": 2}}, ["v"], **CLOSED)}}
LIST = obj({"v": I, "next": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}})
STEP = obj({"explanation": S, "output": S}, **CLOSED)
SHAPES = {"oneOf": [
    obj({"kind": {"const": "circle"}, "r": {"type": "number", "exclusiveMinimum": 0}}),
    obj({"kind": {"const": "box"}, "w": N, "h": N}, ["kind", "w"]),
    obj({"kind": {"enum": ["point", "none"]}}, ["kind"], **CLOSED)]}

PETS = {"oneOf": [{"$ref": "#/$defs/cat"}, {"$ref": "#/$defs/dog"}], "discriminator": {
    "propertyName": "kind", "mapping": {"cat": "#/$defs/cat", "dog": "#/$defs/dog"}}, "$defs": {
        "cat": obj({"kind": {"const": "cat", "type": "string", "default": "cat"}, "lives": I}, ["lives"]),
        "dog": obj({"kind": {"const": "dog", "type": "string", "default": "dog"}, "name": S}, ["name"])}}

ACCEPTED = [
    {}, True, S, I, N, B, {"type": "null"}, {"type": "array"}, {"type": "object"},
    {"type": ["string", "null"]}, {"type": ["integer", "boolean", "array"]},
    {"type": "string", "maxLength": 3}, {"type": "string", "minLength": 2, "maxLength": 9},
    {"type": "string", "minLength": 20}, {"type": "string", "maxLength": 0},
    {"type": "string", "pattern": "^[A-Z]{2}-[0-9]{3,5}$"}, {"type": "string", "pattern": "[0-9]{2}"},
    {"type": "string", "pattern": "^(foo|bar)*\\.?$"}, {"type": "string", "pattern": "^\"[^\"\\\\]*\"$"},
    {"type": "string", "pattern": "^\\d+ (km|mi)$"}, {"type": "string", "pattern": "0$|^x"}, {"type": "string", "pattern": "^[\\w.+-]+@\\w+\\.\\w{2,}$"},
    {"type": "string", "pattern": "^[à-ü€😀]{1,3}$"}, {"type": "string", "pattern": "^\\S+\\s\\S+$"},
    {"type": "string", "format": "date"}, {"type": "string", "format": "time"},
    {"type": "string", "format": "date-time"}, {"type": "string", "format": "uuid"},
    {"type": "string", "format": "email"}, {"type": "string", "format": "ipv4"}, {"type": "string", "format": "ipv6"},
    {"type": "string", "format": "uri"}, {"type": "string", "format": "hostname"}, {"type": "string", "format": "duration"},
    {"type": "string", "minLength": 70, "maxLength": 90}, {"type": "string", "pattern": "^([a-c]x|é){70,75}$"},
    {"type": "integer", "minimum": 0}, {"type": "integer", "maximum": -5},
    {"type": "integer", "minimum": -17, "maximum": 4203}, {"type": "integer", "minimum": 995, "maximum": 1005},
    {"type": "integer", "exclusiveMinimum": 9, "exclusiveMaximum": 11},
    {"type": "integer", "minimum": 1.5, "maximum": 99.5}, {"type": "integer", "minimum": -3.5, "maximum": -0.5},
    {"type": "number", "minimum": 0, "maximum": 1}, {"type": "number", "minimum": -2.5, "maximum": 2.25},
    {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}, {"type": "number", "maximum": -10},
    {"type": "number", "exclusiveMinimum": -1, "maximum": 0}, {"type": "number", "minimum": 0.001},
    {"enum": ["red", "green", 3, 2.5, None, True, ["x"], {"k": "é\n"}]}, {"const": {"a": [1, "\"q\""]}},
    {"type": "array", "items": I, "minItems": 2, "maxItems": 4}, {"type": "array", "items": S, "minItems": 1},
    {"type": "array", "prefixItems": [I, S, B], "items": False},
    {"type": "array", "prefixItems": [I, S], "items": N, "minItems": 1, "maxItems": 5},
    {"type": "array", "items": {"type": "array", "items": N, "maxItems": 3}, "maxItems": 3},
    obj({"name": S, "age": {"type": "integer", "minimum": 0, "maximum": 150}}, **CLOSED),
    obj({"a": I, "b": S, "c": B}, ["b"]), obj({"a": I, "b": S}, []), obj({"a": I, "b": S, "c": N}, ["c"], **CLOSED),
    obj({"a": I}, ["a"], additionalProperties=True), obj({"ab": I, "abc": S}, [], additionalProperties=B),
    {"type": "object", "additionalProperties": I}, {"type": "object", "required": ["x", "y"]},
    {"properties": {"q\"uote": I, "back\\slash": S, "é": N}, "required": ["q\"uote"], "additionalProperties": S},
    obj({"user": obj({"id": I, "tags": {"type": "array", "items": S}}, **CLOSED), "ok": B}, **CLOSED),
    {"anyOf": [S, I, obj({"x": N})]}, {"anyOf": [{"type": "string", "maxLength": 2}, {"const": "long enough"}]},
    {"type": "object", "properties": {"k": S}, "required": ["k"],
     "anyOf": [{"properties": {"v": I}, "required": ["v"]}, {"properties": {"k": {"const": "z"}}}]},
    SHAPES, {"oneOf": [{"type": "null"}, S, {"type": "array", "items": I}]},
    {"allOf": [obj({"a": I}), obj({"b": {"type": "string"}}), {"properties": {"a": {"minimum": 5}}}]},
    {"allOf": [{"type": "integer", "minimum": 3}, {"type": "number", "maximum": 12}]},
    {"allOf": [{"type": "array", "prefixItems": [I, I], "items": S}, {"items": {"type": ["integer", "string"]}, "maxItems": 4}]},
    {"allOf": [{"type": "array", "prefixItems": [I]}, {"items": {"minimum": 5, "type": "integer"}, "minItems": 2}]},
    {"allOf": [{"type": "array", "prefixItems": [{}, S]}, {"type": "array", "prefixItems": [B], "items": {"maxLength": 1, "type": "string"}}]},
    {"type": "array", "prefixItems": [I] * 70, "maxItems": 80, "items": B},
    PETS, TREE, LIST, {"definitions": {"c": {"enum": ["r", "g"]}}, "type": "array", "items": {"$ref": "#/definitions/c"}},
    obj({"steps": {"type": "array", "items": STEP}, "final_answer": S}, **CLOSED),
    {"title": "t", "description": "d", "default": 1, "examples": [1], "$comment": "c", "type": "integer"},
    obj({"when": {"type": "string", "format": "date-time"}, "who": {"type": "array", "items":
        {"type": "string", "format": "email"}, "maxItems": 2}, "note": {"type": ["string", "null"]}}, **CLOSED),
]

REFUSED = [
    ({"not": S}, "'not'"), ({"if": S, "then": S}, "'if'"), ({"type": "array", "contains": I}, "'contains'"),
    ({"type": "array", "uniqueItems": True}, "'uniqueItems'"), ({"patternProperties": {"a": I}}, "'patternProperties'"),
    ({"propertyNames": S}, "'propertyNames'"), ({"minProperties": 1}, "'minProperties'"),
    ({"dependentRequired": {}}, "'dependentRequired'"), ({"unevaluatedProperties": False}, "'unevaluatedProperties'"),
    ({"type": "integer", "multipleOf": 7}, "'multipleOf'"), ({"type": "string", "format": "iri"}, "'format'"),
    ({"type": "string", "pattern": "(?!a)"}, "lookahead"), ({"$dynamicRef": "#x"}, "'$dynamicRef'"),
    ({"$ref": "other.json"}, "'$ref'"), ({"oneOf": [I, N]}, "'oneOf'"), ({"type": "string", "contentEncoding": "x"}, "'contentEncoding'"),
    ({"properties": {"deep": {"items": {"nullable": True}}}}, "#/properties/deep/items"),
]

# Texts that a grammar may take only where their value is valid.
VALUES = [
    None, True, False, 0, 1, -1, 5, 9, 10, 11, 99, 100, 150, 151, 994, 995, 1000, 1005, 1006, 4203, 4204, -5, -6, -17,
    -18, 0.5, 1.5, -0.5, 2.25, 2.26, -2.5, -2.51, 1e20, "", "a", "ab", "abc", "abcd", "needle", "AB-123", "AB-12", "foobar.",
    "é", "😀", "12 km", "2024-02-28", "2024-02-31", "23:59:59Z", "25:00:00Z", "2024-02-28T10:00:00Z", "a@b.cd", "@b",
    "1.2.3.4", "1.2.3.400", "::1", "1::2::3", "http://a.b/c", "http://a b", "P1D", "P1", "a-b.c", "-a", "123e4567-e89b-12d3-a456-426614174000", "red", "z", "long enough", [], [1], [1, 2], [1, 2, 3, 4, 5],
    ["a"], [1, "a"], [1, "a", True], [1, "a", True, 2], [[1.5], []], [["a"]], {}, {"a": 1}, {"a": "x"}, {"a": 1, "b": "x"},
    {"b": "x"}, {"b": "x", "a": 1}, {"a": 1, "b": "x", "c": True}, {"x": 1}, {"x": 1, "y": 2}, {"name": "n", "age": 151},
    {"name": "n", "age": 150}, {"name": "n", "age": 1, "more": 1}, {"ab": 1, "abc": True}, {"ab": True}, {"abd": True},
    {"v": 1}, {"v": 1, "next": None}, {"v": 1, "next": {"v": 2}}, {"v": 1, "kids": [{"v": 2, "kids": []}]}, {"v": "1"},
    {"kind": "circle", "r": 1.5}, {"kind": "circle", "r": 0}, {"kind": "box", "w": 1}, {"kind": "none", "r": 1},
    {"kind": "none"}, {"kind": "cat", "lives": 9}, {"lives": 9}, {"kind": "dog", "lives": 9}, [1, 1, "a"], [1, 1, 1], [5, 6],
    [1, "b"], [7, 4], [True, "a"], {"k": "z"}, {"k": "a"}, {"k": "a", "v": 1}, {"steps": [], "final_answer": ""}, {"q\"uote": 1},
]
