#pragma once
// The memory a training run will hold at its peak, part by part, from the
// sizes alone: nothing is loaded or allocated to know it.
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hearth/io/model_source.h"
#include "hearth/kernels/quant/format.h"
#include "hearth/kernels/table.h"
#include "hearth/models/decoder_config.h"
#include "hearth/nn/lora.h"
#include "hearth/optim/optim_config.h"

namespace hearth::train {

struct Recipe;

// Formats by the parameters' names.
using QuantizedMatrices = std::map<std::string, kernels::QuantFormat>;

// Whose graph a pass is.
struct PlannedObjective {
  std::shared_ptr<const Recipe> recipe;  // null: a plain language model's
  std::shared_ptr<const io::ModelSource> base;  // what the run starts from
  std::string key;  // the same for recipes whose passes are the same
};

struct MemoryQuestion {
  models::DecoderConfig model;
  PlannedObjective objective;
  // Of a frozen base: matrices that are held quantised and not packed.
  QuantizedMatrices quantized;
  bool bf16 = true;
  std::optional<nn::LoraConfig> lora;
  optim::OptimConfig optim;
  // The model it starts from is read all the time: a second one, with
  // matrices that its file has quantised.
  bool start_model = false;
  QuantizedMatrices start_quantized;

  std::int64_t step_tokens = 0;
  std::vector<std::int64_t> lengths;  // of rows
  // Of a micro-batch, of the longest length; shorter ones are as many more as
  // have as many tokens.
  std::int64_t rows = 1;
  std::int64_t row_group = 1;      // that stay together
  std::int64_t eval_interval = 1;  // micro-batches evaluated together
  std::vector<bool> checkpointed;  // one a layer; empty: none
  bool packed_all = true;          // else the head alone
  std::int64_t prefetch = 4;       // batches made ahead

  int threads = 1;
  const kernels::Table* table = nullptr;
};

struct MemoryTable {
  std::size_t weights = 0;      // float32 masters, or the frozen rows
  std::size_t packed = 0;       // as products read them, both orders
  std::size_t gradients = 0;    // and the sums of several micro-batches
  std::size_t optimizer = 0;    // state, and what an update needs for itself
  std::size_t activations = 0;  // kept for the backward pass, and passing
  std::size_t scratch = 0;      // the most that an op asks for
  std::size_t data = 0;         // batches made ahead
  std::size_t process = 0;      // code, tokenizer, threads, graphs

  std::size_t total() const;
  // Names for people, in the order of the table.
  std::vector<std::pair<std::string, std::size_t>> rows() const;
};

// What the process holds, freed buffers that are kept for reuse included.
MemoryTable predict_memory(const MemoryQuestion& question);
// Whether that is within the budget; quick where the weights alone are not.
bool fits(const MemoryQuestion& question, std::size_t budget);
// What the byte budget counts at the peak: without kept buffers and process.
std::size_t predict_charged(const MemoryQuestion& question);

// Parameters in all, and those that are trained.
struct ParameterCount {
  std::size_t all = 0, trained = 0;
  std::size_t gathered = 0;  // of all, those no product reads
};
ParameterCount count_parameters(
    const models::DecoderConfig& model,
    const std::optional<nn::LoraConfig>& lora
);

}  // namespace hearth::train
