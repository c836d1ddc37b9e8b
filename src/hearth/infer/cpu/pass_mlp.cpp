// A block's second half: norm, products, activation, output.
#include <array>

#include "hearth/infer/cpu/pass.h"

namespace hearth::infer {

using io::Role;

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
           .value = l.matrix(Role::gate).empty() ? nullptr : gate + ffn_,
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
    std::size_t index
) noexcept {
  const CpuLayer& l = model_.layers[index];
  const Together in = gates(l);
  const ProductInput x = input(plan, normed_, dim_);
  w.look_ahead();
  norm(w, l.norm(Role::mlp_norm));
  products_.prepare(x, in.all(), w.begin, w.end);
  w.meet();
  const long element = model_.bf16 ? 2 : 4;
  std::byte* gates = gates_.data();
  const std::array<ProductOutput, 2> to{
      ProductOutput{gates, 2 * ffn_, model_.bf16, false},
      ProductOutput{gates + ffn_ * element, 2 * ffn_, model_.bf16, false}
  };
  const auto part = products_.multiply(w.index, x, in.all(), to, in.alike);
  expect(w, plan, single(l.matrix(Role::down)));
  if (model_.bf16) {
    activate<kernels::Bf16>(l, part);
  } else {
    activate<float>(l, part);
  }
  w.meet();
  const ProductInput h = input(plan, inner_, ffn_);
  if (l.matrix(Role::down).quantized() && plan.way != QuantWay::wide) {
    w.look_ahead();
    products_.prepare(h, single(l.matrix(Role::down)).all(), w.begin, w.end);
    w.meet();
  }
  leave_half(
      w, plan, h, l.matrix(Role::down), l.norm(Role::after_mlp_norm),
      opening(index + 1)
  );
  if (!l.norm(Role::after_mlp_norm)) return;
  join(w, l.norm(Role::after_mlp_norm));
  // The head reads rows to which other threads have added their part.
  w.meet();
}

}  // namespace hearth::infer
