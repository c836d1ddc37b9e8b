#include "hearth/data/data_config.h"

#include <algorithm>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/data/read/dataset_splits.h"
#include "hearth/data/read/dataset_tokenizer.h"
#include "hearth/text/chat/builtin_template.h"

namespace hearth::data {
namespace {

// A word or a list of words.
std::vector<std::string> words(const YamlNode& node, std::string_view key) {
  std::vector<std::string> out;
  auto add = [&](const YamlNode& item) {
    if (item.kind != YamlNode::Kind::kScalar) {
      throw UsageError(
          fmt::format(
              "{}: {} must be a path or a list of paths", node.where(), key
          )
      );
    }
    out.push_back(item.scalar);
  };
  if (node.kind == YamlNode::Kind::kList) {
    for (const auto& item : node.items) add(item);
  } else if (node.kind != YamlNode::Kind::kNull) {
    add(node);
  }
  return out;
}

Overlong overlong_of(const std::string& name) {
  return name == "split"      ? Overlong::kSplit
         : name == "truncate" ? Overlong::kTruncate
         : name == "drop"     ? Overlong::kDrop
                              : Overlong::kAuto;
}

// data.tokenizer when it is a map, under its full name so that errors say it.
struct TokenizerSection {
  struct Data {
    struct Tokenizer {
      TokenizerTraining train;
      void fields(FieldVisitor& v) { v("train", train, "made from the data"); }
    } tokenizer;
    void fields(FieldVisitor& v) { v("tokenizer", tokenizer, "tokenizer"); }
  } data;
  void fields(FieldVisitor& v) { v("data", data, "what is trained on"); }
};

YamlNode wrapped(std::string key, YamlNode value) {
  YamlNode map;
  map.kind = YamlNode::Kind::kMap;
  map.source = value.source;
  map.line = value.line;
  map.entries.push_back({std::move(key), std::move(value)});
  return map;
}

std::map<std::string, std::string> role_names(const YamlNode& node) {
  std::map<std::string, std::string> names;
  if (node.kind == YamlNode::Kind::kNull) return names;
  bool words = node.kind == YamlNode::Kind::kMap;
  for (const auto& [role, name] : node.entries) {
    words = words && name.kind == YamlNode::Kind::kScalar;
    names[role] = name.scalar;
  }
  if (!words) {
    throw UsageError(
        node.where() +
        ": data.fields.roles must be a map from the data's "
        "roles to system, user, assistant or tool"
    );
  }
  return names;
}

// Files called valid are not needed where data.valid says what is held out.
void leave_out_held(std::vector<DataSource>& sources) {
  std::vector<std::string> left_out;
  std::erase_if(sources, [&](const DataSource& s) {
    for (const auto& f : s.files) {
      if (s.held_out) left_out.push_back(f.path);
    }
    return s.held_out;
  });
  if (left_out.empty()) return;
  sources[0].remarks.push_back(
      list_of_files(left_out) + " not read: data.valid says what is held out"
  );
}

void add_missing(std::vector<std::string>& list, const char* word) {
  if (std::find(list.begin(), list.end(), word) == list.end()) {
    list.emplace_back(word);
  }
}

}  // namespace

void FieldNamesConfig::fields(FieldVisitor& v) {
  v("text", names.text, "field with a whole text");
  v("prompt", names.prompt, "field with a prompt");
  v("completion", names.completion, "field with its completion");
  v("input", names.input, "field that follows the prompt; empty: none");
  v("messages", names.messages, "field with a chat");
  v("tools", names.tools, "field with tool schemas");
  v("system", names.system, "field with a system message");
  v("roles", roles, "roles by other names: {narrator: user}");
  v("chosen", names.chosen, "field with the preferred answer");
  v("rejected", names.rejected, "field with the other answer");
}

void DataConfig::fields(FieldVisitor& v) {
  v("train", train, "training files: a path, folder, glob, or a list",
    may_change());
  v("mix", mix, "instead of train: PATH:WEIGHT, shares of the tokens seen",
    may_change());
  v("synth", synth, "instead of train: generated data");
  v("valid", valid, "share held out by content (2%), or files of its own");
  v("tokenizer", tokenizer, "file or folder, or {train: {vocab: 4096, ...}}",
    may_change());
  v("template", chat_template,
    "chat template: auto, none, chatml (built in), or a file");
  v("mask", mask, "what carries loss", one_of({"assistant", "last", "all"}));
  v("length", length, "tokens a row", between(1, 1 << 24));
  v("pack", pack, "several documents a row, attention kept inside each");
  v("arrange", arrange, "rows: auto follows pack",
    one_of({"auto", "pack", "pad", "stream", "concat"}));
  v("overlong", overlong,
    "documents longer than a row; auto: plain text is split over rows, the "
    "rest cut",
    one_of({"auto", "split", "truncate", "drop"}));
  v("limit", limit, "records taken from each source; 0: all", at_least(0));
  v("on_bad_line", on_bad_line, "a line that cannot be read",
    one_of({"skip", "fatal"}));
  v("separator", separator, "what ends a document in plain text");
  v("fields", names, "names of JSONL fields");
  v("cache", cache, "cache folder; empty: named by content", may_change());
  v("max_tokens", max_tokens, "cut documents in the cache; 0: never",
    between(0, 0xffffffff));
  v("shuffle", shuffle, "a new order each epoch");
  v("workers", workers, "loader threads; -1: chosen by measurement",
    may_change(between(-1, 256)));
  v("prefetch", prefetch, "batches made ahead", may_change(between(1, 1024)));
  v("window", window, "documents arranged together", between(1, 1 << 24));
}

std::vector<DataSource> data_sources(
    const DataConfig& config,
    const std::string& generated
) {
  std::vector<std::string> entries = words(config.train, "data.train");
  const int named =
      !entries.empty() + !config.mix.empty() + config.synth.has_value();
  if (named != 1) {
    throw UsageError(
        fmt::format(
            "[data.config] one of data.train, data.mix and data.synth must say "
            "what the data is, got {}",
            named == 0 ? "none" : "more than one"
        )
    );
  }
  if (config.synth) entries = {generated};
  auto sources = find_sources(entries.empty() ? config.mix : entries);
  if (config.valid != DataConfig().valid) leave_out_held(sources);
  if (!is_share(config.valid)) {
    for (auto& source : find_sources({config.valid})) {
      source.held_out = true;
      sources.push_back(std::move(source));
    }
  }
  return sources;
}

bool is_share(std::string_view text) {
  return text == "off" ||
         (!text.empty() &&
          text.find_first_not_of("0123456789.%") == std::string_view::npos);
}

std::string arrangement(const DataConfig& config) {
  if (config.arrange != "auto") return config.arrange;
  return config.pack ? "pack" : "pad";
}

bool holds_out(const DataConfig& config) {
  if (!is_share(config.valid) || parse_share(config.valid) > 0) return true;
  try {
    const auto sources = data_sources(config);
    return std::any_of(sources.begin(), sources.end(), [](const auto& s) {
      return s.held_out;
    });
  } catch (const Error&) {
    return false;  // whoever reads the files says what is wrong with them
  }
}

CacheSettings cache_settings(const DataConfig& config) {
  CacheSettings s;
  s.read.fields = config.names.names;
  s.read.fields.roles = role_names(config.names.roles);
  s.read.separator = config.separator;
  s.read.on_bad_line = config.on_bad_line == "fatal" ? BadLinePolicy::kFatal
                                                     : BadLinePolicy::kSkip;
  if (is_share(config.valid)) s.valid_share = parse_share(config.valid);
  s.limit = static_cast<std::uint64_t>(config.limit);
  return s;
}

EncodeSettings encode_settings(const DataConfig& config) {
  EncodeSettings s;
  s.mask = config.mask == "all"    ? MaskMode::kAll
           : config.mask == "last" ? MaskMode::kLast
                                   : MaskMode::kAssistant;
  s.max_tokens = static_cast<std::uint32_t>(config.max_tokens);
  return s;
}

std::string tokenizer_path(const DataConfig& config) {
  if (config.tokenizer.kind != YamlNode::Kind::kScalar ||
      config.tokenizer.scalar.empty()) {
    throw UsageError(
        "[data.config] data.tokenizer must name a file or folder, or say how "
        "to train one",
        "for example data.tokenizer={train: {vocab: 4096}}"
    );
  }
  return config.tokenizer.scalar;
}

std::optional<TokenizerTraining> tokenizer_training(const DataConfig& config) {
  if (config.tokenizer.kind != YamlNode::Kind::kMap) return std::nullopt;
  TokenizerSection section;
  ConfigReader(section).apply(
      wrapped("data", wrapped("tokenizer", config.tokenizer))
  );
  TokenizerTraining training = section.data.tokenizer.train;
  if (config.chat_template == "chatml") {
    add_missing(training.special, "<|im_start|>");
    add_missing(training.special, "<|im_end|>");
    if (training.eos.empty()) training.eos = "<|im_end|>";
  }
  return training;
}

std::string template_path(const DataConfig& config) {
  const std::string& name = config.chat_template;
  if (name == "auto" || name == "none") return {};
  return text::builtin_template(name) ? text::builtin_template_file(name)
                                      : name;
}

ExampleEncoder make_encoder(const DataConfig& config) {
  const std::string path = tokenizer_path(config);
  auto text = load_text_encoder(path);
  std::shared_ptr<const ChatRenderer> chat;
  if (config.chat_template == "auto") {
    try {
      chat = load_chat_renderer(path);
    } catch (const FormatError&) {
      // Messages in the data will be refused line by line, with the reason.
    }
  } else if (config.chat_template != "none") {
    chat = load_chat_renderer(template_path(config));
  }
  return {std::move(text), std::move(chat), encode_settings(config)};
}

LoaderConfig loader_config(
    const DataConfig& config,
    const std::vector<DataSource>& sources,
    std::uint64_t tokens_per_batch,
    std::uint64_t seed
) {
  LoaderConfig c;
  const std::string arrange = arrangement(config);
  c.arrange = arrange == "pack"  ? Arrange::kPack
              : arrange == "pad" ? Arrange::kPad
                                 : Arrange::kStream;
  c.cross_documents = arrange == "concat";
  c.overlong = overlong_of(config.overlong);
  const auto length = static_cast<std::uint32_t>(config.length);
  c.shapes = {{length, 1}};
  c.tokens_per_batch =
      std::max<std::uint64_t>(tokens_per_batch / length, 1) * length;
  if (!config.mix.empty()) {
    for (const auto& s : sources) c.weights.push_back(s.weight);
    // A held-out source has no training documents to weigh.
    for (auto& w : c.weights) w = w > 0 ? w : 1;
  }
  c.shuffle = config.shuffle;
  c.seed = seed;
  c.workers = static_cast<int>(config.workers);
  c.prefetch = static_cast<int>(config.prefetch);
  c.window = static_cast<std::uint32_t>(config.window);
  return c;
}

}  // namespace hearth::data
