// The last norm and the logits.
#include <array>
#include <cstring>

#include "hearth/infer/cpu/pass.h"
#include "hearth/infer/cpu/rows.h"

namespace hearth::infer {

// Hidden states are given in float32, whatever type the head computes in.
void CpuPass::show_states(const Worker& w, const PassPlan& plan) noexcept {
  const float* x = stream_.as<float>().data();
  for (long i = w.begin; i < w.end; ++i) {
    const auto [row, to] = plan.states[static_cast<std::size_t>(i)];
    std::memcpy(
        to, x + row * dim_, static_cast<std::size_t>(dim_) * sizeof(float)
    );
    norm_rows(
        run_.kernels,
        {model_.config->norm, model_.final_norm, dim_, to, to, false}, 0, 1
    );
  }
}

// The head runs on the rows whose logits are wanted, which are moved next to
// each other first.
void CpuPass::head(
    const Worker& w,
    const PassPlan& plan,
    float* logits
) noexcept {
  const auto& c = *model_.config;
  float* rows = aside_.as<float>().data();
  const float* x = stream_.as<float>().data();
  for (long r = w.begin; r < w.end; ++r) {
    const long from = plan.wanted[static_cast<std::size_t>(r)];
    std::memcpy(
        rows + r * dim_, x + from * dim_,
        static_cast<std::size_t>(dim_) * sizeof(float)
    );
  }
  // A quantised head takes float32 rows: it rounds them itself, and bf16 rows
  // would be rounded twice.
  const bool narrow =
      model_.bf16 && (!model_.head.quantized() || plan.way == QuantWay::wide);
  void* normed = narrow ? static_cast<void*>(normed_.data()) : rows;
  norm_rows(
      run_.kernels, {c.norm, model_.final_norm, dim_, rows, normed, narrow},
      w.begin, w.end
  );
  const ProductInput in{normed,   narrow, dim_, std::ssize(plan.wanted),
                        plan.way, {}};
  const std::array<const CpuMatrix*, 1> matrix{&model_.head};
  products_.prepare(in, matrix, w.begin, w.end);
  w.meet();
  const std::array<ProductOutput, 1> to{
      ProductOutput{logits, c.vocab, false, false}
  };
  const auto part = products_.multiply(w.index, in, matrix, to, true);
  if (c.final_softcap == 0) return;
  cap_rows(
      run_.kernels, c.final_softcap, {logits, c.vocab, part.begin, part.end},
      part.row_begin, part.row_end
  );
}

}  // namespace hearth::infer
