#pragma once
// From the `data` section of a recipe to what a trainer opens. One call makes
// whatever is missing and finds again whatever an earlier call made:
//
//   1. data.synth           the generated JSONL, in the user's cache folder
//   2. data.tokenizer.train a tokenizer trained on the training records
//   3. the token cache      shards of both splits, in one folder
//
// Each is named by its content, so a second call with the same data and
// settings writes nothing and returns the same paths, and a call that was
// killed goes on where it was.
//
//   PreparedData d = prepare_data(config.data, {});
//   auto cache = std::make_shared<TokenCache>(d.cache);
//   Loader loader(cache, loader_config(config.data, d.sources, 16384, seed));
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "hearth/data/cache/cache.h"
#include "hearth/data/data_config.h"

namespace hearth::data {

// How far one of the steps is, for a progress line.
struct DataStep {
  std::string title;  // "tokenising"
  std::string unit;   // "B", "records"
  std::uint64_t done = 0, total = 0;
  std::string note;
};

struct PrepareDataOptions {
  int threads = 0;     // 0: one a usable core
  bool force = false;  // data.cache made from something else is replaced
  // Called from the calling thread, now and then; a new title is a new step.
  std::function<void(const DataStep&)> progress;
  // Asked often; true makes the call throw Interrupted. Work done stays.
  std::function<bool()> stop;
};

struct PreparedData {
  // The token cache's folder: TokenCache opens it, sets(Split::kTrain) and
  // sets(Split::kValid) are its splits, one set a source.
  std::string cache;
  // The path for Tokenizer::load(): the recipe's own or, when the tokenizer was
  // trained, `cache`, which then holds a copy of it.
  std::string tokenizer;
  bool tokenizer_trained = false;
  // Files, synthetic ones included, as loader_config wants them.
  std::vector<DataSource> sources;
  // The tokenizer and template that made the cache, loaded.
  std::shared_ptr<const ExampleEncoder> encoder;
  PrepareResult result;

  bool has_valid() const { return result.report.valid_documents > 0; }
};

// Throws UsageError for a section that cannot be followed, FormatError for
// broken files, Interrupted when asked to stop.
PreparedData prepare_data(
    const DataConfig& config,
    const PrepareDataOptions& options
);

// The files beside or in `tokenizer` that a model folder needs to be used with
// it: tokenizer, its config, special tokens, chat template. Those that exist.
std::vector<std::string> tokenizer_files(const std::string& tokenizer);

}  // namespace hearth::data
