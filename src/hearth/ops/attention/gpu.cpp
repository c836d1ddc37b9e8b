// Attention as a GPU runs it: MLX's fused kernel wherever one of its own masks
// says who sees whom, and otherwise with as little of a mask as will do.
#include <mlx/backend/cuda/cuda.h>

#include "hearth/ops/attention/gpu_document_codes_impl.h"
#include "hearth/ops/attention/gpu_ways_impl.h"

namespace hearth::ops {
namespace {

// Whether the fused kernel runs with `dim` values a head and keeps its scores
// in float32: what a code adds to a score would drown the score in bfloat16, as
// MLX's own graph of attention has it, which a CPU runs and Metal where a
// gradient is wanted. CUDA's kernel (cuDNN's) takes heads of up to 128 values.
bool float32_scores(const mx::array& q, int dim, mx::StreamOrDevice s) {
  return mx::to_stream(s).device == mx::Device::gpu && mx::cu::is_available() &&
         mx::size_of(q.dtype()) == 2 && dim <= 128 && dim % 8 == 0;
}

// Each document's code beside its queries and keys (gpu_document_codes_impl.h):
// half of a mask's time where it was measured.
mx::array coded(
    const AttentionTensors& t,
    const ResolvedOptions& o,
    mx::StreamOrDevice s
) {
  const auto code = mx::expand_dims(
      document_codes(*o.query_segments, o.scale, t.q.dtype(), s), 1, s
  );
  const auto with_code = [&](const mx::array& x) {
    auto shape = x.shape();
    shape[3] = code.shape(3);
    return mx::concatenate({x, mx::broadcast_to(code, shape, s)}, 3, s);
  };
  return fused_attention(
      {with_code(t.q), with_code(t.k), t.v}, o.scale, "causal", {}, s
  );
}

// One mask of booleans. Every layer asks for the same one: a compiled step
// makes it once.
mx::array masked(
    const AttentionTensors& t,
    const ResolvedOptions& o,
    mx::StreamOrDevice s
) {
  const auto sight = sight_of(t.queries(), t.keys(), o, s);
  const char* mode = sight.mask ? "array" : "";
  return cleared(fused_attention(t, o.scale, mode, sight.mask, s), sight, s);
}

}  // namespace

mx::array fused_attention(
    const AttentionTensors& t,
    float scale,
    const char* mode,
    const std::optional<mx::array>& mask,
    mx::StreamOrDevice s
) {
  const bool force = false;
  return mx::fast::scaled_dot_product_attention(
      t.q, t.k, t.v, scale, mode, mask, {}, force, s
  );
}

AttentionWay attention_way(
    const AttentionTensors& t,
    const ResolvedOptions& o,
    mx::StreamOrDevice s
) {
  // Their scores cannot be had from a fused kernel.
  if (o.softcap > 0) return AttentionWay::capped;
  // MLX's causal mode ends with the last query at the last key.
  const bool at_the_end =
      o.query_offset == t.keys() - t.queries() && t.queries() <= t.keys();
  if (o.window == 0 && !o.query_segments && (!o.causal || at_the_end)) {
    return AttentionWay::fused;
  }
  if (o.self && o.causal && o.window > 0 && t.keys() > 2 * band_of(o.window)) {
    return AttentionWay::banded;
  }
  if (o.self && o.causal && o.window == 0) {
    const auto code = document_code_width(t.keys());
    if (code && float32_scores(t.q, t.q.shape(3) + *code, s))
      return AttentionWay::coded;
  }
  return AttentionWay::masked;
}

mx::array attention_by(
    AttentionWay way,
    const AttentionTensors& t,
    const ResolvedOptions& o,
    mx::StreamOrDevice s
) {
  switch (way) {
    case AttentionWay::fused:
      return fused_attention(t, o.scale, o.causal ? "causal" : "", {}, s);
    case AttentionWay::coded:
      return coded(t, o, s);
    case AttentionWay::banded:
      return banded_attention(t, o, s);
    case AttentionWay::capped:
      return capped_attention(t, o, s);
    case AttentionWay::masked:
      break;
  }
  return masked(t, o, s);
}

mx::array attention_gpu(
    const mx::array& q,
    const mx::array& k,
    const mx::array& v,
    const ResolvedOptions& o,
    mx::StreamOrDevice s
) {
  const AttentionTensors t{
      heads_first(q, s), heads_first(k, s), heads_first(v, s)
  };
  return heads_first(attention_by(attention_way(t, o, s), t, o, s), s);
}

// By hand: the gradient of MLX's split pads each part to the whole and adds
// them up, and inside mx::compile it fails (0.32.4).
Arrays split_heads_gpu(
    const mx::array& qkv,
    int heads,
    int kv_heads,
    mx::StreamOrDevice s
) {
  const auto forward = [=](const Arrays& in) {
    const auto part = [&](int from, int to) {
      auto start = mx::Shape(4, 0), stop = in[0].shape();
      start[2] = from, stop[2] = to;
      return mx::slice(in[0], start, stop, s);
    };
    return Arrays{
        part(0, heads), part(heads, heads + kv_heads),
        part(heads + kv_heads, heads + 2 * kv_heads)
    };
  };
  const auto backward = [s](const Arrays&, const Arrays& ct, const Arrays&) {
    return Arrays{mx::concatenate(ct, 2, s)};
  };
  return mx::custom_vjp(forward, backward)({qkv});
}

}  // namespace hearth::ops
