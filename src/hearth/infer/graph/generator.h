#pragma once
// Text from a model, token by token: the prompt in chunks, then one step a
// token until something ends it.
#include <functional>
#include <string>

#include "hearth/infer/generated.h"
#include "hearth/infer/graph/sequence.h"
#include "hearth/text/tokenizer/tokenizer.h"

namespace hearth::infer {

struct GenerateOptions {
  int max_tokens = 256;
  SamplerOptions sampling;
  std::vector<std::int32_t> stop_ids;
  std::vector<std::string> stop;  // needs a tokenizer
  KvType kv = KvType::automatic;
  QuantProducts products = QuantProducts::automatic;
  int prefill_chunk = 512;
  // Log probabilities of each token and of this many alternatives.
  std::optional<int> log_probs;
  // Tokens of the prompt that the text continues, so that its first word keeps
  // its space; an answer in a chat begins afresh.
  bool continues_prompt = false;
};

struct Generation {
  std::string text;
  std::vector<GeneratedToken> tokens;  // the stop id among them
  Finish finish = Finish::length;
  int prompt_tokens = 0;
  double first_step_ms = 0;  // the prompt, to the first token
  double decode_ms = 0;      // all later tokens
  double tokens_per_s = 0;   // of later tokens; 0 where there are none
  std::size_t kv_bytes = 0;

  std::vector<std::int32_t> ids() const;
};

// Returns whether to go on.
using OnToken = std::function<bool(const GeneratedToken&)>;

// tokenizer may be null: then there is no text. Throws UsageError for options
// or a prompt that cannot be, Error when the model gives no numbers.
Generation generate(
    const models::LoadedModel& model,
    const std::shared_ptr<const text::Tokenizer>& tokenizer,
    std::span<const std::int32_t> prompt,
    const GenerateOptions& options,
    const OnToken& on_token = {}
);

}  // namespace hearth::infer
