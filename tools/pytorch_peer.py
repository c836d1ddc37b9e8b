#!/usr/bin/env python3
"""The PyTorch side of compare_pytorch.py: trains when told to, and reports.

  pytorch_peer.py --work b20 --precision bf16 [--compile] [--threads N]

A Llama-style decoder as a careful PyTorch user writes it: scaled dot product
attention, fused AdamW, autocast to bf16, torch.compile. The driver writes a
number of steps on a line; each line is answered by one of JSON. It answers
once by itself, when warm.
"""
import argparse
import ctypes
import json
import os
import re
import sys
import tempfile
import time

try:
    import torch
    from torch import nn
    from torch.nn import functional as F
except ImportError as missing:
    print(json.dumps({"absent": str(missing)}), flush=True)
    sys.exit(0)

WORKS = {  # width, layers, heads, key heads, ffn, vocabulary; batch, length
    "b20": ((384, 6, 12, 12, 1024, 24576), (32, 256)),
    "g124": ((768, 12, 12, 12, 2048, 50304), (4, 1024)),
    "lora05": ((896, 24, 14, 2, 4864, 151936), (4, 512)),
}


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.head_dim = heads, width // heads
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)

    def rotate(self, x, cos, sin):
        a, b = x.chunk(2, dim=-1)
        return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)

    def forward(self, x, cos, sin):
        batch, length, width = x.shape
        split = self.qkv(x).view(batch, length, 3, self.heads, self.head_dim)
        q, k, v = split.permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(self.rotate(q, cos, sin), self.rotate(k, cos, sin), v,
                                               is_causal=True)
        return self.out(mixed.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self, width, heads, ffn):
        super().__init__()
        self.norm_1, self.norm_2 = nn.RMSNorm(width, eps=1e-5), nn.RMSNorm(width, eps=1e-5)
        self.attention = Attention(width, heads)
        self.gate, self.up = (nn.Linear(width, ffn, bias=False) for _ in range(2))
        self.down = nn.Linear(ffn, width, bias=False)

    def forward(self, x, cos, sin):
        x = x + self.attention(self.norm_1(x), cos, sin)
        y = self.norm_2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Decoder(nn.Module):
    """The head shares the embedding's weight; forward gives the mean loss."""

    def __init__(self, shape, length):
        super().__init__()
        width, layers, heads, _, ffn, vocabulary = shape
        self.embedding = nn.Embedding(vocabulary, width)
        nn.init.normal_(self.embedding.weight, std=0.02)
        self.blocks = nn.ModuleList(Block(width, heads, ffn) for _ in range(layers))
        self.norm = nn.RMSNorm(width, eps=1e-5)
        half = torch.arange(0, width // heads, 2) / (width // heads)
        angles = torch.outer(torch.arange(length).float(), 10000.0 ** -half)
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)

    def forward(self, ids, targets):
        x = self.embedding(ids)
        cos, sin = self.cos.to(x.dtype), self.sin.to(x.dtype)
        for block in self.blocks:
            x = block(x, cos, sin)
        logits = F.linear(self.norm(x), self.embedding.weight)
        return F.cross_entropy(logits.float().flatten(0, 1), targets.flatten())


class LoraLoss(nn.Module):
    """Rank 16 on every linear layer of a Qwen2.5-0.5B-shaped model, by PEFT.
    The base is kept in the precision of the run."""

    def __init__(self, shape, precision):
        super().__init__()
        import peft
        import transformers
        width, layers, heads, key_heads, ffn, vocabulary = shape
        config = transformers.Qwen2Config(
            hidden_size=width, num_hidden_layers=layers, num_attention_heads=heads,
            num_key_value_heads=key_heads, intermediate_size=ffn, vocab_size=vocabulary,
            tie_word_embeddings=True, use_cache=False)
        dtype = torch.bfloat16 if precision == "bf16" else torch.float32
        base = transformers.AutoModelForCausalLM.from_config(config, dtype=dtype,
                                                             attn_implementation="sdpa")
        self.model = peft.get_peft_model(base, peft.LoraConfig(
            task_type="CAUSAL_LM", r=16, lora_alpha=32, target_modules="all-linear"))

    def forward(self, ids, targets):
        logits = self.model(input_ids=ids).logits
        return F.cross_entropy(logits.float().flatten(0, 1), targets.flatten())


class Trainer:
    def __init__(self, args):
        torch.manual_seed(0)
        shape, (batch, length) = WORKS[args.work]
        self.half, self.tokens = args.precision == "bf16", batch * length
        self.model = (LoraLoss(shape, args.precision) if args.work.startswith("lora")
                      else Decoder(shape, length))
        self.trained = [p for p in self.model.parameters() if p.requires_grad]
        self.optimizer = torch.optim.AdamW(self.trained, lr=3e-4, fused=True)
        self.loss = torch.compile(self.model) if args.compile else self.model
        self.ids = torch.randint(0, shape[5], (batch, length + 1))
        parameters = sum(p.numel() for p in self.model.parameters())
        # A frozen weight has no gradient of its own to compute.
        each = 4 if args.work.startswith("lora") else 6
        self.flops = (each * parameters + 12 * shape[1] * shape[0] * length) * self.tokens

    def step(self):
        start = time.perf_counter()
        with torch.autocast("cpu", torch.bfloat16, enabled=self.half):
            loss = self.loss(self.ids[:, :-1], self.ids[:, 1:])
        loss.backward()
        nn.utils.clip_grad_norm_(self.trained, 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.last_loss = loss.item()
        return time.perf_counter() - start


def memory_mib(field):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(field)) / 1024


def forget_peak():
    try:
        with open("/proc/self/clear_refs", "w") as f:
            f.write("5")
    except OSError:
        pass


def matmul_isa(dtype):
    """What oneDNN multiplies with, from what it says of one product."""
    capability = torch.backends.cpu.get_cpu_capability().lower()
    if dtype != torch.bfloat16:
        return capability
    a, libc = torch.ones(64, 64, dtype=dtype), ctypes.CDLL(None)
    with tempfile.TemporaryFile("w+") as said:
        sys.stdout.flush()
        kept = os.dup(1)
        os.dup2(said.fileno(), 1)
        with torch.backends.mkldnn.verbose(torch.backends.mkldnn.VERBOSE_ON):
            a @ a
        libc.fflush(None)
        os.dup2(kept, 1)
        os.close(kept)
        said.seek(0)
        found = re.search(r"exec,cpu,matmul,([^,]+),", said.read())
    return found[1].split(":")[-1] if found else capability


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--work", choices=WORKS, required=True)
    parser.add_argument("--precision", choices=("fp32", "bf16"), required=True)
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--warm-up", type=int, default=3)
    args = parser.parse_args()
    answers, sys.stdout = sys.stdout, sys.stderr
    answer = lambda **fields: print(json.dumps(fields), file=answers, flush=True)
    if args.threads:
        torch.set_num_threads(args.threads)
    start = memory_mib("VmRSS")
    try:
        trainer = Trainer(args)
    except ImportError as missing:
        return answer(absent=str(missing))
    isa = matmul_isa(torch.bfloat16 if args.precision == "bf16" else torch.float32)
    for _ in range(args.warm_up):
        trainer.step()
    process_peak = memory_mib("VmHWM")
    forget_peak()
    answer(torch=torch.__version__, threads=torch.get_num_threads(), tokens=trainer.tokens,
           flops=trainer.flops, start_mib=start, isa=isa)
    for line in sys.stdin:
        seconds = [trainer.step() for _ in range(int(line))]
        steps_peak = memory_mib("VmHWM")
        answer(seconds=seconds, loss=trainer.last_loss, steps_peak_mib=steps_peak,
               peak_mib=max(process_peak, steps_peak))


if __name__ == "__main__":
    main()
