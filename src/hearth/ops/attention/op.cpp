#include "hearth/ops/attention/op.h"

#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hearth/base/error.h"
#include "hearth/ops/attention/cpu_driver.h"
#include "hearth/ops/attention/faces_impl.h"

namespace hearth::ops {
namespace {

void require(const char* where, bool holds, const char* what, auto&& got) {
  if (!holds)
    throw UsageError(fmt::format("[{}] {}, got {}", where, what, got));
}

std::string shape_text(const mx::array& a) {
  return fmt::format("[{}]", fmt::join(a.shape(), ", "));
}

void check_shapes(
    const char* where,
    const mx::array& q,
    const mx::array& k,
    const mx::array& v
) {
  for (const auto* a : {&q, &k, &v}) {
    require(
        where, a->ndim() == 4, "q, k and v must be [batch, tokens, heads, dim]",
        shape_text(*a)
    );
    require(
        where,
        mx::issubdtype(a->dtype(), mx::floating) && a->dtype() == q.dtype(),
        "q, k and v must have one floating dtype", "another"
    );
  }
  require(
      where, k.shape() == v.shape(), "k and v must have one shape",
      shape_text(k) + " and " + shape_text(v)
  );
  require(
      where, k.shape(0) == q.shape(0) && k.shape(3) == q.shape(3),
      "q and k must agree in batch and dim",
      shape_text(q) + " and " + shape_text(k)
  );
}

mx::array segment_ids(
    const char* where,
    const mx::array& ids,
    const mx::array& of,
    mx::StreamOrDevice s
) {
  require(
      where, ids.shape() == mx::Shape{of.shape(0), of.shape(1)},
      "segment ids must be [batch, tokens]", shape_text(ids)
  );
  require(
      where, mx::issubdtype(ids.dtype(), mx::integer),
      "segment ids must be integers", "another dtype"
  );
  return dense(mx::astype(ids, mx::int32, s), s);
}

}  // namespace

ResolvedOptions resolve(
    const char* where,
    const mx::array& q,
    const mx::array& k,
    const mx::array& v,
    const AttentionOptions& options,
    mx::StreamOrDevice s
) {
  check_shapes(where, q, k, v);
  const int queries = q.shape(1), keys = k.shape(1);
  ResolvedOptions o{
      options.scale != 0 ? options.scale
                         : 1.0f / std::sqrt(static_cast<float>(q.shape(3))),
      options.softcap,
      options.causal,
      options.window,
      options.query_offset.value_or(keys - queries),
      {},
      {},
      queries == keys && options.query_offset.value_or(0) == 0 &&
          !options.key_segments
  };
  kernels::AttentionArgs a;
  a.batch = q.shape(0), a.heads = q.shape(2), a.kv_heads = k.shape(2);
  a.queries = queries, a.keys = keys, a.dim = q.shape(3);
  a.scale = o.scale, a.softcap = o.softcap, a.window = o.window;
  check_attention(where, a);
  require(
      where, options.query_segments || !options.key_segments,
      "key segments must come with query segments", "only the former"
  );
  if (!options.query_segments) return o;
  require(
      where, options.key_segments || queries == keys,
      "key segments must be given where queries and keys differ in number",
      "none"
  );
  o.query_segments = segment_ids(where, *options.query_segments, q, s);
  o.key_segments = options.key_segments
                       ? segment_ids(where, *options.key_segments, k, s)
                       : *o.query_segments;
  return o;
}

mx::array attention(
    const mx::array& q,
    const mx::array& k,
    const mx::array& v,
    const AttentionOptions& options,
    mx::StreamOrDevice s
) {
  const Face face = face_of(s, q.dtype());
  if (face == Face::reference) return attention_reference(q, k, v, options, s);
  const auto o = resolve("ops.attention", q, k, v, options, s);
  if (face == Face::gpu) return attention_gpu(q, k, v, o, s);
  with_dtype("ops.attention", q.dtype(), [](auto*) {});
  return attention_cpu({q, k, v}, q.shape(), o, 0, 0, s);
}

mx::array attention_qkv(
    const mx::array& qkv,
    int heads,
    int kv_heads,
    const AttentionOptions& options,
    mx::StreamOrDevice s
) {
  require(
      "ops.attention_qkv",
      qkv.ndim() == 4 && heads > 0 && kv_heads > 0 &&
          qkv.shape(2) == heads + 2 * kv_heads,
      "qkv must be [batch, tokens, heads + 2 kv_heads, dim]", shape_text(qkv)
  );
  const Face face = face_of(s, qkv.dtype());
  if (face == Face::gpu) {
    const auto part = split_heads_gpu(qkv, heads, kv_heads, s);
    return attention(part[0], part[1], part[2], options, s);
  }
  const auto part = mx::split(qkv, mx::Shape{heads, heads + kv_heads}, 2, s);
  if (face == Face::reference) {
    return attention_reference(part[0], part[1], part[2], options, s);
  }
  const auto o =
      resolve("ops.attention_qkv", part[0], part[1], part[2], options, s);
  with_dtype("ops.attention_qkv", qkv.dtype(), [](auto*) {});
  return attention_cpu({qkv}, part[0].shape(), o, heads, kv_heads, s);
}

}  // namespace hearth::ops
