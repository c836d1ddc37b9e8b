#pragma once
// The runner that suits a model and a device.
#include <memory>
#include <string>
#include <vector>

#include "hearth/infer/engine/kv_type.h"
#include "hearth/infer/engine/runner.h"
#include "hearth/models/load.h"

namespace hearth::infer {
namespace mx = mlx::core;

// How quantised weights are multiplied: by activations rounded to int8, or as
// they are. automatic does the prompt exactly, since its errors stay in the
// keys and values for good, and single steps in int8.
enum class QuantProducts : unsigned char { automatic, int8, exact };

struct RunnerOptions {
  KvType kv = KvType::automatic;
  QuantProducts products = QuantProducts::automatic;
  // Bytes that keys and values may take; the pool has as many pages as fit.
  // 0: room for eight whole contexts, or a quarter of the memory that is free
  // where that is less.
  std::size_t kv_budget_bytes = 0;
  int page_tokens = 32;
  // PEFT folders; Runner::open() takes their index.
  std::vector<std::string> adapters;
  // A row's logits depend on its own sequence alone: neither on other rows of
  // the step nor on how the sequence was cut into steps.
  bool batch_invariant = false;
  // Runs the decoder's graph even where there is something faster.
  bool graph = false;
};

// The model must outlive the runner. Call it on the thread that will use it.
// Throws UsageError for options that cannot be, FormatError for an adapter
// that does not fit.
std::unique_ptr<Runner> make_runner(
    const models::LoadedModel& model,
    const RunnerOptions& options = {}
);

}  // namespace hearth::infer
