// A block's second half: norm, products, activation, output.
#include <array>

#include "hearth/infer/cpu_pass.h"

namespace hearth::infer {

template <class T>
void CpuPass::activate(
    const CpuLayer& l,
    const CpuProducts::Part& part
) noexcept {
  if (part.end <= part.begin) return;
  T* const gate = reinterpret_cast<T*>(gates_.data()) + part.begin;
  run_.kernels.gate->of(model_.act, gate)
      .forward(
          {.dim = part.end - part.begin,
           .gate = gate,
           .gate_stride = 2 * ffn_,
           .value = l.up.empty() ? nullptr : gate + ffn_,
           .value_stride = 2 * ffn_,
           .y = reinterpret_cast<T*>(inner_.data()) + part.begin,
           .y_stride = ffn_,
           .beta = l.beta,
           .alpha = l.alpha ? &*l.alpha : nullptr,
           .tanh_value = model_.tanh_value},
          part.row_begin, part.row_end
      );
}

void CpuPass::mlp(
    const Worker& w,
    const PassPlan& plan,
    const CpuLayer& l
) noexcept {
  const std::array<const CpuMatrix*, 2> both{&l.gate, &l.up};
  const auto in = std::span(both).first(l.up.empty() ? 1 : 2);
  const ProductInput x = input(plan, normed_, dim_);
  norm(w, l.before_mlp);
  products_.prepare(x, in, w.begin, w.end);
  w.barrier.wait();
  const long element = model_.bf16 ? 2 : 4;
  std::byte* gates = gates_.data();
  const std::array<ProductOutput, 2> to{
      ProductOutput{gates, 2 * ffn_, model_.bf16, false},
      ProductOutput{gates + ffn_ * element, 2 * ffn_, model_.bf16, false}
  };
  const auto part = products_.multiply(w.index, x, in, to, true);
  if (model_.bf16) {
    activate<kernels::Bf16>(l, part);
  } else {
    activate<float>(l, part);
  }
  w.barrier.wait();
  const std::array<const CpuMatrix*, 1> down{&l.down};
  const ProductInput h = input(plan, inner_, ffn_);
  if (l.down.quantized() && plan.way != QuantWay::wide) {
    products_.prepare(h, down, w.begin, w.end);
    w.barrier.wait();
  }
  leave_half(w, h, l.down, l.after_mlp);
  if (!l.after_mlp) return;
  join(w, l.after_mlp);
  // The head takes rows that others have joined.
  w.barrier.wait();
}

}  // namespace hearth::infer
