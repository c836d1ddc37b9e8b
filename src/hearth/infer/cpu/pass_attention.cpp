// A block's first half: norm, projections, pages, attention, output.
#include <algorithm>
#include <array>

#include "hearth/infer/cpu/pass.h"
#include "hearth/infer/cpu/rows.h"

namespace hearth::infer {

using io::Role;

// Computes queries, keys and values, side by side in each row, with three
// products or with one.
void CpuPass::project(
    const Worker& w,
    const PassPlan& plan,
    const CpuLayer& l
) noexcept {
  const Together in = projections(l);
  const ProductInput x = input(plan, normed_, dim_);
  w.look_ahead();
  norm(w, l.norm(Role::attention_norm));
  products_.prepare(x, in.all(), w.begin, w.end);
  w.meet();
  const long q = heads_ * head_dim_, kv = kv_heads_ * head_dim_;
  const long width = qkv_width();
  float* rows = qkv_.as<float>().data();
  const std::array<ProductOutput, 3> to{
      ProductOutput{rows, width, false, false},
      ProductOutput{rows + q, width, false, false},
      ProductOutput{rows + q + kv, width, false, false}
  };
  products_.multiply(w.index, x, in.all(), to, in.alike);
  expect(w, plan, single(l.matrix(Role::attention_out)));
  w.meet();
}

void CpuPass::norm_heads(const Worker& w, const CpuLayer& l) noexcept {
  if (!l.norm(Role::query_norm)) return;
  const long width = qkv_width();
  for (long r = w.begin; r < w.end; ++r) {
    float* q = qkv_.as<float>().data() + r * width;
    float* k = q + heads_ * head_dim_;
    const auto& config = model_.config->norm;
    norm_rows(
        run_.kernels,
        {config, l.norm(Role::query_norm), head_dim_, q, q, false}, 0, heads_
    );
    norm_rows(
        run_.kernels, {config, l.norm(Role::key_norm), head_dim_, k, k, false},
        0, kv_heads_
    );
  }
}

void CpuPass::rotate_heads(const Worker& w, const CpuLayer& l) noexcept {
  if (l.rope < 0) return;
  rotary_[static_cast<std::size_t>(l.rope)].rotate(
      run_.kernels,
      {qkv_.as<float>().data(), heads_ + kv_heads_, head_dim_, qkv_width(),
       positions_.data()},
      w.begin, w.end
  );
}

// Stores keys and values to their pages, and scales the queries that read
// pages.
void CpuPass::append(
    const Worker& w,
    const PassPlan& plan,
    std::size_t index
) noexcept {
  const long width = qkv_width();
  const float scale = model_.layers[index].scale;
  for (const PassPart& part : plan.parts) {
    const long from = std::max(w.begin, part.row);
    const long to = std::min(w.end, part.row + part.count);
    for (long r = from; r < to; ++r) {
      float* q = qkv_.as<float>().data() + r * width;
      const float* k = q + heads_ * head_dim_;
      const float* v = k + kv_heads_ * head_dim_;
      for (long h = 0; h < kv_heads_; ++h) {
        run_.kernels.paged_attention->append(
            attention_.pages(part, index, h), part.first + r - part.row,
            k + h * head_dim_, v + h * head_dim_
        );
      }
      if (!attention_.few(part)) continue;
      for (long i = 0; i < heads_ * head_dim_; ++i) q[i] *= scale;
    }
  }
}

void CpuPass::attention(
    const Worker& w,
    const PassPlan& plan,
    std::size_t index
) noexcept {
  const CpuLayer& l = model_.layers[index];
  project(w, plan, l);
  w.look_ahead();
  norm_heads(w, l);
  rotate_heads(w, l);
  append(w, plan, index);
  w.meet();
  const AttentionRows rows{qkv_.as<float>().data(), qkv_width(), mixed_.data()};
  attention_.attend(
      w.index, index, rows, w.barrier,
      attention_scratch_.data() +
          attention_.scratch_bytes() * static_cast<unsigned>(w.index)
  );
  w.meet();
  const ProductInput y = input(plan, mixed_, heads_ * head_dim_);
  w.look_ahead();
  attention_.finish(rows, w.begin, w.end);
  products_.prepare(
      y, single(l.matrix(Role::attention_out)).all(), w.begin, w.end
  );
  w.meet();
  leave_half(
      w, plan, y, l.matrix(Role::attention_out),
      l.norm(Role::after_attention_norm), gates(l)
  );
  join(w, l.norm(Role::after_attention_norm));
}

}  // namespace hearth::infer
