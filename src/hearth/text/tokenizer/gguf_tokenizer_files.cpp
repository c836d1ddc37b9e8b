#include "hearth/text/tokenizer/gguf_tokenizer_files.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/base/json.h"
#include "hearth/text/tokenizer/gguf_tokenizer_impl.h"

namespace hearth::text {
namespace {

constexpr const char* kSpace = "\u2581";

Json sequence(const char* key, Json items) {
  return {{"type", "Sequence"}, {key, std::move(items)}};
}

Json replace(const Json& pattern, const char* by) {
  return {{"type", "Replace"}, {"pattern", pattern}, {"content", by}};
}

Json byte_level() {
  return {
      {"type", "ByteLevel"},
      {"add_prefix_space", false},
      {"trim_offsets", true},
      {"use_regex", false}
  };
}

class Translation {
 public:
  explicit Translation(const std::string& path)
      : metadata_(io::GgufMetadata::read(path)),
        parts_(read_gguf_tokenizer(metadata_)),
        pre_(metadata_.text("tokenizer.ggml.pre", "default")) {
    const std::string model = metadata_.text("tokenizer.ggml.model");
    if (model == "llama") {
      pieces_ = gguf_pieces(metadata_);
    } else if (model != "gpt2") {
      throw FormatError::at(
          path, 0,
          fmt::format(
              "a tokenizer of tokenizer.ggml.model \"{}\" cannot be written "
              "as a tokenizer.json, only gpt2 and llama",
              model
          )
      );
    }
  }

  Json tokenizer() const {
    return {
        {"version", "1.0"},
        {"truncation", nullptr},
        {"padding", nullptr},
        {"added_tokens", added_tokens()},
        {"normalizer", pieces_ ? normalizer() : Json(nullptr)},
        {"pre_tokenizer", pieces_ ? Json(nullptr) : pre_tokenizer()},
        {"post_processor", post_processor()},
        {"decoder", pieces_ ? decoder() : byte_level()},
        {"model", model()}
    };
  }

  Json config() const {
    // The class that believes tokenizer.json: those named after a family
    // build parts of their own.
    Json out = {
        {"tokenizer_class", "PreTrainedTokenizerFast"},
        {"clean_up_tokenization_spaces", false},
        {"model_max_length", context()}
    };
    const std::pair<const char*, std::optional<std::int32_t>> named[] = {
        {"bos_token", parts_.bos},
        {"eos_token", parts_.eos},
        {"unk_token", parts_.unk},
        {"pad_token", parts_.pad}
    };
    for (const auto& [name, id] : named) {
      if (id) out[name] = token(*id);
    }
    out["add_bos_token"] = !parts_.prefix.empty();
    out["add_eos_token"] = !parts_.suffix.empty();
    const Json templates = chat_templates();
    if (!templates.is_null()) out["chat_template"] = templates;
    return out;
  }

 private:
  std::string token(std::int32_t id) const {
    return std::string(parts_.vocabulary->token(id));
  }

  std::int64_t context() const {
    const std::string family = metadata_.text("general.architecture");
    return metadata_.integer(family + ".context_length", 1 << 20);
  }

  Json added_tokens() const {
    Json out = Json::array();
    const auto count = static_cast<std::int32_t>(parts_.id_limit());
    for (std::int32_t id = 0; id < count; ++id) {
      const AddedToken* added = parts_.added.find(id);
      if (added == nullptr) continue;
      out.push_back(
          {{"id", id},
           {"content", added->content},
           {"single_word", false},
           {"lstrip", false},
           {"rstrip", false},
           {"normalized", false},
           {"special", added->special}}
      );
    }
    return out;
  }

  Json normalizer() const {
    Json steps = Json::array();
    if (pieces_->squeeze_spaces) {
      steps.push_back(
          {{"type", "Strip"}, {"strip_left", true}, {"strip_right", true}}
      );
      steps.push_back(replace({{"Regex", " {2,}"}}, " "));
    }
    if (pieces_->dummy_prefix) {
      steps.push_back({{"type", "Prepend"}, {"prepend", kSpace}});
    }
    steps.push_back(replace({{"String", " "}}, kSpace));
    return sequence("normalizers", std::move(steps));
  }

  Json pre_tokenizer() const {
    Json steps = Json::array();
    for (const auto pattern : gguf_patterns(pre_, metadata_.name())) {
      steps.push_back(
          {{"type", "Split"},
           {"pattern", {{"Regex", std::string(pattern)}}},
           {"behavior", "Isolated"},
           {"invert", false}}
      );
    }
    steps.push_back(byte_level());
    return sequence("pretokenizers", std::move(steps));
  }

  Json decoder() const {
    Json steps = Json::array(
        {replace({{"String", kSpace}}, " "),
         {{"type", "ByteFallback"}},
         {{"type", "Fuse"}}}
    );
    if (pieces_->dummy_prefix) {
      steps.push_back(
          {{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}}
      );
    }
    return sequence("decoders", std::move(steps));
  }

  // BOS and EOS around one text, and around each of two.
  Json post_processor() const {
    if (parts_.prefix.empty() && parts_.suffix.empty()) return nullptr;
    Json single = Json::array(), pair = Json::array();
    Json tokens = Json::object();
    const auto special = [&](Json& list, std::int32_t id, int type) {
      const std::string text = token(id);
      list.push_back({{"SpecialToken", {{"id", text}, {"type_id", type}}}});
      tokens[text] = {
          {"id", text},
          {"ids", Json::array({id})},
          {"tokens", Json::array({text})}
      };
    };
    const auto around = [&](Json& list, const char* text, int type) {
      for (const auto id : parts_.prefix) special(list, id, type);
      list.push_back({{"Sequence", {{"id", text}, {"type_id", type}}}});
      for (const auto id : parts_.suffix) special(list, id, type);
    };
    around(single, "A", 0);
    around(pair, "A", 0);
    around(pair, "B", 1);
    return {
        {"type", "TemplateProcessing"},
        {"single", single},
        {"pair", pair},
        {"special_tokens", tokens}
    };
  }

  Json model() const {
    const bool fallback = pieces_.has_value();
    Json out = {
        {"type", "BPE"},
        {"dropout", nullptr},
        {"unk_token",
         fallback && parts_.unk ? Json(token(*parts_.unk)) : Json(nullptr)},
        {"continuing_subword_prefix", nullptr},
        {"end_of_word_suffix", nullptr},
        {"fuse_unk", fallback},
        {"byte_fallback", fallback},
        {"ignore_merges", !fallback && gguf_ignores_merges(pre_)}
    };
    // ordered_json looks a key up in linear time, so pairs go in directly.
    Json::object_t vocabulary;
    std::set<std::string> seen;
    const auto& tokens = metadata_.texts("tokenizer.ggml.tokens");
    vocabulary.reserve(tokens.size());
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if (!seen.insert(tokens[i]).second) continue;
      vocabulary.Container::emplace_back(tokens[i], i);
    }
    out["vocab"] = std::move(vocabulary);
    out["merges"] = fallback ? piece_merges() : listed_merges();
    return out;
  }

  Json listed_merges() const {
    Json out = Json::array();
    const Vocabulary& known = *parts_.vocabulary;
    for (const std::string& merge : metadata_.texts("tokenizer.ggml.merges")) {
      const std::size_t space = merge.find(' ', 1);
      const std::string left = merge.substr(0, space);
      const std::string right = merge.substr(space + 1);
      const bool usable = known.find(left) >= 0 && known.find(right) >= 0 &&
                          known.find(left + right) >= 0;
      if (usable) out.push_back(Json::array({left, right}));
    }
    return out;
  }

  // Of a piece's ways to be made, the longest beginning first, as Hugging
  // Face's own conversion has it.
  Json piece_merges() const {
    auto merges = scored_merges(pieces_->pieces, *parts_.vocabulary);
    const auto length = [&](std::int32_t id) {
      return parts_.vocabulary->token(id).size();
    };
    std::ranges::stable_sort(merges, [&](const auto& a, const auto& b) {
      return a.rank != b.rank ? a.rank < b.rank
                              : length(a.left) > length(b.left);
    });
    Json out = Json::array();
    for (const ScoredMerge& m : merges) {
      out.push_back(Json::array({token(m.left), token(m.right)}));
    }
    return out;
  }

  // One text, or a list of named ones where there are several.
  Json chat_templates() const {
    constexpr std::string_view kKey = "tokenizer.chat_template";
    Json list = Json::array();
    for (const auto& [key, value] : metadata_.all()) {
      const auto* text = std::get_if<std::string>(&value);
      if (text == nullptr || !key.starts_with(kKey)) continue;
      const std::string rest = key.substr(kKey.size());
      if (!rest.empty() && !rest.starts_with('.')) continue;
      list.push_back(
          {{"name", rest.empty() ? "default" : rest.substr(1)},
           {"template", *text}}
      );
    }
    if (list.empty()) return nullptr;
    const bool one = list.size() == 1 && list[0]["name"] == "default";
    return one ? list[0]["template"] : list;
  }

  io::GgufMetadata metadata_;
  TokenizerParts parts_;
  std::string pre_;
  std::optional<ScoredPieces> pieces_;  // of a "llama" vocabulary
};

}  // namespace

std::vector<NamedText> gguf_tokenizer_files(const std::string& path) {
  if (!io::GgufMetadata::read(path).contains("tokenizer.ggml.tokens")) {
    return {};
  }
  const Translation made(path);
  return {
      {"tokenizer.json", to_json_text(made.tokenizer()) + "\n"},
      {"tokenizer_config.json", to_json_text(made.config()) + "\n"}
  };
}

}  // namespace hearth::text
