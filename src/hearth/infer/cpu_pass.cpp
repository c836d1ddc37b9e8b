#include "hearth/infer/cpu_pass.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "hearth/ops/rope_frequencies.h"

namespace hearth::infer {
namespace {

using kernels::Bf16;

AlignedBuffer buffer(long rows, long width, long element) {
  return AlignedBuffer(
      MemoryZone::named("infer scratch"),
      static_cast<std::size_t>(rows * width * element)
  );
}

// Rows [begin, end) of y = norm(x) w; y is bf16 or float.
void norm_rows(
    const kernels::Table& table,
    const models::DecoderConfig& c,
    const float* x,
    const float* weight,
    bool bf16,
    void* y,
    long begin,
    long end
) {
  if (bf16) {
    table.norm->mixed.rms.forward(
        {.dim = c.dim,
         .eps = c.norm.eps,
         .x = x,
         .r = nullptr,
         .w = weight,
         .b = nullptr,
         .h = nullptr,
         .y = static_cast<Bf16*>(y)},
        begin, end
    );
    return;
  }
  table.norm->f32.rms.forward(
      {.dim = c.dim,
       .eps = c.norm.eps,
       .x = x,
       .r = nullptr,
       .w = weight,
       .b = nullptr,
       .h = nullptr,
       .y = static_cast<float*>(y)},
      begin, end
  );
}

}  // namespace

CpuPass::CpuPass(
    const CpuModel& model,
    const ops::Execution& run,
    kernels::KvFormat format,
    int page_tokens,
    long rows,
    bool invariant
)
    : model_(model),
      run_(run),
      rows_(rows),
      dim_(model.config->dim),
      heads_(model.config->heads),
      kv_heads_(model.config->kv_heads),
      head_dim_(model.config->head_dim),
      ffn_(model.config->ffn),
      products_(model, run, rows, invariant),
      attention_(model, run, format, page_tokens, invariant) {
  const long element = model.bf16 ? 2 : 4;
  stream_ = buffer(rows, dim_, 4);
  normed_ = buffer(rows, dim_, element);
  qkv_ = buffer(rows, (heads_ + 2 * kv_heads_) * head_dim_, 4);
  mixed_ = buffer(rows, heads_ * head_dim_, element);
  gates_ = buffer(rows, 2 * ffn_, element);
  inner_ = buffer(rows, ffn_, element);
  head_rows_ = buffer(rows, dim_, 4);
}

void CpuPass::grow_turns(long positions) {
  if (positions <= turned_positions_) return;
  constexpr unsigned kLeast = 64;
  const auto rows =
      std::bit_ceil(std::max(static_cast<unsigned>(positions), kLeast));
  auto table = ops::rope_table(
      ops::rope_frequencies(*model_.config->rope), static_cast<int>(rows)
  );
  table.eval();
  turns_.assign(table.data<float>(), table.data<float>() + table.size());
  turned_positions_ = rows;
}

Range CpuPass::share(long n, int worker) const {
  return partition(static_cast<std::size_t>(n), 1, worker, run_.pool.size());
}

ProductInput CpuPass::input(
    const PassPlan& plan,
    const AlignedBuffer& rows,
    long width
) const {
  return {rows.data(), model_.bf16,  width, static_cast<long>(plan.ids.size()),
          plan.way,    plan.adapters};
}

void CpuPass::embed(const PassPlan& plan, long begin, long end) noexcept {
  const long vocab = model_.config->vocab;
  float* x = stream_.as<float>().data();
  const auto& kernels = *run_.kernels.embedding;
  if (model_.embedding_bf16) {
    kernels.bf16_f32.gather(
        vocab, dim_, plan.ids.data(),
        static_cast<const Bf16*>(model_.embedding), x, begin, end
    );
  } else {
    kernels.f32_f32.gather(
        vocab, dim_, plan.ids.data(),
        static_cast<const float*>(model_.embedding), x, begin, end
    );
  }
}

void CpuPass::norm(const float* weight, long begin, long end) noexcept {
  norm_rows(
      run_.kernels, *model_.config, stream_.as<float>().data(), weight,
      model_.bf16, normed_.data(), begin, end
  );
}

// Norms and turns of queries and keys; keys and values go to their pages.
void CpuPass::turn(
    const PassPlan& plan,
    std::size_t index,
    long begin,
    long end
) noexcept {
  const CpuLayer& l = model_.layers[index];
  const long width = (heads_ + 2 * kv_heads_) * head_dim_;
  float* rows = qkv_.as<float>().data();
  for (long r = begin; r < end; ++r) {
    float* q = rows + r * width;
    float* k = q + heads_ * head_dim_;
    const auto norm_heads = [&](float* x, long heads, const float* weight) {
      run_.kernels.norm->f32.rms.forward(
          {.dim = head_dim_,
           .eps = model_.config->norm.eps,
           .x = x,
           .r = nullptr,
           .w = weight,
           .b = nullptr,
           .h = nullptr,
           .y = x},
          0, heads
      );
    };
    if (l.q_norm != nullptr) norm_heads(q, heads_, l.q_norm);
    if (l.k_norm != nullptr) norm_heads(k, kv_heads_, l.k_norm);
  }
  const long half = model_.config->rope->dims / 2;
  run_.kernels.rope->f32.turn(
      {.heads = heads_ + kv_heads_,
       .head_dim = head_dim_,
       .half = half,
       .interleaved = false,
       .inverse = false,
       .x = rows,
       .y = rows,
       .table = turns_.data(),
       .table_rows = turned_positions_,
       .positions = positions_.data(),
       .token_stride = width,
       .head_stride = head_dim_},
      begin, end
  );
  for (const PassPart& part : plan.parts) {
    const long from = std::max(begin, part.row);
    const long to = std::min(end, part.row + part.count);
    for (long r = from; r < to; ++r) {
      float* q = rows + r * width;
      const float* k = q + heads_ * head_dim_;
      const float* v = k + kv_heads_ * head_dim_;
      for (long h = 0; h < kv_heads_; ++h) {
        run_.kernels.paged_attention->append(
            attention_.pages(part, index, h), part.first + r - part.row,
            k + h * head_dim_, v + h * head_dim_
        );
      }
      if (!attention_.few(part)) continue;
      const float scale = attention_.scale();
      for (long i = 0; i < heads_ * head_dim_; ++i) q[i] *= scale;
    }
  }
}

void CpuPass::mlp(
    int worker,
    const PassPlan& plan,
    const CpuLayer& l,
    SpinBarrier& barrier
) noexcept {
  const auto count = static_cast<long>(plan.ids.size());
  const Range own = share(count, worker);
  const auto begin = static_cast<long>(own.begin);
  const auto end = static_cast<long>(own.end);
  const std::array<const CpuMatrix*, 2> in{&l.gate, &l.up};
  const ProductInput x = input(plan, normed_, dim_);
  norm(l.mlp_norm, begin, end);
  products_.prepare(x, in, begin, end);
  barrier.wait();
  const long element = model_.bf16 ? 2 : 4;
  std::byte* gates = gates_.data();
  const std::array<ProductOutput, 2> to{
      ProductOutput{gates, 2 * ffn_, model_.bf16, false},
      ProductOutput{gates + ffn_ * element, 2 * ffn_, model_.bf16, false}
  };
  const auto part = products_.multiply(worker, x, in, to, true);
  const auto activate = [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    auto* g = reinterpret_cast<T*>(gates) + part.begin;
    const auto act = static_cast<kernels::Activation>(model_.config->act);
    run_.kernels.gate->of(act, type).forward(
        {.dim = part.end - part.begin,
         .gate = g,
         .gate_stride = 2 * ffn_,
         .value = g + ffn_,
         .value_stride = 2 * ffn_,
         .y = reinterpret_cast<T*>(inner_.data()) + part.begin,
         .y_stride = ffn_,
         .beta = 1,
         .alpha = nullptr,
         .tanh_value = false},
        part.row_begin, part.row_end
    );
  };
  if (part.end > part.begin) {
    if (model_.bf16) {
      activate(static_cast<Bf16*>(nullptr));
    } else {
      activate(static_cast<float*>(nullptr));
    }
  }
  barrier.wait();
  const std::array<const CpuMatrix*, 1> down{&l.down};
  const ProductInput h = input(plan, inner_, ffn_);
  if (l.down.quantized() && plan.way != QuantWay::wide) {
    products_.prepare(h, down, begin, end);
    barrier.wait();
  }
  const std::array<ProductOutput, 1> stream{
      ProductOutput{stream_.data(), dim_, false, true}
  };
  products_.multiply(worker, h, down, stream, false);
  barrier.wait();
}

void CpuPass::layer(
    int worker,
    const PassPlan& plan,
    std::size_t index,
    SpinBarrier& barrier
) noexcept {
  const CpuLayer& l = model_.layers[index];
  const auto count = static_cast<long>(plan.ids.size());
  const Range own = share(count, worker);
  const auto begin = static_cast<long>(own.begin);
  const auto end = static_cast<long>(own.end);
  const std::array<const CpuMatrix*, 3> in{&l.q, &l.k, &l.v};
  const ProductInput x = input(plan, normed_, dim_);
  norm(l.attention_norm, begin, end);
  products_.prepare(x, in, begin, end);
  barrier.wait();
  const long q = heads_ * head_dim_, kv = kv_heads_ * head_dim_;
  float* rows = qkv_.as<float>().data();
  const std::array<ProductOutput, 3> to{
      ProductOutput{rows, q + 2 * kv, false, false},
      ProductOutput{rows + q, q + 2 * kv, false, false},
      ProductOutput{rows + q + kv, q + 2 * kv, false, false}
  };
  products_.multiply(worker, x, in, to, false);
  barrier.wait();
  turn(plan, index, begin, end);
  barrier.wait();
  const AttentionRows attention{rows, q + 2 * kv, mixed_.data()};
  attention_.attend(
      worker, index, attention, barrier,
      attention_scratch_.data() +
          attention_.scratch_bytes() * static_cast<unsigned>(worker)
  );
  barrier.wait();
  const std::array<const CpuMatrix*, 1> out{&l.o};
  const ProductInput y = input(plan, mixed_, q);
  attention_.finish(attention, begin, end);
  products_.prepare(y, out, begin, end);
  barrier.wait();
  const std::array<ProductOutput, 1> stream{
      ProductOutput{stream_.data(), dim_, false, true}
  };
  products_.multiply(worker, y, out, stream, false);
  barrier.wait();
  mlp(worker, plan, l, barrier);
}

// Only the wanted rows, moved together.
void CpuPass::head(
    int worker,
    const PassPlan& plan,
    float* logits,
    SpinBarrier& barrier
) noexcept {
  const auto count = static_cast<long>(plan.wanted.size());
  const Range own = share(count, worker);
  const auto begin = static_cast<long>(own.begin);
  const auto end = static_cast<long>(own.end);
  float* rows = head_rows_.as<float>().data();
  const float* x = stream_.as<float>().data();
  for (long r = begin; r < end; ++r) {
    const long from = plan.wanted[static_cast<std::size_t>(r)];
    std::memcpy(
        rows + r * dim_, x + from * dim_,
        static_cast<std::size_t>(dim_) * sizeof(float)
    );
  }
  // A quantised head is asked in float32: what it rounds is then rounded once.
  const bool narrow =
      model_.bf16 && (!model_.head.quantized() || plan.way == QuantWay::wide);
  void* normed = narrow ? static_cast<void*>(normed_.data()) : rows;
  norm_rows(
      run_.kernels, *model_.config, rows, model_.final_norm, narrow, normed,
      begin, end
  );
  const ProductInput in{normed, narrow, dim_, count, plan.way, {}};
  const std::array<const CpuMatrix*, 1> matrix{&model_.head};
  products_.prepare(in, matrix, begin, end);
  barrier.wait();
  const std::array<ProductOutput, 1> to{
      ProductOutput{logits, model_.config->vocab, false, false}
  };
  products_.multiply(worker, in, matrix, to, false);
}

void CpuPass::run(const PassPlan& plan, float* logits) {
  positions_.clear();
  long longest = 0;
  for (const PassPart& part : plan.parts) {
    for (long i = 0; i < part.count; ++i) {
      positions_.push_back(static_cast<std::int32_t>(part.first + i));
    }
    longest = std::max(longest, part.first + part.count);
  }
  grow_turns(longest);
  attention_.plan(plan.parts);
  const std::size_t scratch =
      attention_.scratch_bytes() * static_cast<std::size_t>(run_.pool.size());
  if (attention_scratch_.size() < scratch) {
    attention_scratch_ = {};
    attention_scratch_ =
        AlignedBuffer(MemoryZone::named("infer scratch"), scratch);
  }
  SpinBarrier barrier(run_.pool.size());
  run_.pool.run([&](int worker) {
    const Range own = share(static_cast<long>(plan.ids.size()), worker);
    embed(plan, static_cast<long>(own.begin), static_cast<long>(own.end));
    barrier.wait();
    for (std::size_t i = 0; i < model_.layers.size(); ++i) {
      layer(worker, plan, i, barrier);
    }
    if (!plan.wanted.empty()) head(worker, plan, logits, barrier);
  });
}

}  // namespace hearth::infer
