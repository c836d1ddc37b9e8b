#pragma once
// What every optimiser step does: checks of its arrays, and the shares of a
// parameter among threads.
#include <algorithm>
#include <cmath>
#include <type_traits>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/ops/optimizer_step/op.h"

namespace hearth::ops {

inline void require_array(
    const char* where,
    const char* what,
    const mx::array& a,
    mx::Dtype dtype,
    std::size_t elements
) {
  if (a.dtype() == dtype && a.size() == elements && a.is_available() &&
      a.flags().row_contiguous) {
    return;
  }
  throw UsageError(
      fmt::format(
          "[ops.{}] {} must be an evaluated row-major array of {} elements of "
          "the "
          "right dtype, got {} elements",
          where, what, elements, a.size()
      )
  );
}

inline void require_parameter(const char* name, const Parameter& p) {
  const std::size_t n = p.weight.size();
  require_array(name, "the weight", p.weight, mx::float32, n);
  require_array(name, "the gradient", p.gradient, p.gradient.dtype(), n);
  if (p.copy) require_array(name, "the copy", *p.copy, mx::bfloat16, n);
  if (p.grain == 0 || p.grain % kernels::kStateBlock != 0) {
    throw UsageError(
        fmt::format(
            "[ops.{}] the grain must be a multiple of {}, got {}", name,
            kernels::kStateBlock, p.grain
        )
    );
  }
}

inline kernels::AdamWArgs adamw_arguments(const AdamW& h, long step) {
  const auto correction = [step](float beta) {
    return static_cast<float>(
        1 / (1 - std::pow(double{beta}, static_cast<double>(step)))
    );
  };
  return {
      h.lr,
      h.beta1,
      h.beta2,
      h.eps,
      h.decay,
      correction(h.beta1),
      correction(h.beta2)
  };
}

// Calls f(functions, args, begin, end) over shares of the parameter, then the
// parameter's own refresh. family(table).of(dtype) is where functions come
// from.
template <class Family, class F>
void step_over(const char* name, const Parameter& p, Family family, F f) {
  require_parameter(name, p);
  const std::size_t n = p.weight.size();
  mx::array weight = p.weight;
  kernels::Bf16* copy = nullptr;
  if (p.copy) copy = mx::array(*p.copy).data<kernels::Bf16>();
  with_dtype(name, p.gradient.dtype(), [&](auto* t) {
    using G = std::remove_pointer_t<decltype(t)>;
    const kernels::StepArgs<G> args{
        p.gradient.data<G>(), p.gradient_scale, weight.data<float>(), copy
    };
    const auto stream = mx::default_stream(mx::Device::cpu);
    run_on_stream(name, stream, [&](const Execution& e) {
      const auto& functions = family(e.kernels).of(t);
      e.pool.parallel_for(n, p.grain, [&](std::size_t begin, std::size_t end) {
        // In pieces that a second-level cache holds, so that refresh reads
        // what was just written.
        for (std::size_t i = begin; i < end; i += p.grain) {
          const std::size_t stop = std::min(end, i + p.grain);
          f(functions, args, static_cast<long>(i), static_cast<long>(stop));
          if (p.refresh) p.refresh(e, i, stop);
        }
      });
    });
  });
}

template <class F>
void step_over(const char* name, const Parameter& p, F f) {
  const auto optim = [](const kernels::Table& t) -> const auto& {
    return *t.optim;
  };
  step_over(name, p, optim, f);
}

}  // namespace hearth::ops
