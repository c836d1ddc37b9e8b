#include "hearth/models/family.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/base/spelling.h"
#include "hearth/models/write_config.h"

namespace hearth::models {
// A family's own file has these.
DecoderConfig parse_mistral(ConfigKeys& keys);
DecoderConfig parse_qwen2(ConfigKeys& keys);
void start_qwen2(DecoderConfig& config);
DecoderConfig parse_qwen3(ConfigKeys& keys);
void start_qwen3(DecoderConfig& config);
DecoderConfig parse_gemma2(ConfigKeys& keys);
DecoderConfig parse_gemma3(ConfigKeys& keys);
DecoderConfig parse_gpt2(ConfigKeys& keys);
void start_gpt2(DecoderConfig& config);
DecoderConfig parse_hearth(ConfigKeys& keys);

namespace {

// It is what a new model is without traits.
void start_llama(DecoderConfig&) {}

constexpr std::array<Family, 9> kFamilies{{
    {"llama", "LlamaForCausalLM", parse_llama, start_llama, write_with_biases},
    {"mistral", "MistralForCausalLM", parse_mistral},
    {"qwen2", "Qwen2ForCausalLM", parse_qwen2, start_qwen2, write_common},
    {"qwen3", "Qwen3ForCausalLM", parse_qwen3, start_qwen3, write_common},
    {"gemma2", "Gemma2ForCausalLM", parse_gemma2},
    {"gemma3_text", "Gemma3ForCausalLM", parse_gemma3},
    {"gemma3", "Gemma3ForCausalLM", parse_gemma3},
    {"gpt2", "GPT2LMHeadModel", parse_gpt2, start_gpt2, write_gpt2},
    {"hearth", "HearthForCausalLM", parse_hearth, nullptr, write_with_biases},
}};

}  // namespace

std::span<const Family> families() {
  return kFamilies;
}

const Family* family_named(std::string_view model_type) {
  const auto at = std::ranges::find(kFamilies, model_type, &Family::model_type);
  return at == kFamilies.end() ? nullptr : &*at;
}

DecoderConfig parse_config(const Json& config, const std::string& file) {
  ConfigKeys keys(config, file);
  const std::string type = keys.word("model_type", "");
  const Family* at = family_named(type);
  if (at == nullptr) {
    std::string known;
    for (const Family& f : kFamilies) {
      known += fmt::format("{}{}", known.empty() ? "" : ", ", f.model_type);
    }
    keys.refuse(
        "model_type", fmt::format("must be one of {}; got '{}'", known, type)
    );
  }
  const auto architectures = keys.words("architectures");
  if (!architectures.empty() && architectures[0] != at->architecture) {
    keys.refuse(
        "architectures", fmt::format(
                             "must be a causal language model, {}; got {}",
                             at->architecture, architectures[0]
                         )
    );
  }
  keys.check_common();
  DecoderConfig parsed = at->parse(keys);
  parsed.family = type;
  keys.finish();
  try {
    parsed.check();
  } catch (const UsageError& e) {
    throw FormatError::at(file, 0, e.what());
  }
  return parsed;
}

DecoderConfig parse_common(ConfigKeys& k) {
  DecoderConfig c;
  c.vocab = k.size("vocab_size");
  c.dim = k.size("hidden_size");
  c.layers = k.size("num_hidden_layers");
  c.heads = k.size("num_attention_heads");
  c.kv_heads = k.size("num_key_value_heads", c.heads);
  if (!k.has("head_dim") && c.dim % c.heads != 0) {
    k.refuse(
        "num_attention_heads",
        fmt::format("must divide hidden_size {}, got {}", c.dim, c.heads)
    );
  }
  c.head_dim = k.size("head_dim", std::max(1, c.dim / c.heads));
  c.ffn = k.size("intermediate_size");
  c.max_length = k.size("max_position_embeddings", 2048);
  c.norm.eps = k.epsilon("rms_norm_eps", 1e-6);
  c.tie = k.boolean("tie_word_embeddings", false);
  c.windows.assign(static_cast<std::size_t>(c.layers), 0);
  c.act = parse_activation(k, "hidden_act", "silu");
  return c;
}

ops::Activation parse_activation(
    ConfigKeys& keys,
    std::string_view key,
    const char* fallback
) {
  try {
    return ops::activation_named(keys.word(key, fallback));
  } catch (const FormatError&) {
    throw;
  } catch (const UsageError& e) {
    // The place in our code says nothing about the file.
    keys.refuse(key, plain_message(e.what()));
  }
}

std::vector<int> parse_windows(
    ConfigKeys& keys,
    int layers,
    int window,
    bool (*is_local)(int layer, int pattern),
    int pattern
) {
  const auto types = keys.words("layer_types");
  std::vector<int> windows(static_cast<std::size_t>(layers), 0);
  if (!types.empty() && types.size() != windows.size()) {
    keys.refuse(
        "layer_types",
        fmt::format("must name {} layers, got {}", layers, types.size())
    );
  }
  for (std::size_t i = 0; i < windows.size(); ++i) {
    bool local = is_local(static_cast<int>(i), pattern);
    if (!types.empty()) {
      local = types[i] == "sliding_attention";
      if (!local && types[i] != "full_attention") {
        keys.refuse(
            "layer_types",
            "must be sliding_attention or full_attention, got " + types[i]
        );
      }
    }
    if (local && window < 1) {
      keys.refuse("sliding_window", "must be given for sliding_attention");
    }
    windows[i] = local ? window : 0;
  }
  return windows;
}

}  // namespace hearth::models
