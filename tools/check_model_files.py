#!/usr/bin/env python3
"""Holds what `io` reads and writes against the packages that own the formats.

  check_model_files.py --driver PROGRAM [--convert SCRIPT] [--only WORD]

PROGRAM is hearth_model_driver. Small random models of every family are made
with transformers, written as Hugging Face folders and as GGUF (the layout
rules of llama.cpp's converter, applied here in numpy; --convert runs that
converter itself), read by PROGRAM and compared byte for byte with the state
dict they came from. What PROGRAM writes is loaded with safetensors,
transformers and peft. Exit 77: a package is missing.
"""
import argparse
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

import peers

os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="error", HF_HUB_DISABLE_PROGRESS_BARS="1")
try:
    import gguf
    import numpy as np
    import torch
    import transformers
    from safetensors.torch import load_file
    transformers.utils.logging.disable_progress_bar()
except ImportError as error:
    peers.skip(error)

SEED = 20261115
DTYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16, "i64": torch.int64,
          "u32": torch.uint32, "u8": torch.uint8, "i32": torch.int32}
COMMON = dict(vocab_size=96, hidden_size=64, intermediate_size=96, num_hidden_layers=3,
              num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=128,
              bos_token_id=1, eos_token_id=2, pad_token_id=0)
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 8192}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32}


def config(kind, **extra):
    return getattr(transformers, kind)(**{**COMMON, **extra})


def families():
    rope = lambda theta, more=None: {"rope_parameters": {"rope_type": "default", "rope_theta": theta, **(more or {})}}
    return {
        "llama": config("LlamaConfig", tie_word_embeddings=True, **rope(10000.0)),
        "llama-bias": config("LlamaConfig", attention_bias=True, mlp_bias=True, **rope(500.0)),
        "llama3": config("LlamaConfig", head_dim=64, **rope(500000.0, LLAMA3)),
        "llama-linear": config("LlamaConfig", **rope(10000.0, {"rope_type": "linear", "factor": 4.0})),
        "mistral": config("MistralConfig", head_dim=24, sliding_window=None, **rope(1000000.0)),
        "qwen2": config("Qwen2Config", tie_word_embeddings=True, **rope(1000000.0)),
        "qwen2-yarn": config("Qwen2Config", **rope(1000000.0, YARN)),
        "qwen3": config("Qwen3Config", head_dim=32, **rope(1000000.0)),
        "gemma2": config("Gemma2Config", head_dim=32, sliding_window=16, query_pre_attn_scalar=32,
                         attn_logit_softcapping=50.0, final_logit_softcapping=30.0),
        "gemma3": config("Gemma3TextConfig", head_dim=32, sliding_window=16, query_pre_attn_scalar=32,
                         num_hidden_layers=7),
        "gpt2": transformers.GPT2Config(vocab_size=96, n_embd=64, n_layer=3, n_head=4, n_positions=64, n_ctx=64,
                                        bos_token_id=1, eos_token_id=2),
    }


def build(configuration, dtype=torch.float32):
    torch.manual_seed(SEED)
    model = transformers.AutoModelForCausalLM.from_config(configuration).to(dtype)
    with torch.no_grad():
        for p in model.parameters():  # norms and biases too, so that none is a constant
            p.copy_(torch.randn(p.shape, dtype=torch.float32).mul_(0.05).add_(0.5 if p.dim() == 1 else 0).to(dtype))
    return model.eval()


class Dump:
    """What PROGRAM reads in a model."""

    def __init__(self, program, path, work):
        data = work / "dump.bin"
        done = subprocess.run([program, "dump", str(path), str(data)], capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"FAIL {path}: {done.stderr.strip()}")
        said = json.loads(done.stdout)
        self.config, self.generation = said["config"], said["generation_config"]
        raw, at, self.tensors, self.info = data.read_bytes(), 0, {}, {}
        for t in said["tensors"]:
            self.info[t["name"]] = t
            self.tensors[t["name"]] = raw[at:at + t["bytes"]]
            at += t["bytes"]

    def tensor(self, name):
        t = self.info[name]
        return torch.frombuffer(bytearray(self.tensors[name]), dtype=DTYPES[t["type"]]).reshape(t["shape"])


def stored(model):
    """The state dict without what is tied away."""
    state = {k: v.detach().contiguous() for k, v in model.state_dict().items()}
    if model.config.tie_word_embeddings:
        state.pop("lm_head.weight", None)
    return state


def equal(where, dump, state, tolerance=0.0):
    if set(dump.tensors) != set(state):
        raise SystemExit(f"FAIL {where}: names differ: {sorted(set(dump.tensors) ^ set(state))[:6]}")
    for name, want in state.items():
        got = dump.tensor(name)
        if got.shape != want.shape or got.dtype != want.dtype:
            raise SystemExit(f"FAIL {where}: {name} is {got.dtype} {tuple(got.shape)}, not {want.dtype} {tuple(want.shape)}")
        if tolerance == 0 and not torch.equal(got, want):
            raise SystemExit(f"FAIL {where}: {name} differs")
        if tolerance and (got.double() - want.double()).abs().max() > tolerance:
            raise SystemExit(f"FAIL {where}: {name} differs by more than {tolerance}")


def check_folders(program, work):
    for name, configuration in families().items():
        for dtype in (torch.float32, torch.bfloat16):
            model = build(configuration, dtype)
            for size in ("5GB", "40KB"):
                folder = work / f"{name}-{str(dtype)[6:]}-{size}"
                model.save_pretrained(folder, max_shard_size=size)
                dump = Dump(program, folder, work)
                equal(folder.name, dump, stored(model))
                if dump.config != json.loads((folder / "config.json").read_text()):
                    raise SystemExit(f"FAIL {folder.name}: config differs")
    print(f"folders of {len(families())} configurations, single and sharded, f32 and bf16: equal")


def run(program, *words):
    done = subprocess.run([program, *map(str, words)], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"FAIL {' '.join(map(str, words))}: {done.stderr.strip()}")
    return done.stdout


def logits(model):
    with torch.no_grad():
        return model(torch.arange(1, 25).reshape(2, 12)).logits


def check_writer(program, work):
    """Folders we write are loaded by transformers and give the same logits."""
    for name, configuration in families().items():
        model = build(configuration, torch.float32)
        folder = work / f"source-{name}"
        model.save_pretrained(folder)
        (folder / "tokenizer.json").write_text("{}")
        for size in (5_000_000_000, 40_000):
            out = work / f"written-{name}-{size}"
            run(program, "copy", folder, out, size)
            state = {}
            for file in sorted(out.glob("*.safetensors")):
                state.update(load_file(file))
            for key, want in stored(model).items():
                if not torch.equal(state.pop(key), want):
                    raise SystemExit(f"FAIL {out.name}: {key} differs")
            if state or len(list(out.glob("model-*"))) == 1 or not (out / "tokenizer.json").exists():
                raise SystemExit(f"FAIL {out.name}: what is written is not the model: {sorted(state)}")
            again = transformers.AutoModelForCausalLM.from_pretrained(out).eval()
            if not torch.equal(logits(again), logits(model)):
                raise SystemExit(f"FAIL {out.name}: transformers computes other logits")
    print(f"written folders of {len(families())} configurations, single and sharded: transformers gives equal logits")


def check_adapters(program, work):
    """PEFT's adapters through our reader and writer and back into PEFT."""
    try:
        import peft
    except ImportError as e:
        print(f"adapters: SKIP: {e}")
        return
    options = {
        "plain": dict(r=4, lora_alpha=12, target_modules=["q_proj", "down_proj"]),
        "rslora": dict(r=4, lora_alpha=3, use_rslora=True, target_modules=["v_proj"]),
        "dora": dict(r=2, use_dora=True, target_modules=["q_proj", "gate_proj"], modules_to_save=["lm_head"]),
        "patterns": dict(r=2, target_modules=["q_proj", "k_proj"], rank_pattern={"k_proj": 4},
                         alpha_pattern={"layers.1.self_attn.q_proj": 7}),
        "all": dict(r=2, target_modules="all-linear"),
    }
    base = build(families()["llama-linear"])
    for name, option in options.items():
        folder, out = work / f"adapter-{name}", work / f"adapter-{name}-again"
        torch.manual_seed(SEED)
        model = peft.get_peft_model(build(families()["llama-linear"]), peft.LoraConfig(**option)).eval()
        with torch.no_grad():
            for key, p in model.named_parameters():
                if "lora_" in key or "modules_to_save" in key:
                    p.add_(torch.randn(p.shape) * 0.1)
        model.save_pretrained(folder)
        scales = json.loads(run(program, "adapter", folder, out))
        for key, module in model.named_modules():
            if isinstance(getattr(module, "scaling", None), dict) and "default" in module.scaling:
                want = module.scaling["default"]
                if abs(scales.pop(key.removeprefix("base_model.model.")) - want) > 1e-12:
                    raise SystemExit(f"FAIL adapter {name}: scale of {key}")
        if scales:
            raise SystemExit(f"FAIL adapter {name}: too many modules: {sorted(scales)}")
        again = peft.PeftModel.from_pretrained(build(families()["llama-linear"]), out).eval()
        want = logits(model)
        if not torch.equal(logits(again), want) or torch.equal(want, logits(base)):
            raise SystemExit(f"FAIL adapter {name}: peft computes other logits from what we wrote")
    print(f"adapters ({', '.join(options)}): peft loads what we write and gives equal logits")


# GGUF ------------------------------------------------------------------------

ARCHITECTURE = {"mistral": "llama", "gemma3_text": "gemma3"}


def rope_factors(c, rope):
    dim = getattr(c, "head_dim", None) or c.hidden_size // c.num_attention_heads
    freqs = 1.0 / (rope["rope_theta"] ** (np.arange(0, dim, 2, dtype=np.float32) / dim))
    old, low, high, factor = (rope[k] for k in ("original_max_position_embeddings", "low_freq_factor",
                                                "high_freq_factor", "factor"))
    out = []
    for wave in 2 * math.pi / freqs:
        smooth = min(max((old / wave - low) / (high - low), 0.0), 1.0)
        out.append(1 / ((1 - smooth) / factor + smooth))
    return np.array(out, dtype=np.float32)


def converted(c, architecture, name, value):
    """What llama.cpp's converter makes of a tensor."""
    if architecture == "llama" and name.endswith(("q_proj.weight", "q_proj.bias", "k_proj.weight", "k_proj.bias")):
        heads = c.num_attention_heads if "q_proj" in name else c.num_key_value_heads
        shape = value.shape
        return value.reshape(heads, 2, shape[0] // heads // 2, *shape[1:]).swapaxes(1, 2).reshape(shape)
    if architecture.startswith("gemma") and name.endswith("norm.weight"):
        return value + np.float32(1)
    if architecture == "gpt2" and name.endswith((".c_attn.weight", ".c_proj.weight", ".c_fc.weight")):
        return value.T
    return value


def write_gguf(path, model, kind, quantize=gguf.quants.quantize, more=lambda writer: None, ends=(1, 2)):
    """Every matrix whose rows are whole blocks in that kind, by `quantize`; `more` adds metadata."""
    c = model.config
    block = gguf.GGML_QUANT_SIZES[kind][0]
    architecture = ARCHITECTURE.get(c.model_type, c.model_type)
    w = gguf.GGUFWriter(path, architecture)
    w.add_context_length(c.max_position_embeddings)
    w.add_embedding_length(c.hidden_size)
    w.add_block_count(c.num_hidden_layers)
    w.add_feed_forward_length(4 * c.hidden_size if architecture == "gpt2" else c.intermediate_size)
    w.add_head_count(c.num_attention_heads)
    rope = getattr(c, "rope_parameters", None) or {}
    rope = rope.get("full_attention", rope)
    if architecture == "gpt2":
        w.add_layer_norm_eps(c.layer_norm_epsilon)
    else:
        w.add_layer_norm_rms_eps(c.rms_norm_eps)
        w.add_head_count_kv(c.num_key_value_heads)
        w.add_rope_freq_base(rope["rope_theta"])
        if getattr(c, "head_dim", None):
            w.add_key_length(c.head_dim)
            w.add_value_length(c.head_dim)
        if rope["rope_type"] in ("linear", "yarn"):
            w.add_rope_scaling_type(gguf.RopeScalingType(rope["rope_type"]))
            w.add_rope_scaling_factor(rope["factor"])
            if rope["rope_type"] == "yarn":
                w.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
    if architecture.startswith("gemma"):
        w.add_sliding_window(c.sliding_window)
        if c.attn_logit_softcapping:
            w.add_attn_logit_softcapping(c.attn_logit_softcapping)
        if c.final_logit_softcapping:
            w.add_final_logit_softcapping(c.final_logit_softcapping)
    w.add_bos_token_id(ends[0])
    w.add_eos_token_id(ends[1])
    more(w)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH[architecture.upper()], c.num_hidden_layers)
    for name, value in stored(model).items():
        new = names.get_name(name, try_suffixes=(".weight", ".bias"))
        data = np.ascontiguousarray(converted(c, architecture, name, value.float().numpy()))
        quantized = data.ndim == 2 and kind != gguf.GGMLQuantizationType.F32 and data.shape[1] % max(block, 32) == 0
        if quantized:
            data = quantize(data, kind)
            w.add_tensor(new, data, raw_dtype=kind)
        else:
            w.add_tensor(new, data)
    if rope.get("rope_type") == "llama3":
        w.add_tensor("rope_freqs.weight", rope_factors(c, rope))
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def check_config(where, c, said):
    """Keys of ours against transformers' own reading of them."""
    kind = type(c)
    made = kind(**{k: v for k, v in said.items() if k not in ("architectures", "model_type")})
    keys = ["vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "max_position_embeddings",
            "tie_word_embeddings", "bos_token_id", "eos_token_id"]
    keys += ["layer_norm_epsilon", "activation_function"] if c.model_type == "gpt2" else [
        "intermediate_size", "num_key_value_heads", "head_dim", "rms_norm_eps"]
    keys += [k for k in ("attention_bias", "mlp_bias", "layer_types", "sliding_window", "query_pre_attn_scalar",
                         "attn_logit_softcapping", "final_logit_softcapping", "hidden_activation", "hidden_act")
             if hasattr(c, k) and c.model_type != "mistral"]
    for key in keys:
        want = getattr(c, key, None)
        if key == "head_dim" and want is None:
            want = c.hidden_size // c.num_attention_heads
        if getattr(made, key, None) != want:
            raise SystemExit(f"FAIL {where}: {key} is {getattr(made, key, None)}, not {want}")
    if c.model_type == "gpt2":
        return

    def plain(rope):
        return {k: float(v) if isinstance(v, (int, float)) else plain(v) if isinstance(v, dict) else v
                for k, v in rope.items()}
    if plain(made.rope_parameters) != plain(c.rope_parameters):
        raise SystemExit(f"FAIL {where}: rope is {made.rope_parameters}, not {c.rope_parameters}")


def check_gguf(program, work):
    T = gguf.GGMLQuantizationType
    for name, configuration in families().items():
        model = build(configuration)
        path = work / f"{name}.gguf"
        write_gguf(path, model, T.F32)
        dump = Dump(program, path, work)
        state = stored(model)
        # Adding one and taking it away again rounds.
        equal(path.name, dump, state, 1.2e-7 if name.startswith("gemma") else 0.0)
        check_config(path.name, model.config, dump.config)
        for kind in (T.F16, T.BF16, T.Q8_0, T.Q4_0, T.Q4_1):
            write_gguf(path, model, kind)
            check_quantized(path, Dump(program, path, work), model, kind)
    print(f"GGUF of {len(families())} configurations in F32, F16, BF16, Q8_0, Q4_0, Q4_1: equal")


def check_quantized(path, dump, model, kind):
    """Blocks are made of rows: quantising Hugging Face's rows gives the same."""
    for name, value in stored(model).items():
        info, data = dump.info[name], value.float().numpy()
        conv1d = model.config.model_type == "gpt2" and name.endswith(
            (".c_attn.weight", ".c_proj.weight", ".c_fc.weight"))
        plain = kind in (gguf.GGMLQuantizationType.F16, gguf.GGMLQuantizationType.BF16)
        width = data.shape[0] if conv1d else data.shape[-1]
        if info["type"] == "f32":
            if data.ndim == 2 and width % 32 == 0:
                raise SystemExit(f"FAIL {path.name}: {name} must be {kind.name}")
            continue
        if info["transposed"] != (conv1d and not plain):
            raise SystemExit(f"FAIL {path.name}: {name} transposed is {info['transposed']}")
        want = gguf.quants.quantize(data.T.copy() if info["transposed"] else data, kind)
        if want.tobytes() != dump.tensors[name]:
            raise SystemExit(f"FAIL {path.name}: {name} differs in {kind.name}")


def check_converter(program, work, script):
    """The converter itself, where its source is at hand."""
    from tokenizers import Tokenizer, models, pre_tokenizers, decoders
    for name, configuration in families().items():
        model = build(configuration, torch.bfloat16 if name == "qwen3" else torch.float32)
        folder = work / f"convert-{name}"
        model.save_pretrained(folder)
        vocabulary = {c: i for i, c in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet())[:96])}
        t = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
        t.pre_tokenizer, t.decoder = pre_tokenizers.ByteLevel(), decoders.ByteLevel()
        t.save(str(folder / "tokenizer.json"))
        out = work / f"convert-{name}.gguf"
        shim = ("import sys, runpy; sys.path[:0] = [sys.argv[1], sys.argv[1] + '/gguf-py']; "
                "import conversion.base as b; "
                "b.TextModel._set_vocab_gpt2 = b.TextModel._set_vocab_sentencepiece = lambda self, **_: None; "
                "sys.argv = sys.argv[2:]; runpy.run_path(sys.argv[0], run_name='__main__')")
        done = subprocess.run([sys.executable, "-c", shim, str(pathlib.Path(script).parent), script, str(folder),
                               "--outtype", "bf16" if name == "qwen3" else "f32", "--outfile", str(out)],
                              capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"FAIL {name}: the converter refused: {done.stderr.strip()[-500:]}")
        dump = Dump(program, out, work)
        state = stored(model)
        if name == "qwen3":
            state = {k: v.float() if v.dim() == 1 else v for k, v in state.items()}
        equal(out.name, dump, state, 1.2e-7 if name.startswith("gemma") else 0.0)
        dump.config.update(bos_token_id=1, eos_token_id=2)  # no tokenizer went in
        check_config(out.name, model.config, dump.config)
        print(f"  {name}: the converter's file is read equal")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--driver", required=True)
    parser.add_argument("--convert")
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    program = os.path.abspath(args.driver)
    checks = {"folders": check_folders, "writer": check_writer, "adapters": check_adapters, "gguf": check_gguf}
    with tempfile.TemporaryDirectory() as work:
        for name, check in checks.items():
            if args.only in name:
                check(program, pathlib.Path(work))
        if args.convert:
            check_converter(program, pathlib.Path(work), args.convert)


if __name__ == "__main__":
    main()
