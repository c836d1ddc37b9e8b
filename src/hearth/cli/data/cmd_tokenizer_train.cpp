// hearth tokenizer train.
#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "hearth/base/atomic_file.h"
#include "hearth/base/error.h"
#include "hearth/cli/command.h"
#include "hearth/cli/data/prepare_data.h"
#include "hearth/cli/inputs.h"
#include "hearth/cli/interrupt.h"
#include "hearth/data/read/tokenizer_training.h"
#include "hearth/text/tokenizer/tokenizer.h"

namespace hearth::cli {
namespace {

namespace fs = std::filesystem;

bool is_plain_text(const data::DataFile& file) {
  return file.format == data::FileFormat::kText &&
         !file.path.ends_with(".gz") && !file.path.ends_with(".zst");
}

void stop_if_asked() {
  if (InterruptGuard::interrupted()) {
    throw Interrupted("interrupted; no tokenizer was written");
  }
}

// Counts, then learns, with a progress line each. Every line of a text file is
// a text, as it is to the reference trainer; records of other files give
// theirs.
class Training {
 public:
  Training(
      text::BpeTrainer& trainer,
      std::vector<data::DataSource> sources,
      std::uint64_t vocab
  )
      : trainer_(trainer), sources_(std::move(sources)), vocab_(vocab) {
    for (const auto& source : sources_) {
      for (const auto& file : source.files) total_ += file.bytes;
    }
  }

  std::string run(const std::vector<std::string>& specials) {
    const InterruptGuard guard;
    for (auto& source : sources_) add(source, specials);
    if (trainer_.words() == 0) {
      throw UsageError("the files must hold text, got none");
    }
    std::string text = trainer_.train([&](std::uint64_t tokens) {
      stop_if_asked();
      progress_.update({"learning merges", "tokens", tokens, vocab_, ""});
    });
    progress_.finish();
    return text;
  }

 private:
  text::BpeTrainer& trainer_;
  std::vector<data::DataSource> sources_;
  std::uint64_t vocab_, total_ = 0, before_ = 0;
  StepProgress progress_;

  void counted(std::uint64_t bytes) {
    stop_if_asked();
    progress_.update({"counting words", "B", before_ + bytes, total_, ""});
  }

  void add(data::DataSource& source, const std::vector<std::string>& specials) {
    std::erase_if(source.files, [&](const data::DataFile& file) {
      if (!is_plain_text(file)) return false;
      trainer_.add_file(file.path, [&](std::uint64_t done) { counted(done); });
      before_ += file.bytes;
      return true;
    });
    data::CacheSettings settings;
    settings.read.on_bad_line = data::BadLinePolicy::kFatal;
    data::TrainingWatch watch;
    watch.progress = [&](std::uint64_t done, std::uint64_t) { counted(done); };
    data::add_training_texts(
        trainer_, source, settings, nullptr, specials, watch
    );
    for (const auto& file : source.files) before_ += file.bytes;
  }
};

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
    require_output_folder(output);
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
  args.option(
      "-o,--output", flags.output, "Where the tokenizer.json goes; - is stdout"
  );
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
  text::BpeTrainer trainer(
      {.vocab_size = static_cast<std::size_t>(flags.vocab),
       .min_frequency = static_cast<std::uint64_t>(flags.frequency),
       .special_tokens = flags.specials,
       .pattern = flags.pattern}
  );
  auto sources = data::find_sources(flags.files);
  for (const auto& line : data::remarks_of(sources)) context.note(line);
  std::erase_if(sources, [](const auto& s) { return s.held_out; });
  const std::string text =
      Training(
          trainer, std::move(sources), static_cast<std::uint64_t>(flags.vocab)
      )
          .run(flags.specials);
  const auto tokenizer = text::Tokenizer::from_json(text, flags.output);
  const std::string config = flags.config_file();
  if (!config.empty()) {
    write_file_atomically(config, data::tokenizer_config_text(flags.eos));
  }
  if (flags.output == "-") return context.print(text);
  write_file_atomically(flags.output, text);
  if (tokenizer->vocab_size() < static_cast<std::size_t>(flags.vocab)) {
    context.note(
        fmt::format(
            "no pair of tokens occurs {} times any more, so there are {} "
            "tokens instead of {}",
            flags.frequency, tokenizer->vocab_size(), flags.vocab
        )
    );
  }
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
