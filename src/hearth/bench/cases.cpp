#include "hearth/bench/cases.h"

#include <algorithm>

#include "hearth/base/thread_pool.h"
#include "hearth/kernels/table.h"

namespace hearth::bench {

double CaseContext::gops(std::string_view dtype) const {
  if (!peaks) return 0;
  const auto rate = [&](std::string_view type, std::string_view isa) {
    return hardware::best_gops(*peaks, type, shared_pool().size(), isa);
  };
  double best = 0;
  for (const kernels::Table* table : kernels::usable_tables()) {
    best = std::max(best, rate(dtype, table->isa));
    // On machines where it is faster, bf16 products are computed after widening
    // to float32.
    if (dtype == "bf16") best = std::max(best, rate("fp32", table->isa));
    if (table == &kernels::best()) break;
  }
  return best;
}

double CaseContext::read_gb_s() const {
  if (!peaks) return 0;
  return hardware::bandwidth_gb_s(*peaks, "read", shared_pool().size());
}

std::string_view device_isa(mlx::core::StreamOrDevice s) {
  return ops::on_cpu(s) ? std::string_view(kernels::best().isa) : "gpu";
}

std::vector<CaseGroup> case_groups() {
  return {
      {"base", "thread pool, memory, random numbers", base_cases},
      {"ops", "every differentiable op, forward and gradient", ops_cases},
      {"quant", "products with quantised weights", quant_cases},
      {"train", "whole training steps", train_cases},
      {"infer", "prompts and decoding of whole models", infer_cases},
      {"load", "models from disk, page cache and packed weights", load_cases},
      {"data", "tokenizers, reading records, making batches", dataset_cases},
  };
}

}  // namespace hearth::bench
