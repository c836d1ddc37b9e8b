// hearth tokenizer encode | decode | train | inspect
#include <cstdio>
#include <filesystem>
#include <optional>

#include <fmt/format.h>

#include "hearth/base/atomic_file.h"
#include "hearth/base/error.h"
#include "hearth/cli/command.h"
#include "hearth/data/dataset_reader.h"
#include "hearth/data/dataset_record.h"
#include "hearth/data/tokenizer/bpe_trainer.h"
#include "hearth/data/tokenizer/tokenizer.h"

namespace hearth::cli {
namespace {

using data::Tokenizer;
using Ids = std::vector<std::int32_t>;

std::string read_stdin() {
  std::string out;
  char buffer[1 << 16];
  std::size_t got = 0;
  while ((got = std::fread(buffer, 1, sizeof buffer, stdin)) > 0) {
    out.append(buffer, got);
  }
  return out;
}

// Calls body(line, number) for each line of stdin that is not blank.
template <class Body>
void each_line(Body body) {
  std::string rest;
  char buffer[1 << 16];
  long number = 0;
  const auto take = [&](std::string_view line) {
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.find_first_not_of(" \t") != line.npos) body(line, number);
  };
  while (const std::size_t got = std::fread(buffer, 1, sizeof buffer, stdin)) {
    rest.append(buffer, got);
    std::size_t begin = 0, end = 0;
    while ((end = rest.find('\n', begin)) != rest.npos) {
      take(std::string_view(rest).substr(begin, end - begin));
      begin = end + 1;
    }
    rest.erase(0, begin);
  }
  if (!rest.empty()) take(rest);
}

Json parse_line(std::string_view line, long number) {
  return parse_json(line, fmt::format("<stdin>:{}", number));
}

[[noreturn]] void bad_line(long number, std::string_view what) {
  throw FormatError::at("<stdin>", number, what);
}

std::string spelled(const Ids& ids, const char* separator) {
  return fmt::format("{}", fmt::join(ids, separator));
}

Ids ids_of(const Json& json, long number) {
  if (!json.is_array()) bad_line(number, "must be a JSON array of ids");
  Ids out;
  for (const Json& item : json) {
    const bool id = item.is_number_integer() && item.get<std::int64_t>() >= 0 &&
                    item.get<std::int64_t>() <= INT32_MAX;
    if (!id) bad_line(number, "must be a JSON array of ids");
    out.push_back(item.get<std::int32_t>());
  }
  return out;
}

// Numbers apart by anything that a list of ids may be written with.
Ids ids_in_text(std::string_view text) {
  Ids out;
  std::int64_t value = -1;
  for (const char c : text) {
    if (c >= '0' && c <= '9') {
      value = std::max<std::int64_t>(value, 0) * 10 + (c - '0');
      if (value > INT32_MAX) throw UsageError("<stdin>: an id is too large");
      continue;
    }
    if (std::string_view(" \t\r\n,[]").find(c) == std::string_view::npos) {
      throw UsageError(
          fmt::format(
              "<stdin> must be ids with spaces between them, got '{}'", c
          )
      );
    }
    if (value >= 0) out.push_back(static_cast<std::int32_t>(value));
    value = -1;
  }
  if (value >= 0) out.push_back(static_cast<std::int32_t>(value));
  return out;
}

void note_limits(
    const Context& context,
    const Tokenizer& tokenizer,
    const data::EncodeOptions& options
) {
  const data::TokenizerLimits limits = tokenizer.limits();
  if (options.truncate && limits.truncate_to) {
    context.note(
        fmt::format(
            "the tokenizer file truncates to {} tokens: --no-truncation gives "
            "all",
            limits.truncate_to
        )
    );
  }
  if (options.pad && limits.pad_to) {
    context.note(
        fmt::format(
            "the tokenizer file pads to {} tokens: --no-padding leaves that "
            "off",
            limits.pad_to
        )
    );
  }
}

std::string optional_id(
    const Tokenizer& tokenizer,
    std::optional<std::int32_t> id
) {
  if (!id) return "none";
  return fmt::format("{} {:?}", *id, tokenizer.id_to_token(*id).value_or(""));
}

Json inspect_json(const Tokenizer& tokenizer) {
  const auto id = [](std::optional<std::int32_t> value) {
    return value ? Json(*value) : Json(nullptr);
  };
  Json specials = Json::object();
  for (const std::int32_t special : tokenizer.special_ids()) {
    specials[tokenizer.id_to_token(special).value_or("")] = special;
  }
  const data::TokenizerLimits limits = tokenizer.limits();
  return {
      {"format", tokenizer.format()},
      {"model", tokenizer.model_kind()},
      {"byte_level", tokenizer.is_byte_level()},
      {"vocab_size", tokenizer.vocab_size()},
      {"id_limit", tokenizer.id_limit()},
      {"bos", id(tokenizer.bos_id())},
      {"eos", id(tokenizer.eos_id())},
      {"pad", id(tokenizer.pad_id())},
      {"unk", id(tokenizer.unk_id())},
      {"prefix", tokenizer.prefix_ids()},
      {"suffix", tokenizer.suffix_ids()},
      {"truncate_to", limits.truncate_to},
      {"pad_to", limits.pad_to},
      {"special_tokens", specials}
  };
}

std::string inspect_text(const Tokenizer& t) {
  std::string out = fmt::format(
      "format      {}\nmodel       {}{}\nvocabulary  {} tokens, ids below {}\n",
      t.format(), t.is_byte_level() ? "byte-level " : "", t.model_kind(),
      t.vocab_size(), t.id_limit()
  );
  out += fmt::format(
      "bos         {}\neos         {}\npad         {}\nunk         {}\n",
      optional_id(t, t.bos_id()), optional_id(t, t.eos_id()),
      optional_id(t, t.pad_id()), optional_id(t, t.unk_id())
  );
  out += fmt::format(
      "adds        [{}] text [{}]\n", spelled(t.prefix_ids(), " "),
      spelled(t.suffix_ids(), " ")
  );
  const data::TokenizerLimits limits = t.limits();
  if (limits.truncate_to) {
    out += fmt::format("truncates   to {} tokens\n", limits.truncate_to);
  }
  if (limits.pad_to) {
    out += fmt::format("pads        to {} tokens\n", limits.pad_to);
  }
  const Ids specials = t.special_ids();
  out += fmt::format("special     {} tokens\n", specials.size());
  for (std::size_t i = 0; i < specials.size() && i < 32; ++i) {
    out += fmt::format("  {}\n", optional_id(t, specials[i]));
  }
  if (specials.size() > 32) {
    out += fmt::format("  and {} more\n", specials.size() - 32);
  }
  return out;
}

void show_tokens(
    const Context& context,
    const Tokenizer& tokenizer,
    const Ids& ids
) {
  for (const std::int32_t id : ids) {
    context.print(
        fmt::format(
            "{:>8}  {:?}{}\n", id, tokenizer.id_to_token(id).value_or(""),
            tokenizer.is_special(id) ? "  special" : ""
        )
    );
  }
}

}  // namespace

void cmd_tokenizer_encode(
    Context& context,
    const std::vector<std::string>& words
) {
  std::string path;
  bool jsonl = false, no_special = false, plain_special = false;
  bool no_truncation = false, no_padding = false;
  Args args("tokenizer encode", "Text to token ids.", context.common);
  args.option(
      "-t,--tokenizer", path,
      "tokenizer.json, tokenizer.model, .gguf or a folder with one"
  );
  args.require("--tokenizer");
  args.flag(
      "--jsonl", jsonl,
      "Each line is a JSON string; answers with a JSON array of ids"
  );
  args.flag("--no-special", no_special, "Leave BOS and EOS off");
  args.flag(
      "--plain-special", plain_special,
      "Special tokens spelled out in the text are plain text"
  );
  args.flag(
      "--no-truncation", no_truncation,
      "Do not follow the file's truncation block"
  );
  args.flag(
      "--no-padding", no_padding, "Do not follow the file's padding block"
  );
  args.example(
      "echo Hello | hearth tokenizer encode -t model/",
      "ids of the whole input on one line"
  );
  args.example(
      "hearth tokenizer encode -t tokenizer.json --jsonl < texts.jsonl",
      "one text a line"
  );
  if (!context.parse(args, words)) return;

  const auto tokenizer = Tokenizer::load(path);
  data::EncodeOptions options;
  options.add_special = !no_special;
  options.parse_special = !plain_special;
  options.truncate = !no_truncation;
  options.pad = !no_padding;
  note_limits(context, *tokenizer, options);
  if (!jsonl) {
    const Ids ids = tokenizer->encode(read_stdin(), options);
    if (context.common.json) {
      return context.json("hearth.tokenizer.encode/1", {{"ids", ids}});
    }
    return context.print(spelled(ids, " ") + "\n");
  }
  each_line([&](std::string_view line, long number) {
    const Json text = parse_line(line, number);
    if (!text.is_string()) bad_line(number, "must be a JSON string");
    const Ids ids =
        tokenizer->encode(text.get_ref<const std::string&>(), options);
    context.print("[" + spelled(ids, ",") + "]\n");
  });
}

void cmd_tokenizer_decode(
    Context& context,
    const std::vector<std::string>& words
) {
  std::string path;
  bool jsonl = false, skip = false;
  Args args("tokenizer decode", "Token ids to text.", context.common);
  args.option(
      "-t,--tokenizer", path,
      "tokenizer.json, tokenizer.model, .gguf or a folder with one"
  );
  args.require("--tokenizer");
  args.flag(
      "--jsonl", jsonl,
      "Each line is a JSON array of ids; answers with a JSON string"
  );
  args.flag("--skip-special", skip, "Leave special tokens out of the text");
  args.example(
      "echo 9906 | hearth tokenizer decode -t model/",
      "the text of the ids on stdin"
  );
  if (!context.parse(args, words)) return;

  const auto tokenizer = Tokenizer::load(path);
  if (!jsonl) {
    const std::string text = tokenizer->decode(ids_in_text(read_stdin()), skip);
    if (context.common.json) {
      return context.json("hearth.tokenizer.decode/1", {{"text", text}});
    }
    return context.print(text);
  }
  each_line([&](std::string_view line, long number) {
    const Ids ids = ids_of(parse_line(line, number), number);
    context.print(to_json_line(Json(tokenizer->decode(ids, skip))) + "\n");
  });
}

namespace {

// The texts of a record that a tokenizer learns from.
void append_texts(const data::Record& record, std::vector<std::string>& out) {
  for (const auto* text :
       {&record.text, &record.prompt, &record.completion, &record.chosen}) {
    if (!text->empty()) out.push_back(*text);
  }
  for (const Json& message : record.messages) {
    const auto content = message.find("content");
    if (content != message.end() && content->is_string()) {
      out.push_back(content->get<std::string>());
    }
  }
}

// Every line of plain text, or the texts of each JSONL record. A chunk of
// records is counted at once, by all threads.
void add_texts(data::BpeTrainer& trainer, const data::DataFile& file) {
  if (file.format == data::FileFormat::kText) {
    return trainer.add_file(file.path);
  }
  const data::ReadSettings settings;
  data::RecordReader reader(file, settings);
  data::RecordParser parser(settings);
  data::RawChunk chunk;
  data::Record record;
  while (reader.next(chunk)) {
    std::vector<std::string> texts;
    for (const auto& raw : chunk.records) {
      if (raw.too_long) continue;
      const std::string_view bytes(chunk.bytes);
      try {
        parser.parse(
            bytes.substr(raw.begin, raw.end - raw.begin), file.format, record
        );
      } catch (const FormatError& e) {
        const auto line = static_cast<long>(raw.line);
        throw FormatError::at(file.path, line, e.what());
      }
      append_texts(record, texts);
    }
    const std::vector<std::string_view> views(texts.begin(), texts.end());
    trainer.add(views);
  }
}

}  // namespace

void cmd_tokenizer_train(
    Context& context,
    const std::vector<std::string>& words
) {
  std::vector<std::string> files, specials;
  std::string output = "tokenizer.json", pattern;
  std::int64_t vocab = 32000, frequency = 2;
  bool force = false;
  Args args(
      "tokenizer train", "Train a byte-level BPE tokenizer on text files.",
      context.common
  );
  args.rest("FILE", files, "Text or JSONL files, folders, globs");
  args.option("-o,--output", output, "Where the tokenizer.json goes");
  args.option("--vocab", vocab, "Tokens, bytes and special tokens counted");
  args.option("--min-frequency", frequency, "How often a pair must occur");
  args.option("--special", specials, "A special token; may be repeated");
  args.option("--pattern", pattern, "Splitting pattern instead of GPT-2's");
  args.flag("--force", force, "Overwrite the output");
  args.example(
      "hearth tokenizer train stories.txt --vocab 4096 --special '<|end|>'",
      "writes tokenizer.json"
  );
  if (!context.parse(args, words)) return;

  if (files.empty()) throw UsageError("name at least one text file");
  if (vocab <= 0 || vocab > (1 << 20)) {
    throw UsageError(
        fmt::format("--vocab must be from 1 to {}, got {}", 1 << 20, vocab)
    );
  }
  if (frequency < 1) throw UsageError("--min-frequency must be at least 1");
  if (!force && std::filesystem::exists(output)) {
    throw UsageError(output + " exists", "--force overwrites it");
  }
  data::BpeTrainer trainer(
      {.vocab_size = static_cast<std::size_t>(vocab),
       .min_frequency = static_cast<std::uint64_t>(frequency),
       .special_tokens = specials,
       .pattern = pattern}
  );
  for (const auto& source : data::find_sources(files)) {
    for (const auto& file : source.files) add_texts(trainer, file);
  }
  const std::string text = trainer.train();
  write_file_atomically(output, text);
  const auto tokenizer = Tokenizer::from_json(text, output);
  if (context.common.json) {
    return context.json(
        "hearth.tokenizer.train/1",
        {{"output", output},
         {"vocab_size", tokenizer->vocab_size()},
         {"words", trainer.words()},
         {"distinct_words", trainer.distinct_words()}}
    );
  }
  context.print(
      fmt::format(
          "{}: {} tokens from {} words, {} of them different\n", output,
          tokenizer->vocab_size(), trainer.words(), trainer.distinct_words()
      )
  );
}

void cmd_tokenizer_inspect(
    Context& context,
    const std::vector<std::string>& words
) {
  std::string path;
  std::optional<std::string> text;
  Args args(
      "tokenizer inspect", "What a tokenizer is, and how it splits a text.",
      context.common
  );
  args.option(
      "-t,--tokenizer", path,
      "tokenizer.json, tokenizer.model, .gguf or a folder with one"
  );
  args.require("--tokenizer");
  args.option("--text", text, "Show the tokens of this text, one a line");
  args.example("hearth tokenizer inspect -t model/", "model, size, specials");
  args.example(
      "hearth tokenizer inspect -t model/ --text \"It's 1984\"",
      "one token a line"
  );
  if (!context.parse(args, words)) return;

  const auto tokenizer = Tokenizer::load(path);
  if (context.common.json) {
    Json document = inspect_json(*tokenizer);
    if (text) document["ids"] = tokenizer->encode(*text);
    return context.json("hearth.tokenizer.inspect/1", document);
  }
  if (text) return show_tokens(context, *tokenizer, tokenizer->encode(*text));
  context.print(inspect_text(*tokenizer));
}

}  // namespace hearth::cli
