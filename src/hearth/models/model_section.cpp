#include "hearth/models/model_section.h"

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/models/family.h"
#include "hearth/nn/mlp.h"

namespace hearth::models {
namespace {

std::vector<std::string> startable() {
  std::vector<std::string> names;
  for (const Family& f : families()) {
    if (f.start != nullptr) names.emplace_back(f.model_type);
  }
  return names;
}

int up_to_multiple(int n, int of) {
  return (n + of - 1) / of * of;
}

}  // namespace

void ModelSection::fields(FieldVisitor& v) {
  v("from", from, "model to start from: folder, .gguf or run directory",
    may_change());
  v("adapter", adapter, "adapter folder to go on with", may_change());
  v("arch", arch, "architecture of a new model", one_of(startable()));
  v("dim", dim, "width", between(8, 65536));
  v("layers", layers, "blocks", between(1, 1024));
  v("heads", heads, "attention heads", between(1, 1024));
  v("kv_heads", kv_heads, "key-value heads; 0: as heads", between(0, 1024));
  v("head_dim", head_dim, "size of a head; 0: dim / heads", between(0, 256));
  v("ffn", ffn, "inner width of the MLP; 0: by width", between(0, 1 << 20));
  v("vocab", vocab, "rows of the embedding; 0: the tokenizer's",
    between(0, 1 << 24));
  v("max_length", max_length, "positions; 0: the training length",
    between(0, 1 << 24));
  v("tie", tie, "the head shares the embedding");
  v("rope_theta", rope_theta, "base of the rotary positions", positive());
  v("norm_eps", norm_eps, "epsilon of the norms", positive());
  v("gate", gate, "partial gate of the MLP");
}

DecoderConfig new_model(const ModelSection& s, int vocabulary, int length) {
  DecoderConfig c;
  c.family = s.gate && !s.gate->is_plain_glu() ? "hearth" : s.arch;
  c.vocab = s.vocab > 0 ? s.vocab : up_to_multiple(vocabulary, 64);
  if (c.vocab < vocabulary) {
    throw UsageError(
        fmt::format(
            "[models.new_model] model.vocab must hold the tokenizer's {} "
            "tokens, got {}",
            vocabulary, c.vocab
        )
    );
  }
  c.dim = s.dim, c.layers = s.layers, c.heads = s.heads;
  c.kv_heads = s.kv_heads > 0 ? s.kv_heads : s.heads;
  if (s.head_dim == 0 && s.dim % s.heads != 0) {
    throw UsageError(
        fmt::format(
            "[models.new_model] model.heads must divide model.dim unless "
            "head_dim is given, got {} and {}",
            s.heads, s.dim
        )
    );
  }
  c.head_dim = s.head_dim > 0 ? s.head_dim : s.dim / s.heads;
  c.max_length = s.max_length > 0 ? s.max_length : length;
  c.tie = s.tie;
  c.norm.eps = static_cast<float>(s.norm_eps);
  c.windows.assign(static_cast<std::size_t>(c.layers), 0);
  const Family* family = family_named(s.arch);
  if (family == nullptr || family->start == nullptr) {
    throw UsageError("[models.new_model] there is no new " + s.arch);
  }
  family->start(c);
  const int wide = c.gated ? 8 * c.dim / 3 : 4 * c.dim;
  c.ffn = s.ffn > 0 ? s.ffn : up_to_multiple(wide, 32);
  if (s.gate) {
    if (!c.gated) {
      throw UsageError("[models.new_model] model.gate is not for " + s.arch);
    }
    c.gate = s.gate;
    if (s.gate->equal_parameters) c.ffn = nn::equal_parameter_width(c.ffn);
    if (s.gate->is_plain_glu()) {
      c.act = s.gate->form().act;
      c.gate.reset();
    }
  }
  if (!c.gpt2_layout) {
    c.rope = ops::RopeConfig{.dims = c.head_dim, .base = s.rope_theta};
  }
  c.check();
  return c;
}

}  // namespace hearth::models
