#pragma once
// The groups of `hearth bench` and their cases.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hearth/bench/runner.h"
#include "hearth/hardware/peaks.h"
#include "hearth/ops/op.h"

namespace hearth::bench {

// What cases are built with: the machine's peaks where they were measured.
struct CaseContext {
  std::optional<hardware::Peaks> peaks;
  bool with_peers = false;
  // Which of PyTorch's variants a training step is held against, a regex.
  std::string peer_variants = "bf16-compile-tuned";
  std::uint64_t seed = 0;
  std::size_t last_cache_bytes = 0;
  // The models of the infer cases instead of those in .deps/bench; may be
  // empty.
  std::vector<std::string> models;
  // The files of the tokenizer cases instead of generated ones; may be empty.
  std::string tokenizer, text;

  // The processor's peak in the case's unit; 0 where it was not measured. Of
  // arithmetic, the best of the table in use and those plainer: HEARTH_ISA
  // bounds it.
  double gops(std::string_view dtype) const;
  double read_gb_s() const;
};

// What a model's rows ran on: this processor's instruction set, or "gpu".
std::string_view device_isa(mlx::core::StreamOrDevice s = {});

struct CaseGroup {
  std::string_view name, what;
  std::vector<BenchCase> (*cases)(const CaseContext& context);
};
std::vector<CaseGroup> case_groups();

std::vector<BenchCase> base_cases(const CaseContext& context);
// The ops, from the same table of cases that tests them.
std::vector<BenchCase> ops_cases(const CaseContext& context);
// Quantised products, kernels alone, weights rotated past the last cache.
std::vector<BenchCase> quant_cases(const CaseContext& context);
std::vector<BenchCase> train_cases(const CaseContext& context);
// Prompts and decoding of whole models; none where no model is there.
std::vector<BenchCase> infer_cases(const CaseContext& context);
// Whole models from disk, page cache and packed weights.
std::vector<BenchCase> load_cases(const CaseContext& context);
std::vector<BenchCase> dataset_cases(const CaseContext& context);
// Part of the group of datasets.
std::vector<BenchCase> tokenizer_cases(const CaseContext& context);

}  // namespace hearth::bench
