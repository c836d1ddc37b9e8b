"""The tiny models of tools/make_model_goldens.py: one per family and option.

A case is a config class of transformers, its fields, and `without`: the fields
that take the option away. The maker insists that the logits then differ, so
that a reader which ignores the option cannot pass.
"""

WIDTH = dict(vocab_size=64, hidden_size=32, intermediate_size=48,
             num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
             max_position_embeddings=256, bos_token_id=1, eos_token_id=2)
PLAIN_ROPE = {"rope_type": "default", "rope_theta": 10000.0}


def llama(without=None, **fields):
    return "LlamaConfig", {**WIDTH, "rms_norm_eps": 1e-5, **fields}, without


def rope(kind, theta, **fields):
    return {"rope_type": kind, "rope_theta": theta, **fields}


def rope_case(parameters, **fields):
    plain = rope("default", parameters["rope_theta"])
    return llama(rope_parameters=parameters, without={"rope_parameters": plain}, **fields)


def gpt2(without, **fields):
    sizes = dict(vocab_size=64, n_positions=32, n_embd=32, n_layer=2, n_head=4,
                 n_inner=48, bos_token_id=1, eos_token_id=2)
    return "GPT2Config", {**sizes, **fields}, without


YARN = rope("yarn", 500.0, factor=4.0, original_max_position_embeddings=20)
GEMMA = dict(WIDTH, head_dim=16, sliding_window=8, pad_token_id=0, bos_token_id=2,
             eos_token_id=1, query_pre_attn_scalar=24, num_hidden_layers=3)

# The text has 24 tokens: longer than every window here (8), than the lengths
# of the dynamic (16) and yarn (20) cases, shorter than any other limit.
CASES = {
    "llama2": llama(num_key_value_heads=4, without={"rms_norm_eps": 0.5}),
    "llama3-gqa": llama(rope_parameters=rope("default", 500000.0),
                        without={"rope_parameters": PLAIN_ROPE}),
    "llama3-rope": rope_case(rope("llama3", 100.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                                  original_max_position_embeddings=32), head_dim=16),
    "llama-linear": rope_case(rope("linear", 10000.0, factor=4.0), num_hidden_layers=1),
    "llama-dynamic": rope_case(rope("dynamic", 10000.0, factor=4.0), num_hidden_layers=1,
                               max_position_embeddings=16),
    "llama-yarn": rope_case(YARN, head_dim=16, num_hidden_layers=1),
    "llama-yarn-mscale": rope_case({**YARN, "beta_fast": 4.0, "beta_slow": 0.5, "truncate": False,
                                    "mscale": 2.0, "mscale_all_dim": 0.5},
                                   head_dim=16, num_hidden_layers=1),
    "llama-tied": llama(tie_word_embeddings=True),
    "llama-bias": llama(attention_bias=True, mlp_bias=True, num_hidden_layers=1),
    "llama-headdim": llama(head_dim=12, num_hidden_layers=1),
    "llama-relu": llama(hidden_act="relu", num_hidden_layers=1, without={"hidden_act": "silu"}),
    "llama-gelu": llama(hidden_act="gelu", num_hidden_layers=1, without={"hidden_act": "silu"}),
    "llama-gelu-tanh": llama(hidden_act="gelu_pytorch_tanh", num_hidden_layers=1,
                             without={"hidden_act": "gelu"}),
    "smollm2-shape": llama(hidden_size=72, num_attention_heads=9, num_key_value_heads=3,
                           tie_word_embeddings=True, num_hidden_layers=1,
                           rope_parameters=rope("default", 100000.0)),
    "qwen2": ("Qwen2Config", {**WIDTH, "rope_parameters": rope("default", 1000000.0)},
              {"rope_parameters": PLAIN_ROPE}),
    "qwen2-window": ("Qwen2Config", {**WIDTH, "use_sliding_window": True, "sliding_window": 8,
                                     "max_window_layers": 1, "tie_word_embeddings": True,
                                     "rope_parameters": rope("default", 1000000.0)},
                     {"use_sliding_window": False}),
    "qwen3": ("Qwen3Config", {**WIDTH, "head_dim": 16,
                              "rope_parameters": rope("default", 1000000.0)},
              {"rope_parameters": PLAIN_ROPE}),
    "qwen2-yarn": ("Qwen2Config", {**WIDTH, "num_hidden_layers": 1, "rope_parameters": YARN},
                   {"rope_parameters": rope("default", 500.0)}),
    "qwen3-bias-tied": ("Qwen3Config", {**WIDTH, "head_dim": 12, "num_hidden_layers": 1, "attention_bias": True,
                                        "tie_word_embeddings": True}, None),
    "mistral-headdim": ("MistralConfig", {**WIDTH, "head_dim": 12, "num_hidden_layers": 1, "sliding_window": None,
                                          "rope_parameters": rope("default", 1000000.0)},
                        {"rope_parameters": PLAIN_ROPE}),
    "mistral": ("MistralConfig", {**WIDTH, "sliding_window": 8}, {"sliding_window": None}),
    "gemma2": ("Gemma2Config", {**GEMMA, "attn_logit_softcapping": 3.0,
                                "final_logit_softcapping": 2.0},
               {"attn_logit_softcapping": None}),
    "gemma3": ("Gemma3TextConfig", {**GEMMA, "layer_types": ["sliding_attention", "full_attention",
                                                            "sliding_attention"],
                                    "rope_parameters": {
                                        "sliding_attention": PLAIN_ROPE,
                                        "full_attention": rope("linear", 1000.0, factor=8.0)}},
               {"rope_parameters": {"sliding_attention": PLAIN_ROPE, "full_attention": PLAIN_ROPE}}),
    "gpt2": gpt2({"activation_function": "gelu"}),
    "gpt2-untied": gpt2({"scale_attn_by_inverse_layer_idx": False}, tie_word_embeddings=False,
                        scale_attn_by_inverse_layer_idx=True, n_inner=None),
}

# What transformers 4 wrote for the same models: fields to drop and to add.
VERSION_4 = {
    "llama3-rope": (["rope_parameters"],
                    {"rope_theta": 100.0,
                     "rope_scaling": {"factor": 8.0, "high_freq_factor": 4.0, "low_freq_factor": 1.0,
                                      "original_max_position_embeddings": 32,
                                      "rope_type": "llama3"}}),
    "gemma3": (["rope_parameters", "layer_types", "_sliding_window_pattern",
                "use_bidirectional_attention"],
               {"cache_implementation": "hybrid", "rope_theta": 1000.0, "rope_local_base_freq": 10000.0, "sliding_window_pattern": 2,
                "rope_scaling": {"factor": 8.0, "rope_type": "linear"}}),
    "qwen2-window": (["rope_parameters", "layer_types"],
                     {"rope_theta": 1000000.0, "rope_scaling": None}),
}
