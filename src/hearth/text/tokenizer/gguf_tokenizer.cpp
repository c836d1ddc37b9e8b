// The tokenizer in a GGUF file's metadata, as llama.cpp writes it.
#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/text/tokenizer/bpe.h"
#include "hearth/text/tokenizer/gguf_tokenizer_impl.h"
#include "hearth/text/tokenizer/known_patterns.h"
#include "hearth/text/tokenizer/utf8.h"

namespace hearth::text {
namespace {

class Loader {
 public:
  explicit Loader(const io::GgufMetadata& metadata)
      : metadata_(metadata),
        tokens_(metadata.texts("tokenizer.ggml.tokens")),
        scores_(metadata.numbers("tokenizer.ggml.scores")),
        types_(metadata.numbers("tokenizer.ggml.token_type")) {
    for (const auto* list : {&scores_, &types_}) {
      if (!list->empty() && list->size() != tokens_.size()) {
        fail("scores or types are not as many as the tokens");
      }
    }
    if (tokens_.size() > static_cast<std::size_t>(Vocabulary::kMaxId)) {
      fail("too many tokens");
    }
    for (const std::string& token : tokens_) {
      if (!is_valid_utf8(token)) fail("a token is not UTF-8");
    }
  }

  TokenizerParts run() {
    const std::string model = metadata_.text("tokenizer.ggml.model");
    if (model == "gpt2") return byte_level();
    if (model == "llama" || model == "t5") return pieces(model == "t5");
    fail(fmt::format("tokenizer.ggml.model \"{}\" is not known", model));
  }

 private:
  [[noreturn]] void fail(std::string_view what) const {
    throw FormatError::at(metadata_.name(), 0, what);
  }

  PieceType type(std::size_t i) const {
    const int value = types_.empty() ? 1 : static_cast<int>(types_[i]);
    return value >= 1 && value <= 6 ? static_cast<PieceType>(value)
                                    : PieceType::kNormal;
  }

  std::int32_t id(const char* key, std::int64_t fallback) const {
    const std::int64_t value = metadata_.integer(
        fmt::format("tokenizer.ggml.{}_token_id", key), fallback
    );
    const bool known =
        value >= 0 && value < static_cast<std::int64_t>(tokens_.size());
    return known ? static_cast<std::int32_t>(value) : -1;
  }

  void finish(TokenizerParts& parts, bool add_bos) const {
    parts.format = "gguf";
    const auto set = [&](const char* key, std::optional<std::int32_t>& out) {
      if (id(key, -1) >= 0) out = id(key, -1);
    };
    set("bos", parts.bos);
    set("eos", parts.eos);
    set("padding", parts.pad);
    set("unknown", parts.unk);
    parts.prefix.clear();
    parts.suffix.clear();
    if (metadata_.boolean("tokenizer.ggml.add_bos_token", add_bos) &&
        parts.bos) {
      parts.prefix = {*parts.bos};
    }
    if (metadata_.boolean("tokenizer.ggml.add_eos_token", false) && parts.eos) {
      parts.suffix = {*parts.eos};
    }
  }

  TokenizerParts pieces(bool unigram) {
    TokenizerParts parts = assemble(scored(unigram));
    finish(parts, true);
    return parts;
  }

 public:
  ScoredPieces scored(bool unigram) const {
    ScoredPieces in;
    in.unigram = unigram;
    in.byte_fallback = true;
    in.dummy_prefix =
        metadata_.boolean("tokenizer.ggml.add_space_prefix", true);
    in.squeeze_spaces =
        metadata_.boolean("tokenizer.ggml.remove_extra_whitespaces", false);
    in.unk = id("unknown", 0);
    in.bos = id("bos", 1);
    in.eos = id("eos", 2);
    in.pad = id("padding", -1);
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      const float score =
          scores_.empty() ? 0.0f : static_cast<float>(scores_[i]);
      in.pieces.push_back({tokens_[i], score, type(i)});
    }
    return in;
  }

 private:
  TokenizerParts byte_level() {
    TokenizerParts parts;
    Vocabulary& vocabulary = *parts.vocabulary;
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      const auto own = static_cast<std::int32_t>(i);
      vocabulary.add(tokens_[i], own);
      const bool control =
          type(i) == PieceType::kControl || type(i) == PieceType::kUnknown;
      if (control || type(i) == PieceType::kUserDefined) {
        parts.added.add({.content = tokens_[i], .id = own, .special = control});
      }
    }
    const std::string pre = metadata_.text("tokenizer.ggml.pre", "default");
    parts.pre = make_byte_level_split(gguf_patterns(pre, metadata_.name()));
    BpeOptions options;
    options.byte_level = true;
    options.ignore_merges = gguf_ignores_merges(pre);
    parts.model =
        std::make_unique<Bpe>(vocabulary, merges(vocabulary), options);
    parts.decoder = make_byte_level_decoder();
    parts.byte_level_decoder = true;
    parts.added.finish(nullptr);
    finish(parts, gguf_ignores_merges(pre));
    return parts;
  }

  PairTable merges(const Vocabulary& vocabulary) const {
    PairTable table;
    std::uint32_t rank = 0;
    for (const std::string& merge : metadata_.texts("tokenizer.ggml.merges")) {
      const std::size_t space = merge.find(' ', 1);
      if (space == merge.npos) fail("a merge must be two tokens");
      const std::string left = merge.substr(0, space);
      const std::string right = merge.substr(space + 1);
      const std::int32_t a = vocabulary.find(left);
      const std::int32_t b = vocabulary.find(right);
      const std::int32_t both = vocabulary.find(left + right);
      if (a >= 0 && b >= 0 && both >= 0) table.set(a, b, {rank, both});
      ++rank;
    }
    return table;
  }

  const io::GgufMetadata& metadata_;
  const std::vector<std::string>& tokens_;
  std::vector<double> scores_, types_;
};

}  // namespace

std::vector<std::string_view> gguf_patterns(
    const std::string& pre,
    const std::string& file
) {
  using Patterns = std::vector<std::string_view>;
  if (pre == "gpt-2" || pre == "default" || pre.empty()) {
    return Patterns{kGpt2Pattern};
  }
  if (pre == "llama-bpe" || pre == "llama3" || pre == "llama-v3") {
    return Patterns{kLlama3Pattern};
  }
  if (pre == "qwen2") return Patterns{kQwen2Pattern};
  if (pre == "tekken") return Patterns{kNemoPattern};
  if (pre == "gpt-4o") return Patterns{kGpt4oPattern};
  if (pre == "smollm" || pre == "starcoder" || pre == "refact" ||
      pre == "command-r" || pre == "codeshell") {
    return {R"(\p{N})", kGpt2Pattern};
  }
  if (pre == "deepseek-coder") {
    return {
        R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)",
        "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+", R"(\p{N})"
    };
  }
  if (pre == "deepseek-v3") {
    return {kThreeNumbersPattern, kHanAndKanaPattern, kDeepSeekPattern};
  }
  throw FormatError::at(
      file, 0, fmt::format("tokenizer.ggml.pre \"{}\" is not known", pre)
  );
}

bool gguf_ignores_merges(const std::string& pre) {
  return pre == "llama-bpe" || pre == "tekken";
}

ScoredPieces gguf_pieces(const io::GgufMetadata& metadata) {
  return Loader(metadata).scored(false);
}

TokenizerParts read_gguf_tokenizer(const io::GgufMetadata& metadata) {
  return Loader(metadata).run();
}

TokenizerParts read_gguf_tokenizer(const std::string& path) {
  return read_gguf_tokenizer(io::GgufMetadata::read(path));
}

}  // namespace hearth::text
