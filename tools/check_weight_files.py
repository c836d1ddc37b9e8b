#!/usr/bin/env python3
"""Files of weights against the packages that own the formats, without PyTorch.

  tools/check_weight_files.py PROGRAM

PROGRAM is hearth_model_driver. What PyPI's safetensors writes, one file or
shards, must come out byte for byte, and what we write must be read by it; of
SmolLM2's GGUF every tensor must be what the gguf package's own reader finds.
tools/check_model_files.py goes further where PyTorch is. Exit 77: a package is
missing.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

import peers
import serve_process

try:
    import gguf
    import numpy as np
    import safetensors
except ImportError as error:
    peers.skip(error)

WIDTH = 16
CONFIG = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 24, "hidden_size": WIDTH,
          "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 2,
          "max_position_embeddings": 64, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": True}
SIZE = {"float32": 4, "float16": 2, "bfloat16": 2}
SHORT = {"float32": "f32", "float16": "f16", "bfloat16": "bf16"}


def run(program, *words):
    done = subprocess.run([program, *map(str, words)], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"FAIL {' '.join(map(str, words))}: {done.stderr.strip()}")
    return done.stdout


def dump(program, path, work):
    """(config, name -> (type, shape, bytes)) as we read a model."""
    data = work / "dump.bin"
    said = json.loads(run(program, "dump", path, data))
    raw, at, tensors = data.read_bytes(), 0, {}
    for t in said["tensors"]:
        tensors[t["name"]] = (t["type"], tuple(t["shape"]), raw[at:at + t["bytes"]])
        at += t["bytes"]
    return said["config"], tensors


def random_tensors(dtype):
    """Any bytes will do: they are weights to nobody."""
    shapes = {"model.embed_tokens.weight": (24, WIDTH), "model.norm.weight": (WIDTH,)}
    for layer in range(2):
        shapes |= {f"model.layers.{layer}.{name}.weight": (rows, columns) for name, rows, columns in (
            ("self_attn.q_proj", WIDTH, WIDTH), ("self_attn.k_proj", WIDTH, WIDTH), ("self_attn.v_proj", WIDTH, WIDTH),
            ("self_attn.o_proj", WIDTH, WIDTH), ("mlp.gate_proj", 32, WIDTH), ("mlp.up_proj", 32, WIDTH),
            ("mlp.down_proj", WIDTH, 32))}
        shapes |= {f"model.layers.{layer}.{name}.weight": (WIDTH,)
                   for name in ("input_layernorm", "post_attention_layernorm")}
    rng = np.random.default_rng(len(dtype))
    return {name: (dtype, shape, rng.bytes(SIZE[dtype] * int(np.prod(shape)))) for name, shape in shapes.items()}


def serialized(tensors):
    """What the package writes; it takes addresses of bytes that must live as long."""
    alive = {name: np.frombuffer(data, np.uint8) for name, (_, _, data) in tensors.items()}
    spec = {name: safetensors.TensorSpec(dtype=dtype, shape=shape, data_ptr=alive[name].ctypes.data, data_len=len(data))
            for name, (dtype, shape, data) in tensors.items()}
    return bytes(safetensors.serialize(spec, {"format": "pt"}))


def write_folder(folder, tensors, files):
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(CONFIG))
    names, index = sorted(tensors), {}
    for i in range(files):
        name = "model.safetensors" if files == 1 else f"model-{i + 1:05}-of-{files:05}.safetensors"
        part = {n: tensors[n] for n in names[i::files]}
        (folder / name).write_bytes(serialized(part))
        index |= dict.fromkeys(part, name)
    if files > 1:
        (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": index}))


def as_read(tensors):
    return {name: (SHORT[dtype], shape, data) for name, (dtype, shape, data) in tensors.items()}


def read_by_owner(folder):
    found = {}
    for path in sorted(folder.glob("*.safetensors")):
        for name, t in safetensors.deserialize(path.read_bytes()):
            dtype = {"F32": "f32", "F16": "f16", "BF16": "bf16"}[t["dtype"]]
            found[name] = (dtype, tuple(t["shape"]), bytes(t["data"]))
    return found


def check_safetensors(program, work):
    for dtype in SIZE:
        for files in (1, 3):
            tensors = random_tensors(dtype)
            folder = work / f"{dtype}-{files}"
            write_folder(folder, tensors, files)
            config, found = dump(program, folder, work)
            if found != as_read(tensors) or config != CONFIG:
                raise SystemExit(f"FAIL {folder.name}: what we read is not what safetensors wrote")
            for most in (5_000_000_000, 4_000):
                out = work / f"{folder.name}-{most}"
                run(program, "copy", folder, out, most)
                shards = len(list(out.glob("*.safetensors")))
                if read_by_owner(out) != as_read(tensors) or (shards > 1) != (most == 4_000):
                    raise SystemExit(f"FAIL {out.name}: what safetensors reads is not what we wrote")
    print(f"safetensors {safetensors.__version__}: {', '.join(SIZE)}, single and sharded, read and written")


def hugging_face_rows(data, name, config):
    """llama.cpp's converter permutes the rows of queries and keys; the reverse."""
    if ".attn_q." not in name and ".attn_k." not in name:
        return data
    heads = config["num_attention_heads" if ".attn_q." in name else "num_key_value_heads"]
    return data.reshape(heads, data.shape[0] // heads // 2, 2, *data.shape[1:]).swapaxes(1, 2).reshape(data.shape)


def check_gguf(program, work, path):
    config, found = dump(program, path, work)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, config["num_hidden_layers"])
    back = {names.get_name(name, try_suffixes=(".weight", ".bias")): name for name in found}
    theirs = gguf.GGUFReader(path).tensors
    for t in theirs:
        data = np.ascontiguousarray(hugging_face_rows(np.asarray(t.data), t.name, config))
        want = (t.tensor_type.name.lower(), tuple(reversed(t.shape.tolist())), data.tobytes())
        if found[back[t.name]] != want:
            raise SystemExit(f"FAIL {path}: {t.name} differs")
    if len(theirs) != len(found):
        raise SystemExit(f"FAIL {path}: {len(found)} tensors, not {len(theirs)}")
    print(f"gguf: {len(theirs)} tensors of {pathlib.Path(path).name} equal")


def main(program):
    model = serve_process.small_chat_model()
    if not model:
        peers.skip_without("GGUF to read (SmolLM2)")
    with tempfile.TemporaryDirectory() as work:
        check_safetensors(program, pathlib.Path(work))
        check_gguf(program, pathlib.Path(work), model)


if __name__ == "__main__":
    main(sys.argv[1])
