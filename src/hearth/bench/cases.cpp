#include "hearth/bench/cases.h"

#include "hearth/base/thread_pool.h"

namespace hearth::bench {

double CaseContext::gops(std::string_view dtype, std::string_view isa) const {
  if (!peaks) return 0;
  return hardware::best_gops(*peaks, dtype, shared_pool().size(), isa);
}

double CaseContext::read_gb_s() const {
  if (!peaks) return 0;
  return hardware::bandwidth_gb_s(*peaks, "read", shared_pool().size());
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
