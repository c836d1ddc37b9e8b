// hearth tokenizer train.
#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "hearth/base/atomic_file.h"
#include "hearth/base/error.h"
#include "hearth/cli/command.h"
#include "hearth/data/tokenizer/tokenizer.h"
#include "hearth/data/tokenizer_training.h"

namespace hearth::cli {
namespace {

namespace fs = std::filesystem;

bool is_plain_text(const data::DataFile& file) {
  return file.format == data::FileFormat::kText &&
         !file.path.ends_with(".gz") && !file.path.ends_with(".zst");
}

// Every line of a text file is a text, as it is to the reference trainer;
// records of other files give theirs.
void add_files(
    data::BpeTrainer& trainer,
    const std::vector<std::string>& files,
    const std::vector<std::string>& specials
) {
  data::CacheSettings settings;
  settings.read.on_bad_line = data::BadLinePolicy::kFatal;
  for (auto source : data::find_sources(files)) {
    std::erase_if(source.files, [&](const data::DataFile& file) {
      if (is_plain_text(file)) trainer.add_file(file.path);
      return is_plain_text(file);
    });
    data::add_training_texts(trainer, source, settings, nullptr, specials, {});
  }
}

struct TrainFlags {
  std::vector<std::string> files, specials;
  std::string output = "tokenizer.json", pattern, eos;
  std::int64_t vocab = 32000, frequency = 2;
  bool force = false;

  // Says beside a tokenizer.json which token ends a document.
  std::string config_file() const {
    const fs::path path(output);
    if (eos.empty() || path.filename() != "tokenizer.json") return {};
    return (path.parent_path() / "tokenizer_config.json").string();
  }

  void check() {
    if (files.empty()) throw UsageError("name at least one text file");
    if (vocab <= 0 || vocab > (1 << 20)) {
      throw UsageError(
          fmt::format("--vocab must be from 1 to {}, got {}", 1 << 20, vocab)
      );
    }
    if (frequency < 1) throw UsageError("--min-frequency must be at least 1");
    if (fs::is_directory(output)) {
      output = (fs::path(output) / "tokenizer.json").string();
    }
    if (eos.empty() && !specials.empty()) eos = specials[0];
    if (!eos.empty() &&
        std::find(specials.begin(), specials.end(), eos) == specials.end()) {
      throw UsageError("--eos must be one of the special tokens, got " + eos);
    }
    for (const auto& file : {output, config_file()}) {
      if (force || file.empty() || !fs::exists(file)) continue;
      throw UsageError(file + " exists", "--force overwrites it");
    }
  }
};

}  // namespace

void cmd_tokenizer_train(
    Context& context,
    const std::vector<std::string>& words
) {
  TrainFlags flags;
  Args args(
      "tokenizer train", "Train a byte-level BPE tokenizer on text files.",
      context.common
  );
  args.rest("FILE", flags.files, "Text or JSONL files, folders, globs");
  args.option("-o,--output", flags.output, "Where the tokenizer.json goes");
  args.option(
      "--vocab", flags.vocab, "Tokens, bytes and special tokens counted"
  );
  args.option(
      "--min-frequency", flags.frequency, "How often a pair must occur"
  );
  args.option("--special", flags.specials, "A special token; may be repeated");
  args.option(
      "--eos", flags.eos, "The one that ends a document (default: the first)"
  );
  args.option(
      "--pattern", flags.pattern, "Splitting pattern instead of GPT-2's"
  );
  args.flag("--force", flags.force, "Overwrite the output");
  args.example(
      "hearth tokenizer train stories.txt --vocab 4096 --special '<|end|>'",
      "writes tokenizer.json"
  );
  if (!context.parse(args, words)) return;

  flags.check();
  data::BpeTrainer trainer(
      {.vocab_size = static_cast<std::size_t>(flags.vocab),
       .min_frequency = static_cast<std::uint64_t>(flags.frequency),
       .special_tokens = flags.specials,
       .pattern = flags.pattern}
  );
  add_files(trainer, flags.files, flags.specials);
  const std::string text = trainer.train();
  const auto tokenizer = data::Tokenizer::from_json(text, flags.output);
  const std::string config = flags.config_file();
  if (!config.empty()) {
    write_file_atomically(config, data::tokenizer_config_text(flags.eos));
  }
  write_file_atomically(flags.output, text);
  if (context.common.json) {
    return context.json(
        "hearth.tokenizer.train/1",
        {{"output", flags.output},
         {"vocab_size", tokenizer->vocab_size()},
         {"config", config},
         {"words", trainer.words()},
         {"distinct_words", trainer.distinct_words()}}
    );
  }
  context.print(
      fmt::format(
          "{}: {} tokens from {} words, {} of them different{}\n", flags.output,
          tokenizer->vocab_size(), trainer.words(), trainer.distinct_words(),
          config.empty() ? "" : fmt::format("; {} ends a document", flags.eos)
      )
  );
}

}  // namespace hearth::cli
