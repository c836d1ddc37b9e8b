#include "hearth/data/prepared_data.h"

#include <filesystem>

#include <fmt/format.h>

#include "hearth/base/atomic_file.h"
#include "hearth/base/error.h"
#include "hearth/base/units.h"
#include "hearth/data/read/dataset_tokenizer.h"
#include "hearth/data/read/tokenizer_training.h"
#include "hearth/io/hf_folder_writer.h"

namespace hearth::data {
namespace {

namespace fs = std::filesystem;

class Preparation {
 public:
  Preparation(const DataConfig& config, const PrepareDataOptions& options)
      : config_(config), options_(options) {}

  PreparedData run() {
    const CacheSettings settings = cache_settings(config_);
    const auto training = tokenizer_training(config_);
    if (!training) out_.tokenizer = tokenizer_path(config_);
    find_sources();
    if (training) train(*training, settings);
    out_.encoder =
        std::make_shared<const ExampleEncoder>(make_encoder(config_));
    tokenise(settings);
    if (training) keep_tokenizer();
    return std::move(out_);
  }

 private:
  DataConfig config_;  // with what was made filled in
  const PrepareDataOptions& options_;
  PreparedData out_;

  void tell(
      const char* title,
      const char* unit,
      std::uint64_t done,
      std::uint64_t total,
      std::string note = {}
  ) const {
    if (!options_.progress) return;
    options_.progress({title, unit, done, total, std::move(note)});
  }

  void find_sources() {
    std::string generated;
    if (config_.synth) {
      const auto progress = [this](auto done, auto total) {
        tell("generating", "records", done, total);
      };
      generated = synth_file(*config_.synth, {progress, options_.stop});
    }
    out_.sources = data_sources(config_, generated);
  }

  void train(const TokenizerTraining& training, const CacheSettings& settings) {
    const auto progress = [this](auto done, auto total) {
      tell("training the tokenizer", "B", done, total);
    };
    const std::string template_file = template_path(config_);
    std::shared_ptr<const ChatRenderer> chat;
    if (!template_file.empty()) chat = load_chat_renderer(template_file);
    const auto made = train_tokenizer(
        training, out_.sources, settings, chat.get(), template_file,
        {progress, options_.stop}
    );
    out_.tokenizer_trained = true;
    config_.tokenizer = YamlNode();
    config_.tokenizer.kind = YamlNode::Kind::kScalar;
    config_.tokenizer.scalar = made.folder;
  }

  void tokenise(const CacheSettings& settings) {
    PrepareOptions options;
    options.folder = config_.cache;
    options.threads = options_.threads;
    options.force = options_.force;
    options.stop = options_.stop;
    options.progress = [this](auto done, auto total, auto tokens) {
      const auto count = format_count(static_cast<double>(tokens));
      tell("tokenising", "B", done, total, count + " tokens");
    };
    out_.result = prepare_cache(out_.sources, settings, *out_.encoder, options);
    out_.cache = out_.result.folder;
  }

  // A copy beside the shards, so that the cache is whole wherever it goes.
  void keep_tokenizer() {
    for (const auto& file : tokenizer_files(config_.tokenizer.scalar)) {
      const auto copy = fs::path(out_.cache) / fs::path(file).filename();
      const std::string text = read_text_file(file);
      if (fs::exists(copy) && read_text_file(copy.string()) == text) continue;
      write_file_atomically(copy.string(), text);
    }
    out_.tokenizer = out_.cache;
  }
};

}  // namespace

PreparedData prepare_data(
    const DataConfig& config,
    const PrepareDataOptions& options
) {
  return Preparation(config, options).run();
}

std::vector<std::string> tokenizer_files(const std::string& tokenizer) {
  const fs::path given(tokenizer);
  const bool folder = fs::is_directory(given);
  const fs::path root = folder ? given : given.parent_path();
  std::vector<std::string> out;
  if (!folder) out.push_back(tokenizer);
  for (const std::string& name : io::tokenizer_files(root.string())) {
    // A tokenizer that was named itself is the only one.
    const bool another = name == "tokenizer.json" || name == "tokenizer.model";
    if (folder || !another) out.push_back((root / name).string());
  }
  return out;
}

}  // namespace hearth::data
