#include "hearth/io/gguf_config.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/io/gguf_names.h"
#include "hearth/io/gguf_rope.h"
#include "hearth/io/message_impl.h"

namespace hearth::io {
namespace {

// Keys that begin with the architecture's name and are read here.
constexpr std::string_view kRead[] = {
    "context_length",
    "embedding_length",
    "block_count",
    "feed_forward_length",
    "vocab_size",
    "attention.head_count",
    "attention.head_count_kv",
    "attention.key_length",
    "attention.value_length",
    "attention.layer_norm_epsilon",
    "attention.layer_norm_rms_epsilon",
    "attention.sliding_window",
    "attention.sliding_window_pattern",
    "attn_logit_softcapping",
    "final_logit_softcapping",
    "rope.dimension_count",
    "rope.freq_base",
    "rope.freq_base_swa",
    "rope.scale_linear",
    "rope.scaling.type",
    "rope.scaling.factor",
    "rope.scaling.original_context_length",
    "rope.scaling.yarn_attn_factor",
    "rope.scaling.yarn_beta_fast",
    "rope.scaling.yarn_beta_slow",
    // Keys whose value changes nothing in the computation.
    "rope.scaling.finetuned",
    "tensor_data_layout",
};

// The value that a single-precision number was written as: 1e-05 rather than
// 9.999999747378752e-06.
double tidy(double value) {
  return std::stod(fmt::format("{}", static_cast<float>(value)));
}

class ConfigMaker {
 public:
  explicit ConfigMaker(const GgufFile& file)
      : file_(file),
        metadata_(file.metadata()),
        architecture_(metadata_.text("general.architecture")) {}

  Json make() {
    const GgufArchitecture& family = find_family();
    refuse_unknown_keys();
    config_["architectures"] = Json::array({family.class_name});
    config_["model_type"] = family.model_type;
    vocabulary();
    if (architecture_ == "gpt2") {
      gpt2();
    } else {
      sizes();
      rope();
      if (is_gemma()) gemma();
      if (architecture_ == "llama") llama();
      if (architecture_.starts_with("qwen")) qwen();
    }
    tokens();
    return std::move(config_);
  }

 private:
  [[noreturn]] void fail(std::string_view what) const {
    throw FormatError::at(metadata_.name(), 0, what);
  }
  std::string key(std::string_view name) const {
    return fmt::format("{}.{}", architecture_, name);
  }
  bool has(std::string_view name) const {
    return metadata_.contains(key(name));
  }
  std::int64_t size(std::string_view name, std::int64_t fallback = 0) const {
    const std::int64_t value = metadata_.integer(key(name), fallback);
    if (value < 1 || value > INT32_MAX) {
      fail(
          has(name) ? fmt::format("{} must be a size, got {}", key(name), value)
                    : fmt::format("there is no {}", key(name))
      );
    }
    return value;
  }
  double number(std::string_view name, double fallback) const {
    const double value = metadata_.number(key(name), fallback);
    if (!std::isfinite(value)) fail(key(name) + " must be finite");
    return tidy(value);
  }
  const GgufTensor* tensor(std::string_view name) const {
    for (const GgufTensor& t : file_.tensors()) {
      if (t.name == name) return &t;
    }
    return nullptr;
  }
  bool is_gemma() const { return architecture_.starts_with("gemma"); }

  const GgufArchitecture& find_family() const {
    if (const auto* known = gguf_architecture(architecture_)) return *known;
    std::string names;
    for (const GgufArchitecture& a : gguf_architectures()) {
      names += fmt::format("{}{}", names.empty() ? "" : ", ", a.name);
    }
    fail(
        fmt::format(
            "architecture {} is not known; {} are", in_quotes(architecture_),
            names
        )
    );
  }

  void refuse_unknown_keys() const {
    const std::string prefix = architecture_ + ".";
    for (const auto& [name, value] : metadata_.all()) {
      if (!name.starts_with(prefix)) continue;
      const std::string_view rest =
          std::string_view(name).substr(prefix.size());
      if (std::find(std::begin(kRead), std::end(kRead), rest) !=
          std::end(kRead)) {
        continue;
      }
      // Written with the value that means "none", or the only one there is.
      const auto* number = std::get_if<std::int64_t>(&value);
      const auto* real = std::get_if<double>(&value);
      const auto* flag = std::get_if<bool>(&value);
      const bool none = (number && *number == 0) || (real && *real == 0) ||
                        (flag && *flag == (rest == "attention.causal"));
      if (!none)
        fail(in_quotes(name) + " is set, and what it asks for is not known");
    }
    if (metadata_.integer("split.count", 1) > 1) {
      fail("is one part of a split model: merge the parts into one file first");
    }
  }

  void vocabulary() {
    const GgufTensor* embedding = tensor("token_embd.weight");
    if (embedding == nullptr) {
      fail("has no token_embd.weight: it is a vocabulary, not a model");
    }
    config_["vocab_size"] = embedding->shape.front();
    config_["tie_word_embeddings"] = tensor("output.weight") == nullptr;
  }

  void gpt2() {
    config_["n_embd"] = size("embedding_length");
    config_["n_layer"] = size("block_count");
    config_["n_head"] = size("attention.head_count");
    config_["n_positions"] = size("context_length");
    config_["n_ctx"] = size("context_length");
    config_["n_inner"] = size("feed_forward_length");
    config_["layer_norm_epsilon"] =
        number("attention.layer_norm_epsilon", 1e-5);
    config_["activation_function"] = "gelu_new";
  }

  void sizes() {
    const std::int64_t heads = size("attention.head_count");
    const std::int64_t hidden = size("embedding_length");
    config_["hidden_size"] = hidden;
    config_["intermediate_size"] = size("feed_forward_length");
    config_["num_hidden_layers"] = size("block_count");
    config_["num_attention_heads"] = heads;
    config_["num_key_value_heads"] = size("attention.head_count_kv", heads);
    head_dim_ = size("attention.key_length", hidden / heads);
    config_["head_dim"] = head_dim_;
    for (const char* other :
         {"attention.value_length", "rope.dimension_count"}) {
      if (size(other, head_dim_) != head_dim_) {
        fail(
            fmt::format(
                "{} must be the head's size {}, got {}", key(other), head_dim_,
                size(other)
            )
        );
      }
    }
    config_["max_position_embeddings"] = size("context_length");
    config_["rms_norm_eps"] = number("attention.layer_norm_rms_epsilon", 1e-6);
    if (is_gemma()) {
      config_["hidden_activation"] = "gelu_pytorch_tanh";
    } else {
      config_["hidden_act"] = "silu";
    }
  }

  void rope() {
    const double theta =
        number("rope.freq_base", architecture_ == "gemma3" ? 1e6 : 1e4);
    config_["rope_theta"] = theta;
    const double linear = number("rope.scale_linear", 1);
    const std::string type = metadata_.text(
        key("rope.scaling.type"), linear == 1 ? "none" : "linear"
    );
    Json scaling;
    if (type == "linear") {
      const double factor = number("rope.scaling.factor", linear);
      if (factor != 1) scaling = {{"rope_type", "linear"}, {"factor", factor}};
    } else if (type == "yarn") {
      scaling = yarn();
    } else if (type != "none") {
      fail(fmt::format("rope scaling {} is not known", in_quotes(type)));
    }
    if (const GgufTensor* factors = tensor("rope_freqs.weight")) {
      if (!scaling.is_null())
        fail("has rope_freqs.weight and rope scaling both");
      scaling = llama3(*factors, theta);
    }
    if (!scaling.is_null()) config_["rope_scaling"] = std::move(scaling);
  }

  Json yarn() const {
    Json out = {
        {"rope_type", "yarn"},
        {"factor", number("rope.scaling.factor", 1)},
        {"original_max_position_embeddings",
         size("rope.scaling.original_context_length")}
    };
    const std::pair<const char*, const char*> rest[] = {
        {"rope.scaling.yarn_attn_factor", "attention_factor"},
        {"rope.scaling.yarn_beta_fast", "beta_fast"},
        {"rope.scaling.yarn_beta_slow", "beta_slow"}
    };
    for (const auto& [from, to] : rest) {
      if (has(from)) out[to] = number(from, 0);
    }
    return out;
  }

  Json llama3(const GgufTensor& tensor, double theta) const {
    std::vector<float> factors(tensor.bytes / sizeof(float));
    const bool fits =
        !factors.empty() && tensor.type == TensorType::f32 &&
        static_cast<std::int64_t>(factors.size()) * 2 == head_dim_;
    if (fits) {
      std::memcpy(
          factors.data(), file_.bytes(tensor).data(),
          factors.size() * sizeof(float)
      );
    }
    const bool ones = std::all_of(factors.begin(), factors.end(), [](float f) {
      return f == 1;
    });
    if (fits && ones) return {};
    const auto rope = fits ? llama3_rope(factors, theta) : std::nullopt;
    if (!rope) fail("rope_freqs.weight does not follow Llama 3's rope scaling");
    return {
        {"rope_type", "llama3"},
        {"factor", rope->factor},
        {"low_freq_factor", rope->low_freq_factor},
        {"high_freq_factor", rope->high_freq_factor},
        {"original_max_position_embeddings",
         static_cast<std::int64_t>(rope->original_context)}
    };
  }

  void llama() {
    config_["attention_bias"] = tensor("blk.0.attn_q.bias") != nullptr;
    config_["mlp_bias"] = tensor("blk.0.ffn_gate.bias") != nullptr;
    if (!has("attention.sliding_window")) return;
    const std::int64_t window =
        metadata_.integer(key("attention.sliding_window"), 0);
    if (window <= 0) return;
    config_["architectures"] = Json::array({"MistralForCausalLM"});
    config_["model_type"] = "mistral";
    config_["sliding_window"] = window;
  }

  void qwen() {
    if (architecture_ == "qwen3") {
      config_["attention_bias"] = tensor("blk.0.attn_q.bias") != nullptr;
    }
    if (metadata_.integer(key("attention.sliding_window"), 0) > 0) {
      fail(key("attention.sliding_window") + " is not known for this family");
    }
    config_["use_sliding_window"] = false;
  }

  // The scale of attention is not in the file. Other readers derive it from the
  // model's size, because the largest of each family divides by another number.
  void gemma() {
    const bool three = architecture_ == "gemma3";
    const bool largest = size("block_count") == (three ? 62 : 46);
    config_["query_pre_attn_scalar"] =
        largest ? size("embedding_length") / size("attention.head_count")
                : head_dim_;
    const std::pair<const char*, double> caps[] = {
        {"attn_logit_softcapping", three ? 0 : 50},
        {"final_logit_softcapping", three ? 0 : 30}
    };
    for (const auto& [name, fallback] : caps) {
      const double value = number(name, fallback);
      config_[name] = value > 0 ? Json(value) : Json(nullptr);
    }
    if (three)
      config_["rope_local_base_freq"] = number("rope.freq_base_swa", 1e4);
    windows(three ? 6 : 2, three ? 0 : 4096);
  }

  void windows(std::int64_t pattern, std::int64_t fallback) {
    const std::int64_t window =
        metadata_.integer(key("attention.sliding_window"), fallback);
    const std::int64_t layers = size("block_count");
    const auto* given = metadata_.find(key("attention.sliding_window_pattern"));
    const auto* listed =
        given ? std::get_if<std::vector<std::int64_t>>(given) : nullptr;
    if (given && !listed) pattern = size("attention.sliding_window_pattern");
    if (layers > 4096) fail(key("block_count") + " is not possible");
    Json types = Json::array();
    for (std::int64_t i = 0; i < layers; ++i) {
      const bool slides =
          window > 0 &&
          (listed ? i < static_cast<std::int64_t>(listed->size()) &&
                        (*listed)[static_cast<std::size_t>(i)] != 0
                  : (i + 1) % pattern != 0);
      types.push_back(slides ? "sliding_attention" : "full_attention");
    }
    config_["layer_types"] = std::move(types);
    config_["sliding_window"] = window > 0 ? Json(window) : Json(nullptr);
  }

  void tokens() {
    const Json ids = gguf_generation_config(metadata_);
    for (const auto& [name, id] : ids.items()) config_[name] = id;
  }

  const GgufFile& file_;
  const GgufMetadata& metadata_;
  std::string architecture_;
  Json config_ = Json::object();
  std::int64_t head_dim_ = 0;
};

}  // namespace

Json gguf_config(const GgufFile& file) {
  return ConfigMaker(file).make();
}

Json gguf_generation_config(const GgufMetadata& metadata) {
  Json out = Json::object();
  const auto id = [&](const char* name) {
    return metadata.integer(
        fmt::format("tokenizer.ggml.{}_token_id", name), -1
    );
  };
  if (id("bos") >= 0) out["bos_token_id"] = id("bos");
  Json ends = Json::array();
  for (const char* name : {"eos", "eot", "eom"}) {
    const std::int64_t value = id(name);
    if (value >= 0 &&
        std::find(ends.begin(), ends.end(), value) == ends.end()) {
      ends.push_back(value);
    }
  }
  if (ends.size() == 1) out["eos_token_id"] = ends[0];
  if (ends.size() > 1) out["eos_token_id"] = ends;
  if (id("padding") >= 0) out["pad_token_id"] = id("padding");
  return out;
}

}  // namespace hearth::io
