// What updates or measures evaluated arrays in place, outside the graph.
#include <vector>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/kernels/arithmetic.h"
#include "hearth/ops/arithmetic/gpu_in_place.h"
#include "hearth/ops/arithmetic/op.h"

namespace hearth::ops {
namespace {

constexpr std::size_t kGrain = 32768;

void require_evaluated(const char* where, const mx::array& a) {
  if (!a.is_available() || !a.flags().row_contiguous) {
    throw UsageError(
        fmt::format(
            "[{}] arrays must be evaluated and row-major, got one that is not",
            where
        )
    );
  }
}

mx::Stream cpu_stream() {
  return mx::default_stream(mx::Device::cpu);
}

}  // namespace

void accumulate(mx::array& into, const mx::array& x, float factor) {
  require_evaluated("ops.accumulate", into);
  require_evaluated("ops.accumulate", x);
  if (into.dtype() != mx::float32 || into.size() != x.size()) {
    throw UsageError(
        fmt::format(
            "[ops.accumulate] the sum must be float32 of {} elements, got {}",
            x.size(), into.size()
        )
    );
  }
  if (!on_cpu({})) return accumulate_gpu(into, x, factor);
  float* y = into.data<float>();
  with_dtype("ops.accumulate", x.dtype(), [&](auto* t) {
    using T = std::remove_pointer_t<decltype(t)>;
    const T* from = x.data<T>();
    run_on_stream("accumulate", cpu_stream(), [&](const Execution& e) {
      e.pool.parallel_for(
          x.size(), kGrain, [&](std::size_t begin, std::size_t end) {
            e.kernels.arithmetic->accumulate(t)(
                static_cast<long>(end - begin), factor, from + begin, y + begin
            );
          }
      );
    });
  });
}

double sum_squares(std::span<const mx::array> arrays) {
  for (const auto& a : arrays) {
    require_evaluated("ops.sum_squares", a);
    with_dtype("ops.sum_squares", a.dtype(), [](auto*) {});
  }
  if (!on_cpu({})) return sum_squares_gpu(arrays);
  double total = 0;
  run_on_stream("sum_squares", cpu_stream(), [&](const Execution& e) {
    for (const auto& a : arrays) {
      // Shares of one size, whoever takes them, added in order.
      std::vector<double> parts((a.size() + kGrain - 1) / kGrain);
      with_dtype("ops.sum_squares", a.dtype(), [&](auto* t) {
        const auto* x = a.data<std::remove_pointer_t<decltype(t)>>();
        const auto f = e.kernels.arithmetic->sum_squares(t);
        e.pool.parallel_for(
            parts.size(), 1, [&](std::size_t begin, std::size_t end) {
              for (std::size_t i = begin; i < end; ++i) {
                const std::size_t at = i * kGrain;
                const auto n = std::min(kGrain, a.size() - at);
                parts[i] = f(static_cast<long>(n), x + at);
              }
            }
        );
      });
      for (const double p : parts) total += p;
    }
  });
  return total;
}

void scale_in_place(std::span<mx::array> arrays, float factor) {
  for (const auto& a : arrays) require_evaluated("ops.scale_in_place", a);
  if (!on_cpu({})) return scale_in_place_gpu(arrays, factor);
  run_on_stream("scale", cpu_stream(), [&](const Execution& e) {
    for (auto& a : arrays) {
      with_dtype("ops.scale_in_place", a.dtype(), [&](auto* t) {
        auto* x = a.data<std::remove_pointer_t<decltype(t)>>();
        e.pool.parallel_for(
            a.size(), kGrain, [&](std::size_t begin, std::size_t end) {
              e.kernels.arithmetic->scale(t)(
                  static_cast<long>(end - begin), factor, x + begin, x + begin
              );
            }
        );
      });
    }
  });
}

}  // namespace hearth::ops
