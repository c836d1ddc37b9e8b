#include "hearth/io/model_facts.h"

#include <initializer_list>

#include <fmt/format.h>

#include "hearth/base/error.h"

namespace hearth::io {
namespace {

class Facts {
 public:
  Facts(const Json& config, const std::string& name)
      : config_(config), name_(name) {}

  // The first of these keys that is there and not null.
  const Json* find(std::initializer_list<const char*> keys) const {
    if (!config_.is_object()) return nullptr;
    for (const char* key : keys) {
      const auto it = config_.find(key);
      if (it != config_.end() && !it->is_null()) return &*it;
    }
    return nullptr;
  }
  std::int64_t size(std::initializer_list<const char*> keys) const {
    const Json* value = find(keys);
    if (value == nullptr) return 0;
    const bool ok = value->is_number_integer() && *value >= 0 &&
                    *value <= std::int64_t{INT32_MAX};
    if (!ok) fail(fmt::format("{} must be a size", *keys.begin()));
    return value->get<std::int64_t>();
  }
  std::string text(std::initializer_list<const char*> keys) const {
    const Json* value = find(keys);
    if (value == nullptr) return {};
    if (!value->is_string())
      fail(fmt::format("{} must be text", *keys.begin()));
    return value->get<std::string>();
  }
  bool flag(const char* key, bool fallback) const {
    const Json* value = find({key});
    if (value == nullptr) return fallback;
    if (!value->is_boolean())
      fail(fmt::format("{} must be true or false", key));
    return value->get<bool>();
  }
  double number(const char* key) const {
    const Json* value = find({key});
    return value != nullptr && value->is_number() ? value->get<double>() : 0;
  }
  [[noreturn]] void fail(std::string_view what) const {
    throw FormatError::at(name_, 0, what);
  }

 private:
  const Json& config_;
  const std::string& name_;
};

void read_rope(const Facts& facts, const std::string& name, ModelFacts& out) {
  out.rope_theta = facts.number("rope_theta");
  const Json* rope = facts.find({"rope_parameters", "rope_scaling"});
  if (rope == nullptr || !rope->is_object()) return;
  // A set per kind of layer: the one of the layers that see everything.
  const auto full = rope->find("full_attention");
  const Facts inner(full != rope->end() ? *full : *rope, name);
  const std::string type = inner.text({"rope_type", "type"});
  if (type != "default") out.rope_scaling = type;
  if (out.rope_theta == 0) out.rope_theta = inner.number("rope_theta");
}

}  // namespace

std::uint64_t ModelFacts::kv_bytes_per_token(
    std::uint64_t element_bytes
) const {
  return 2 * static_cast<std::uint64_t>(layers) *
         static_cast<std::uint64_t>(kv_heads) *
         static_cast<std::uint64_t>(head_dim) * element_bytes;
}

ModelFacts read_model_facts(const Json& config, const std::string& name) {
  const Facts top(config, name);
  if (!config.is_object()) top.fail("the config must be a JSON object");
  ModelFacts out;
  if (const Json* list = top.find({"architectures"})) {
    const bool ok =
        list->is_array() && !list->empty() && (*list)[0].is_string();
    if (!ok) top.fail("architectures must be a list of names");
    out.architecture = (*list)[0].get<std::string>();
  }
  out.model_type = top.text({"model_type"});
  // A multimodal model keeps its text part below this key.
  const Json* inner = top.find({"text_config"});
  const Facts facts(inner != nullptr ? *inner : config, name);
  out.dtype = top.text({"dtype", "torch_dtype"});
  if (out.dtype.empty()) out.dtype = facts.text({"dtype", "torch_dtype"});
  if (out.dtype.starts_with("torch.")) out.dtype.erase(0, 6);
  out.layers = facts.size({"num_hidden_layers", "n_layer"});
  out.hidden = facts.size({"hidden_size", "n_embd"});
  out.ffn = facts.size({"intermediate_size", "n_inner"});
  out.heads = facts.size({"num_attention_heads", "n_head"});
  out.kv_heads = facts.size({"num_key_value_heads"});
  if (out.kv_heads == 0) out.kv_heads = out.heads;
  out.head_dim = facts.size({"head_dim"});
  if (out.head_dim == 0 && out.heads > 0) out.head_dim = out.hidden / out.heads;
  if (out.ffn == 0 && out.model_type == "gpt2") out.ffn = 4 * out.hidden;
  out.vocab = facts.size({"vocab_size"});
  out.context = facts.size({"max_position_embeddings", "n_positions", "n_ctx"});
  out.sliding_window = facts.size({"sliding_window"});
  out.tied = facts.flag("tie_word_embeddings", out.model_type == "gpt2");
  read_rope(facts, name, out);
  if (const Json* quant = top.find({"quantization"}); quant != nullptr) {
    const Facts q(*quant, name);
    out.quant_bits = q.size({"bits"});
    out.quant_group = q.size({"group_size"});
  }
  return out;
}

}  // namespace hearth::io
