"""A Llama model of zeros in bf16: no room on disk, as large as a test wants, and some time to load."""
import json
import shutil
import struct


def write_zeros(folder, layers, width=1024, vocabulary=64):
    shapes = {"model.embed_tokens.weight": [vocabulary, width], "model.norm.weight": [width],
              "lm_head.weight": [vocabulary, width]}
    for i in range(layers):
        at = f"model.layers.{i}."
        shapes |= {f"{at}self_attn.{p}_proj.weight": [width, width] for p in "qkvo"}
        shapes |= {f"{at}mlp.{p}_proj.weight": [4 * width, width] for p in ("gate", "up")}
        shapes |= {f"{at}mlp.down_proj.weight": [width, 4 * width]}
        shapes |= {f"{at}{p}_layernorm.weight": [width] for p in ("input", "post_attention")}
    header, at = {}, 0
    for name, shape in shapes.items():
        end = at + 2 * shape[0] * (shape[1] if len(shape) > 1 else 1)
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, end]}
        at = end
    text = json.dumps(header).encode()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    with open(folder / "model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + at)
    (folder / "config.json").write_text(json.dumps({
        "model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": width,
        "intermediate_size": 4 * width, "num_hidden_layers": layers, "num_attention_heads": 8, "num_key_value_heads": 8,
        "vocab_size": vocabulary, "max_position_embeddings": 128, "tie_word_embeddings": False}))
