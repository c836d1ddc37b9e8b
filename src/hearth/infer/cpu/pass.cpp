#include "hearth/infer/cpu/pass.h"

#include <algorithm>
#include <array>

#include "hearth/infer/cpu/rows.h"

namespace hearth::infer {

using io::Role;
namespace {

AlignedBuffer buffer(long rows, long width, long element) {
  return AlignedBuffer(
      MemoryZone::named("infer scratch"),
      static_cast<std::size_t>(rows * width * element)
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
  for (const ops::RopeConfig* rope : model.ropes) rotary_.emplace_back(*rope);
  const long element = model.bf16 ? 2 : 4;
  stream_ = buffer(rows, dim_, 4);
  aside_ = buffer(rows, dim_, 4);
  normed_ = buffer(rows, dim_, element);
  qkv_ = buffer(rows, qkv_width(), 4);
  mixed_ = buffer(rows, heads_ * head_dim_, element);
  gates_ = buffer(rows, 2 * ffn_, element);
  inner_ = buffer(rows, ffn_, element);
}

void CpuPass::Worker::meet() const noexcept {
  // A few lines at a time, so that the barrier is checked often.
  constexpr int kLines = 4;
  barrier.wait([this] { return ahead.more(kLines); });
}

CpuPass::Worker CpuPass::sharing(const Worker& w, long rows) const {
  const Range own =
      partition(static_cast<std::size_t>(rows), 1, w.index, run_.pool.size());
  return {
      w.index, static_cast<long>(own.begin), static_cast<long>(own.end),
      w.barrier, w.ahead
  };
}

CpuPass::Together CpuPass::projections(const CpuLayer& l) {
  const CpuMatrix& joint = l.matrix(Role::joint);
  if (!joint.empty()) return single(joint);
  return {
      {&l.matrix(Role::query), &l.matrix(Role::key), &l.matrix(Role::value)},
      3,
      false
  };
}
CpuPass::Together CpuPass::gates(const CpuLayer& l) {
  const CpuMatrix &gate = l.matrix(Role::gate), &up = l.matrix(Role::up);
  if (gate.empty()) return {{&up}, 1, true};
  return {{&gate, &up}, 2, true};
}
CpuPass::Together CpuPass::opening(std::size_t layer) const {
  return layer < model_.layers.size() ? projections(model_.layers[layer])
                                      : single(model_.head);
}

void CpuPass::expect(
    const Worker& w,
    const PassPlan& plan,
    const Together& next
) const noexcept {
  products_.note_next(
      w.index, std::ssize(plan.ids), next.all(), next.alike, w.ahead
  );
}

ProductInput CpuPass::input(
    const PassPlan& plan,
    const AlignedBuffer& rows,
    long width
) const {
  return {rows.data(), model_.bf16,  width, static_cast<long>(plan.ids.size()),
          plan.way,    plan.adapters};
}

void CpuPass::embed(const Worker& w, const PassPlan& plan) noexcept {
  float* x = stream_.as<float>().data();
  gather_rows(
      run_.kernels, model_.embedding, dim_, plan.ids.data(), x, w.begin, w.end
  );
  const long at = w.begin * dim_, n = (w.end - w.begin) * dim_;
  const auto& arithmetic = *run_.kernels.arithmetic;
  if (model_.embedding_scale != 1) {
    arithmetic.scale_f32(n, model_.embedding_scale, x + at, x + at);
  }
  if (model_.positions.rows == nullptr) return;
  float* learnt = aside_.as<float>().data();
  gather_rows(
      run_.kernels, model_.positions, dim_, positions_.data(), learnt, w.begin,
      w.end
  );
  arithmetic.add_f32(n, x + at, learnt + at, x + at);
}

void CpuPass::norm(const Worker& w, const CpuNorm& norm) noexcept {
  norm_rows(
      run_.kernels,
      {model_.config->norm, norm, dim_, stream_.as<float>().data(),
       normed_.data(), model_.bf16},
      w.begin, w.end
  );
}

void CpuPass::leave_half(
    const Worker& w,
    const PassPlan& plan,
    const ProductInput& in,
    const CpuMatrix& matrix,
    const CpuNorm& after,
    const Together& next
) noexcept {
  const std::array<const CpuMatrix*, 1> last{&matrix};
  const std::array<ProductOutput, 1> to{
      after ? ProductOutput{aside_.data(), dim_, false, false}
            : ProductOutput{stream_.data(), dim_, false, true}
  };
  products_.multiply(w.index, in, last, to, false);
  expect(w, plan, next);
  w.meet();
}

void CpuPass::join(const Worker& w, const CpuNorm& after) noexcept {
  if (!after) return;
  float* branch = aside_.as<float>().data();
  norm_rows(
      run_.kernels, {model_.config->norm, after, dim_, branch, branch, false},
      w.begin, w.end
  );
  const long at = w.begin * dim_, n = (w.end - w.begin) * dim_;
  float* x = stream_.as<float>().data() + at;
  run_.kernels.arithmetic->add_f32(n, x, branch + at, x);
}

void CpuPass::make_ready(const PassPlan& plan) {
  positions_.clear();
  long longest = 0;
  for (const PassPart& part : plan.parts) {
    for (long i = 0; i < part.count; ++i) {
      positions_.push_back(static_cast<std::int32_t>(part.first + i));
    }
    longest = std::max(longest, part.first + part.count);
  }
  for (RotaryTable& table : rotary_) table.grow(longest);
  attention_.plan(plan.parts);
  const std::size_t scratch =
      attention_.scratch_bytes() * static_cast<std::size_t>(run_.pool.size());
  if (attention_scratch_.size() < scratch) {
    attention_scratch_ = {};
    attention_scratch_ =
        AlignedBuffer(MemoryZone::named("infer scratch"), scratch);
  }
}

void CpuPass::run(const PassPlan& plan, float* logits) {
  make_ready(plan);
  SpinBarrier barrier(run_.pool.size());
  run_.pool.run([&](int index) {
    ReadAhead ahead;
    const Worker any{index, 0, 0, barrier, ahead};
    const Worker w = sharing(any, std::ssize(plan.ids));
    expect(w, plan, opening(0));
    embed(w, plan);
    w.meet();
    for (std::size_t i = 0; i < model_.layers.size(); ++i) {
      attention(w, plan, i);
      mlp(w, plan, i);
    }
    show_states(sharing(any, std::ssize(plan.states)), plan);
    if (plan.wanted.empty()) return;
    head(sharing(any, std::ssize(plan.wanted)), plan, logits);
  });
}

}  // namespace hearth::infer
