#pragma once
// A tokenizer of the data's own: `data.tokenizer: {train: {...}}` of a recipe.
// Learns from the training records alone, never from what is held out.
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "hearth/base/config.h"
#include "hearth/data/cache/cache.h"
#include "hearth/data/read/dataset_encode.h"
#include "hearth/text/tokenizer/bpe_trainer.h"

namespace hearth::data {

struct TokenizerTraining {
  std::int64_t vocab = 4096;
  std::int64_t min_frequency = 2;
  std::vector<std::string> special = {"<|endoftext|>"};
  std::string eos;      // one of special; empty: the first
  std::string pattern;  // empty: GPT-2's

  void fields(FieldVisitor& v);
};

struct TrainingWatch {
  // Called now and then with stored bytes done and in all.
  std::function<void(std::uint64_t, std::uint64_t)> progress;
  // Asked often; true makes the training throw Interrupted.
  std::function<bool()> stop;
};

// Counts the words of the training records of one source: those that prepare
// would put in the training split, up to settings.limit. Chats are counted as
// the renderer writes them, or without one by their contents. A line that
// cannot be read is passed over, or fatal, as the settings say. Returns where
// the first one is, and what is wrong with it; empty when all were read.
std::string add_training_texts(
    text::BpeTrainer& trainer,
    const DataSource& source,
    const CacheSettings& settings,
    const ChatRenderer* chat,
    const std::vector<std::string>& special,
    const TrainingWatch& watch
);

struct TrainedTokenizer {
  std::string folder;   // tokenizer.json and tokenizer_config.json
  bool reused = false;  // it was there already
};

// Trains on the sources that are not held out, into a folder named by a hash
// of the data and settings under the user's cache folder; when that is there
// nothing is read but the data. template_file, where it is not empty, becomes
// the folder's chat_template.jinja. The result depends on data and settings
// alone, not on the number of threads.
TrainedTokenizer train_tokenizer(
    const TokenizerTraining& training,
    const std::vector<DataSource>& sources,
    const CacheSettings& settings,
    const ChatRenderer* chat,
    const std::string& template_file,
    const TrainingWatch& watch
);

// The tokenizer_config.json of a trained tokenizer: its end-of-text token.
std::string tokenizer_config_text(const std::string& eos);

}  // namespace hearth::data
