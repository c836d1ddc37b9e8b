#include "hearth/data/read/tokenizer_training.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "hearth/base/atomic_file.h"
#include "hearth/base/env.h"
#include "hearth/base/error.h"
#include "hearth/data/cache/cache_impl.h"
#include "hearth/data/read/dataset_reader.h"

namespace hearth::data {
namespace {

namespace fs = std::filesystem;

// Raised when the same data would give another tokenizer than before.
constexpr std::uint64_t kTrainingVersion = 2;

Interrupted interrupted() {
  return Interrupted("[data.train_tokenizer] interrupted");
}

// The parts of a text between special tokens, which are never split.
void add_between(
    std::string_view text,
    const std::vector<std::string>& special,
    std::vector<std::string>& out
) {
  while (!text.empty()) {
    std::size_t at = text.size(), length = 0;
    for (const auto& token : special) {
      const std::size_t found = token.empty() ? text.npos : text.find(token);
      if (found < at || (found == at && token.size() > length)) {
        at = found;
        length = token.size();
      }
    }
    if (at > 0) out.emplace_back(text.substr(0, at));
    text.remove_prefix(at + length);
  }
}

class TextCollector {
 public:
  TextCollector(
      const ChatRenderer* chat,
      const std::vector<std::string>& special
  )
      : chat_(chat), special_(special) {}

  void add(const Record& r, std::vector<std::string>& out) const {
    for (const auto* text : {&r.text, &r.prompt, &r.completion, &r.chosen}) {
      add_between(*text, special_, out);
    }
    add_chat(r.messages, r.tools, out);
    add_chat(r.chosen_messages, r.tools, out);
  }

 private:
  const ChatRenderer* chat_;
  const std::vector<std::string>& special_;

  void add_chat(
      const Json& messages,
      const Json& tools,
      std::vector<std::string>& out
  ) const {
    if (messages.is_null()) return;
    if (chat_) {
      add_between(chat_->render(messages, tools).text, special_, out);
      return;
    }
    for (const Json& message : messages) {
      const auto content = message.find("content");
      if (content != message.end() && content->is_string()) {
        add_between(content->get<std::string>(), special_, out);
      }
    }
  }
};

// Reads the records of one source, chunk by chunk.
class SourceCounter {
 public:
  SourceCounter(
      const DataSource& source,
      const CacheSettings& settings,
      const TextCollector& texts
  )
      : source_(source),
        settings_(settings),
        texts_(texts),
        parser_(settings.read) {}

  // Returns where the first bad line is and what is wrong with it.
  std::string run(text::BpeTrainer& trainer, const TrainingWatch& watch) {
    std::uint64_t before = 0, total = 0;
    for (const auto& file : source_.files) total += file.bytes;
    for (const auto& file : source_.files) {
      RecordReader reader(file, settings_.read);
      RawChunk chunk;
      while (wants_more() && reader.next(chunk)) {
        if (watch.stop && watch.stop()) throw interrupted();
        std::vector<std::string> found;
        for (const auto& raw : chunk.records) take(file, chunk, raw, found);
        trainer.add(std::vector<std::string_view>(found.begin(), found.end()));
        if (watch.progress) {
          watch.progress(before + reader.stored_position(), total);
        }
      }
      before += file.bytes;
    }
    return first_problem_;
  }

 private:
  const DataSource& source_;
  const CacheSettings& settings_;
  const TextCollector& texts_;
  RecordParser parser_;
  Record record_;
  std::uint64_t taken_ = 0;
  std::string first_problem_;

  bool wants_more() const {
    return settings_.limit == 0 || taken_ < settings_.limit;
  }

  void take(
      const DataFile& file,
      const RawChunk& chunk,
      const RawRecord& raw,
      std::vector<std::string>& out
  ) {
    if (raw.too_long || !wants_more()) return;
    if (!raw.problem.empty()) return refuse(file, raw, raw.problem);
    const auto bytes =
        std::string_view(chunk.bytes).substr(raw.begin, raw.end - raw.begin);
    const std::size_t kept = out.size();
    try {
      parser_.parse(bytes, file.format, record_);
      const auto split =
          split_of(record_.content_hash(), settings_.valid_share);
      if (split == Split::kTrain) texts_.add(record_, out);
      ++taken_;
    } catch (const UsageError& e) {
      out.resize(kept);
      refuse(file, raw, e.what());
    }
  }
  void refuse(
      const DataFile& file,
      const RawRecord& raw,
      std::string_view what
  ) {
    const auto line = static_cast<long>(raw.line);
    if (settings_.read.on_bad_line == BadLinePolicy::kFatal) {
      throw FormatError::at(file.path, line, what);
    }
    if (!first_problem_.empty()) return;
    first_problem_ = FormatError::at(file.path, line, what).what();
  }
};

std::string eos_of(const TokenizerTraining& training) {
  const auto& special = training.special;
  if (training.eos.empty()) return special.empty() ? "" : special.front();
  if (std::find(special.begin(), special.end(), training.eos) ==
      special.end()) {
    throw UsageError(
        fmt::format(
            "[data.train_tokenizer] eos must be one of the special tokens, got "
            "'{}'",
            training.eos
        )
    );
  }
  return training.eos;
}

Hash128 training_key(
    const TokenizerTraining& t,
    const std::vector<DataSource>& sources,
    const CacheSettings& settings,
    const ChatRenderer* chat
) {
  ContentHash hash;
  hash.field("hearth trained tokenizer").field(kTrainingVersion);
  hash.field(static_cast<std::uint64_t>(t.vocab));
  hash.field(static_cast<std::uint64_t>(t.min_frequency));
  hash.field(t.special.size());
  for (const auto& token : t.special) hash.field(token);
  hash.field(t.eos).field(t.pattern);
  hash.field(chat ? chat->hash().hex() : std::string());
  hash_settings(hash, settings);
  hash_sources(hash, sources);
  return hash.digest();
}

}  // namespace

void TokenizerTraining::fields(FieldVisitor& v) {
  v("vocab", vocab, "tokens, bytes and special ones counted",
    between(257, 1 << 20));
  v("min_frequency", min_frequency, "how often a pair must occur", at_least(1));
  v("special", special, "special tokens; they take the first ids");
  v("eos", eos, "the one that ends a document; empty: the first");
  v("pattern", pattern, "splitting pattern; empty: GPT-2's");
}

std::string tokenizer_config_text(const std::string& eos) {
  Json config = {{"tokenizer_class", "PreTrainedTokenizerFast"}};
  if (!eos.empty()) config["eos_token"] = eos;
  return to_json_text(config);
}

std::string add_training_texts(
    text::BpeTrainer& trainer,
    const DataSource& source,
    const CacheSettings& settings,
    const ChatRenderer* chat,
    const std::vector<std::string>& special,
    const TrainingWatch& watch
) {
  const TextCollector texts(chat, special);
  return SourceCounter(source, settings, texts).run(trainer, watch);
}

TrainedTokenizer train_tokenizer(
    const TokenizerTraining& training,
    const std::vector<DataSource>& sources,
    const CacheSettings& settings,
    const ChatRenderer* chat,
    const std::string& template_file,
    const TrainingWatch& watch
) {
  const std::string eos = eos_of(training);
  std::vector<DataSource> seen = sources;
  std::erase_if(seen, [](const auto& s) { return s.held_out; });
  const Hash128 key = training_key(training, seen, settings, chat);
  const fs::path folder =
      fs::path(env::cache_folder()) / "tokenizers" / key.hex();
  // The tokenizer is written last, so a folder with one is whole.
  const fs::path file = folder / "tokenizer.json";
  TrainedTokenizer out{folder.string(), fs::exists(file)};
  if (out.reused) return out;
  text::BpeTrainer trainer(
      {.vocab_size = static_cast<std::size_t>(training.vocab),
       .min_frequency = static_cast<std::uint64_t>(training.min_frequency),
       .special_tokens = training.special,
       .pattern = training.pattern}
  );
  std::string problem;
  for (const auto& source : seen) {
    const std::string first = add_training_texts(
        trainer, source, settings, chat, training.special, watch
    );
    if (problem.empty()) problem = first;
  }
  if (trainer.words() == 0) {
    throw UsageError(
        "[data.train_tokenizer] the training data must hold text, got none" +
            (problem.empty() ? problem : "; the first, " + problem),
        "docs/data.md has the forms that records are known in; other names "
        "are given by data.fields"
    );
  }
  fs::create_directories(folder);
  const auto put = [&](const char* name, const std::string& text) {
    write_file_atomically((folder / name).string(), text);
  };
  put("tokenizer_config.json", tokenizer_config_text(eos));
  if (!template_file.empty()) {
    put("chat_template.jinja", read_text_file(template_file));
  }
  put("tokenizer.json", trainer.train([&](std::uint64_t) {
    if (watch.stop && watch.stop()) throw interrupted();
  }));
  return out;
}

}  // namespace hearth::data
