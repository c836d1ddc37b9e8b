// tokenizer.json: the vocabulary and merges are streamed, the small components
// are read as trees.
#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/text/json_cursor.h"
#include "hearth/text/tokenizer/bpe.h"
#include "hearth/text/tokenizer/component_json.h"
#include "hearth/text/tokenizer/post_processor.h"
#include "hearth/text/tokenizer/tokenizer_parts.h"
#include "hearth/text/tokenizer/unigram.h"

namespace hearth::text {
namespace {

constexpr std::size_t kMaxFile = std::size_t{512} << 20;

class Loader {
 public:
  Loader(
      std::string_view text,
      const std::string& name,
      const ReadyTables* ready
  )
      : json_(text, name), text_(text), name_(name), ready_(ready) {
    if (!ready) return;
    named([&] {
      parts_.vocabulary = std::make_unique<Vocabulary>(ready->vocabulary);
      merges_ = PairTable::borrow(ready->merges, parts_.vocabulary->id_limit());
    });
  }

  TokenizerParts run() {
    if (text_.size() > kMaxFile) {
      throw FormatError::at(name_, 0, "larger than 512 MiB");
    }
    parts_.format = "tokenizer.json";
    Json normalizer, pre_tokenizer, post_processor, decoder, model;
    std::string key;
    for (json_.begin_object(); json_.next_key(key);) {
      if (key == "normalizer") {
        normalizer = tree();
      } else if (key == "pre_tokenizer") {
        pre_tokenizer = tree();
      } else if (key == "post_processor") {
        post_processor = tree();
      } else if (key == "decoder") {
        decoder = tree();
      } else if (key == "truncation") {
        truncation_ = tree();
      } else if (key == "padding") {
        padding_ = tree();
      } else if (key == "added_tokens") {
        read_added();
      } else if (key == "model") {
        read_model();
        modelled_ = true;
      } else {
        json_.skip();
      }
    }
    json_.end();
    if (!modelled_) throw FormatError::at(name_, 0, "there is no \"model\"");
    named([&] {
      parts_.normalizer = make_normalizer(normalizer);
      parts_.pre = make_pre_tokenizers(pre_tokenizer);
      parts_.decoder = make_decoder(decoder);
      parts_.byte_level_decoder =
          decoder.is_object() && decoder["type"] == "ByteLevel";
      make_model();
      place_added();
      read_post_processor(post_processor, parts_);
      parts_.truncation = read_truncation(truncation_);
      parts_.padding = read_padding(padding_);
    });
    return std::move(parts_);
  }

  // The text with empty tables in place of the large ones; empty for a model
  // that has no merges.
  std::string rest() const {
    if (scored_ || !has_merges_) return {};
    Span first{vocabulary_at_, "{}"}, second{merges_at_, "[]"};
    if (second.at.begin < first.at.begin) std::swap(first, second);
    std::string out(text_.substr(0, first.at.begin));
    out += first.empty;
    out += text_.substr(first.at.end, second.at.begin - first.at.end);
    out += second.empty;
    return out.append(text_.substr(second.at.end));
  }

 private:
  struct Place {
    std::size_t begin = 0, end = 0;
  };
  struct Span {
    Place at;
    std::string_view empty;
  };

  // Errors of a component do not know the file.
  template <class Body>
  void named(Body body) {
    try {
      body();
    } catch (const FormatError& error) {
      throw FormatError::at(name_, 0, error.what());
    }
  }

  Json tree() { return parse_json(json_.skip(), name_); }

  void read_added() {
    std::string key;
    for (json_.begin_array(); json_.next_item();) {
      AddedToken token;
      token.normalized = true;
      for (json_.begin_object(); json_.next_key(key);) {
        if (key == "content") {
          token.content = json_.string();
        } else if (key == "id") {
          token.id = id(json_.integer());
        } else if (key == "single_word") {
          token.single_word = json_.boolean();
        } else if (key == "lstrip") {
          token.lstrip = json_.boolean();
        } else if (key == "rstrip") {
          token.rstrip = json_.boolean();
        } else if (key == "normalized") {
          token.normalized = json_.boolean();
        } else if (key == "special") {
          token.special = json_.boolean();
        } else {
          json_.skip();
        }
      }
      if (token.id < 0) json_.fail("an added token has no id");
      added_.push_back(std::move(token));
    }
  }

  std::int32_t id(std::int64_t value) {
    if (value < 0 || value > Vocabulary::kMaxId) {
      json_.fail(fmt::format("token id {} is out of range", value));
    }
    return static_cast<std::int32_t>(value);
  }

  void read_model() {
    std::string key;
    std::size_t merges = 0;  // where they are, if they came first
    bool seen = false;
    for (json_.begin_object(); json_.next_key(key);) {
      const std::size_t begin = json_.position();
      if (key == "vocab") {
        read_vocabulary();
        seen = true;
        vocabulary_at_ = {begin, json_.position()};
      } else if (key == "merges") {
        has_merges_ = true;
        if (seen) {
          read_merges();
        } else {
          merges = begin;
          json_.skip();
        }
        merges_at_ = {begin, json_.position()};
      } else {
        model_[key] = tree();
      }
    }
    if (!seen) json_.fail("the model has no \"vocab\"");
    if (!merges) return;
    const std::size_t end = json_.position();
    json_.seek(merges);
    read_merges();
    json_.seek(end);
  }

  void read_vocabulary() {
    if (ready_) return void(json_.skip());
    Vocabulary& vocabulary = *parts_.vocabulary;
    std::string token;
    if (json_.peek() == '[') {
      scored_ = true;
      for (json_.begin_array(); json_.next_item();) {
        json_.begin_array();
        if (!json_.next_item())
          json_.fail("a token and its score must stand here");
        token = json_.string();
        if (!json_.next_item())
          json_.fail("a token and its score must stand here");
        vocabulary.add(token, id(static_cast<std::int64_t>(scores_.size())));
        scores_.push_back(json_.number());
        if (json_.next_item())
          json_.fail("a token and its score must stand here");
      }
      return;
    }
    // About a token every 18 bytes of file, when it is mostly vocabulary.
    vocabulary.reserve(text_.size() / 64, text_.size() / 4);
    for (json_.begin_object(); json_.next_key(token);) {
      vocabulary.add(token, id(json_.integer()));
    }
  }

  void read_merges() {
    if (ready_) return void(json_.skip());
    merges_.reserve(text_.size() / 48);
    const bool prefixed = model_.contains("continuing_subword_prefix") &&
                          model_["continuing_subword_prefix"].is_string();
    const std::string prefix =
        prefixed ? model_["continuing_subword_prefix"].get<std::string>() : "";
    std::string left, right, both;
    std::uint32_t rank = 0;
    for (json_.begin_array(); json_.next_item();) {
      if (json_.peek() == '"') {
        both.clear();
        json_.read_string(both);
        if (both.starts_with("#version")) continue;
        const std::size_t space = both.find(' ');
        if (space == both.npos || both.find(' ', space + 1) != both.npos) {
          json_.fail("a merge must be two tokens with a space between");
        }
        left.assign(both, 0, space);
        right.assign(both, space + 1, both.npos);
      } else {
        read_pair(left, right);
      }
      add_merge(left, right, prefix, rank++);
    }
  }

  void read_pair(std::string& left, std::string& right) {
    left.clear();
    right.clear();
    json_.begin_array();
    if (json_.next_item()) json_.read_string(left);
    if (json_.next_item()) json_.read_string(right);
    if (json_.next_item()) json_.fail("a merge must be two tokens");
  }

  void add_merge(
      const std::string& left,
      const std::string& right,
      const std::string& prefix,
      std::uint32_t rank
  ) {
    const Vocabulary& vocabulary = *parts_.vocabulary;
    const std::int32_t a = vocabulary.find(left), b = vocabulary.find(right);
    merged_ = left;
    if (prefix.size() <= right.size()) {
      merged_.append(right, prefix.size(), right.npos);
    }
    const std::int32_t c = vocabulary.find(merged_);
    if (a < 0 || b < 0 || c < 0) {
      json_.fail(
          fmt::format(
              "merge {} names \"{}\", which is not in the vocabulary", rank,
              a < 0   ? left
              : b < 0 ? right
                      : merged_
          )
      );
    }
    merges_.set(a, b, {rank, c});
  }

  void make_model() {
    std::string type = scored_ ? "Unigram" : "BPE";
    if (model_.contains("type")) type = component_type(model_, "model");
    if (type == "BPE" && !scored_ && has_merges_) return make_bpe();
    if (type == "Unigram" && scored_) return make_unigram();
    if (type == "BPE" || type == "Unigram") {
      throw FormatError(
          type == "BPE" ? "model: BPE needs a vocabulary object and merges"
                        : "model: Unigram needs a list of tokens with scores"
      );
    }
    unknown_type("model", type);
  }

  std::string text_field(const char* key) {
    const auto it = model_.find(key);
    if (it == model_.end() || it->is_null()) return {};
    return string_field(model_, "model", key);
  }

  void make_bpe() {
    BpeOptions options;
    options.byte_level = parts_.pre.byte_level;
    options.fuse_unknown = bool_field(model_, "model", "fuse_unk", false);
    options.byte_fallback = bool_field(model_, "model", "byte_fallback", false);
    options.ignore_merges = bool_field(model_, "model", "ignore_merges", false);
    options.continuing_prefix = text_field("continuing_subword_prefix");
    options.end_suffix = text_field("end_of_word_suffix");
    // Affixes are put around spelled characters, which raw bytes are not.
    if (options.byte_level &&
        !(options.continuing_prefix.empty() && options.end_suffix.empty())) {
      throw FormatError("model: byte-level BPE with subword affixes");
    }
    const std::string unknown = text_field("unk_token");
    if (!unknown.empty()) {
      options.unknown = parts_.vocabulary->find(unknown);
      if (options.unknown >= 0) parts_.unk = options.unknown;
    }
    parts_.model = std::make_unique<Bpe>(
        *parts_.vocabulary, std::move(merges_), std::move(options)
    );
  }

  void make_unigram() {
    const std::int64_t unknown = int_field(model_, "model", "unk_id", -1);
    if (unknown >= static_cast<std::int64_t>(scores_.size())) {
      throw FormatError("model: unk_id is past the end of the vocabulary");
    }
    // Raw bytes have no meaning to this model.
    if (parts_.pre.byte_level) {
      throw FormatError("model: Unigram after a ByteLevel pre_tokenizer");
    }
    if (unknown >= 0) parts_.unk = static_cast<std::int32_t>(unknown);
    parts_.model = std::make_unique<Unigram>(
        *parts_.vocabulary, std::move(scores_),
        static_cast<std::int32_t>(unknown),
        bool_field(model_, "model", "byte_fallback", false)
    );
  }

  // The reference does not believe the ids of the list: a token the model
  // knows keeps the model's id, the others are numbered from its size on.
  void place_added() {
    auto next = static_cast<std::int32_t>(parts_.vocabulary->size());
    for (AddedToken& token : added_) {
      if (token.content.empty()) continue;
      token.id = parts_.vocabulary->find(token.content);
      const AddedToken* again = parts_.added.find(token.content);
      if (again) token.id = again->id;
      if (token.id < 0) token.id = next++;
      parts_.added.add(std::move(token));
    }
    parts_.added.finish(parts_.normalizer.get());
  }

  JsonCursor json_;
  std::string_view text_;
  const std::string& name_;
  const ReadyTables* ready_;
  Place vocabulary_at_, merges_at_;
  TokenizerParts parts_;
  std::vector<AddedToken> added_;
  Json model_ = Json::object(), truncation_, padding_;
  std::vector<double> scores_;
  PairTable merges_;
  std::string merged_;
  bool scored_ = false, has_merges_ = false, modelled_ = false;
};

}  // namespace

TokenizerParts read_tokenizer_json(
    std::string_view text,
    const std::string& name,
    std::string* rest,
    const ReadyTables* ready
) {
  Loader loader(text, name, ready);
  TokenizerParts parts = loader.run();
  if (rest) *rest = loader.rest();
  return parts;
}

}  // namespace hearth::text
