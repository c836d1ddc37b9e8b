#!/usr/bin/env python3
"""Writes tests/broken/model: tiny models, each broken in one way, and
expected.txt with the phrase that the one line of refusal must have. What is
committed was made by this script."""
import json
import pathlib
import shutil
import struct

ROOT = pathlib.Path(__file__).resolve().parent.parent / "tests" / "broken" / "model"
EXPECTED = []
CONFIG = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 2}


def safetensors(header, data=b"\0" * 8, length=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def tensor(begin, end, dtype="F32", shape=(2,)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": [begin, end]}


def folder(name, phrase, files, config=CONFIG):
    path = ROOT / name
    path.mkdir(parents=True)
    if config is not None:
        (path / "config.json").write_text(config if isinstance(config, str) else json.dumps(config))
    for file, content in files.items():
        (path / file).write_bytes(content)
    EXPECTED.append((name, phrase))


def single(name, phrase, content):
    folder(name, phrase, {"model.safetensors": content})


def index(weight_map):
    return json.dumps({"metadata": {"total_size": 8}, "weight_map": weight_map}).encode()


def text(value):
    return struct.pack("<Q", len(value)) + value.encode()


def gguf(name, phrase, tensors=((("token_embd.weight"), (2, 2), 0, 0),), count=None, data=b"\0" * 16, cut=None,
         architecture="llama", version=3):
    keys = [text("general.architecture") + struct.pack("<I", 8) + text(architecture)]
    for key, value in (("context_length", 8), ("embedding_length", 2), ("block_count", 1),
                       ("feed_forward_length", 2), ("attention.head_count", 1)):
        keys.append(text(f"{architecture}.{key}") + struct.pack("<II", 4, value))
    out = b"GGUF" + struct.pack("<IQQ", version, len(tensors) if count is None else count, len(keys)) + b"".join(keys)
    for tensor_name, sizes, kind, offset in tensors:
        out += text(tensor_name) + struct.pack("<I", len(sizes)) + struct.pack(f"<{len(sizes)}Q", *sizes)
        out += struct.pack("<IQ", kind, offset)
    out += b"\0" * (-len(out) % 32) + data
    (ROOT / name).write_bytes(out if cut is None else out[:cut])
    EXPECTED.append((name, phrase))


def main():
    shutil.rmtree(ROOT, ignore_errors=True)
    ROOT.mkdir(parents=True)
    good = safetensors({"a": tensor(0, 8)})
    single("truncated_header", "cut short", good[:20])
    single("truncated_data", "must lie in the 4", good[:-4])
    single("header_length_huge", "header must be at most", safetensors(b"{}", length=2 ** 63))
    single("empty_file", "at least 8 bytes, got 0", b"")
    single("header_not_json", "not JSON", safetensors(b'{"a": nope}'))
    single("overlapping_offsets", '"b" overlaps', safetensors({"a": tensor(0, 8), "b": tensor(4, 12)}, b"\0" * 12))
    single("gap_between_tensors", '"b" leaves a gap', safetensors({"a": tensor(0, 8), "b": tensor(12, 20)}, b"\0" * 20))
    single("wrong_size_for_shape", "takes 12 bytes", safetensors({"a": tensor(0, 8, shape=(3,))}))
    single("shape_overflows", "too many", safetensors({"a": tensor(0, 8, shape=(2 ** 40, 2 ** 40))}))
    single("bad_dtype", '"F8_E5M2" is not supported', safetensors({"a": tensor(0, 8, "F8_E5M2", (8,))}))
    single("duplicate_names", '"a" is given twice',
           safetensors(b'{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"a":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}}'))
    single("deep_header", "nest at most", safetensors(b'{"a":' + b"[" * 64 + b"]" * 64 + b"}"))
    folder("missing_shard", '"model-00002-of-00002.safetensors" is missing',
           {"model.safetensors.index.json": index({"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}),
            "model-00001-of-00002.safetensors": good})
    folder("tensor_not_in_shard", 'tensor "b" is not in "one.safetensors"',
           {"model.safetensors.index.json": index({"a": "one.safetensors", "b": "one.safetensors"}), "one.safetensors": good})
    folder("tensor_in_two_shards", 'the index has it in "one.safetensors"',
           {"model.safetensors.index.json": index({"a": "one.safetensors", "b": "two.safetensors"}), "one.safetensors": good,
            "two.safetensors": good})
    folder("index_escapes", "must lie in the model's folder",
           {"model.safetensors.index.json": index({"a": "../truncated_header/model.safetensors"})})
    folder("index_absolute", "must lie in the model's folder",
           {"model.safetensors.index.json": index({"a": "/etc/hostname"})})
    folder("index_without_map", "weight_map", {"model.safetensors.index.json": b"{}"})
    folder("bad_json_config", "not JSON", {"model.safetensors": good}, '{"hidden_size": }')
    folder("config_not_object", "must be a JSON object", {"model.safetensors": good}, "[1, 2]")
    folder("config_key_twice", '"hidden_size" is given twice', {"model.safetensors": good},
           '{"hidden_size": 2, "hidden_size": 4}')
    folder("no_config", "has weights but no config.json", {"model.safetensors": good}, None)
    folder("no_weights", "neither model.safetensors nor", {})
    folder("pytorch_only", "pytorch_model.bin", {"pytorch_model.bin": b"PK"})
    folder("adapter", "holds an adapter", {"adapter_config.json": b"{}"}, None)
    folder("not_a_model", "is not a model", {"notes.txt": b"shopping list\n"}, None)
    gguf("truncated_header.gguf", "cut short", cut=60)
    gguf("truncated_data.gguf", "cut short", data=b"\0" * 8)
    gguf("tensor_past_end.gguf", "cut short", [("token_embd.weight", (2, 2), 0, 64)])
    gguf("absurd_count.gguf", "more than the file can hold", count=2 ** 60)
    gguf("overlap.gguf", "overlaps", [("token_embd.weight", (2, 2), 0, 0), ("output.weight", (2, 2), 0, 0)])
    gguf("unaligned.gguf", "must be aligned", [("token_embd.weight", (2, 2), 0, 4)], data=b"\0" * 32)
    gguf("bad_type.gguf", "type IQ4_XS is not supported", [("token_embd.weight", (256, 2), 23, 0)], data=b"\0" * 512)
    gguf("shape_overflows.gguf", "not a possible shape", [("token_embd.weight", (2 ** 40, 2 ** 40), 0, 0)])
    gguf("unknown_architecture.gguf", "is not known; llama", architecture="mamba")
    gguf("old_version.gguf", "version 1 is not supported", version=1)
    (ROOT / "no_model.gguf").write_bytes(b"GIF89a..")
    EXPECTED.append(("no_model.gguf", "not a GGUF file"))
    lines = [f"{name}\t{phrase}\n" for name, phrase in EXPECTED]
    (ROOT / "expected.txt").write_text("".join(lines))
    print(f"{len(EXPECTED)} broken models")


main()
