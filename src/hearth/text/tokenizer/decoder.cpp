#include "hearth/text/tokenizer/decoder.h"

#include <charconv>

#include "hearth/base/error.h"
#include "hearth/text/tokenizer/byte_alphabet.h"
#include "hearth/text/tokenizer/component_json.h"
#include "hearth/text/tokenizer/utf8.h"

namespace hearth::text {
namespace {

constexpr std::string_view kWhat = "decoder";
using Tokens = std::vector<std::string>;
using Step = std::unique_ptr<Decoder>;

void replace_all(
    std::string& text,
    std::string_view from,
    std::string_view to
) {
  if (from.empty()) return;
  std::size_t at = text.find(from);
  while (at != text.npos) {
    text.replace(at, from.size(), to);
    at = text.find(from, at + to.size());
  }
}

std::string joined(const Tokens& tokens) {
  std::string out;
  for (const std::string& token : tokens) out += token;
  return out;
}

class Sequence final : public Decoder {
 public:
  explicit Sequence(std::vector<Step> steps) : steps_(std::move(steps)) {}
  void apply(Tokens& tokens) const override {
    for (const Step& step : steps_) step->apply(tokens);
  }
  std::optional<JoiningDecoder> joining() const override {
    JoiningDecoder out;
    bool fused = false;
    for (const Step& step : steps_) {
      switch (step ? step->kind() : Kind::kOther) {
        case Kind::kEachToken:
          if (out.byte_fallback && !fused) return {};
          (fused ? out.whole : out.each).push_back(step.get());
          break;
        case Kind::kByteFallback:
          if (fused) return {};
          out.byte_fallback = true;
          break;
        case Kind::kFuse:
          fused = true;
          break;
        default:
          return {};
      }
    }
    return out;
  }

 private:
  std::vector<Step> steps_;
};

class ByteLevel final : public Decoder {
 public:
  void apply(Tokens& tokens) const override {
    std::string bytes;
    for (const std::string& token : tokens) {
      if (!append_spelled_bytes(bytes, token)) bytes += token;
    }
    tokens.assign(1, repair_utf8(bytes));
  }
};

class Replace final : public Decoder {
 public:
  Replace(std::unique_ptr<Matcher> matcher, std::string content)
      : matcher_(std::move(matcher)), content_(std::move(content)) {}
  void apply(Tokens& tokens) const override {
    for (std::string& token : tokens) {
      std::string out;
      std::size_t copied = 0;
      matcher_->find_all(token, [&](std::size_t begin, std::size_t end) {
        out.append(token, copied, begin - copied);
        out += content_;
        copied = end;
      });
      out.append(token, copied, std::string::npos);
      token.swap(out);
    }
  }
  Kind kind() const override { return Kind::kEachToken; }

 private:
  std::unique_ptr<Matcher> matcher_;
  std::string content_;
};

// Runs of <0xNN> tokens become their text, or one U+FFFD a byte.
class ByteFallback final : public Decoder {
 public:
  void apply(Tokens& tokens) const override {
    Tokens out;
    std::string bytes;
    const auto flush = [&] {
      if (bytes.empty()) return;
      if (is_valid_utf8(bytes)) {
        out.push_back(bytes);
      } else {
        out.insert(out.end(), bytes.size(), "\uFFFD");
      }
      bytes.clear();
    };
    for (std::string& token : tokens) {
      const int byte = fallback_byte(token);
      if (byte >= 0) {
        bytes += static_cast<char>(byte);
        continue;
      }
      flush();
      out.push_back(std::move(token));
    }
    flush();
    tokens.swap(out);
  }
  Kind kind() const override { return Kind::kByteFallback; }
};

class Fuse final : public Decoder {
 public:
  void apply(Tokens& tokens) const override {
    tokens.assign(1, joined(tokens));
  }
  Kind kind() const override { return Kind::kFuse; }
};

class Strip final : public Decoder {
 public:
  Strip(std::string content, std::size_t start, std::size_t stop)
      : content_(std::move(content)), start_(start), stop_(stop) {}
  void apply(Tokens& tokens) const override {
    for (std::string& token : tokens) {
      std::string_view rest = token;
      for (std::size_t i = 0; i < start_ && rest.starts_with(content_); ++i) {
        rest.remove_prefix(content_.size());
      }
      for (std::size_t i = 0; i < stop_ && rest.ends_with(content_); ++i) {
        rest.remove_suffix(content_.size());
      }
      token = std::string(rest);
    }
  }
  Kind kind() const override { return Kind::kEachToken; }

 private:
  std::string content_;
  std::size_t start_, stop_;
};

class Metaspace final : public Decoder {
 public:
  Metaspace(std::string mark, bool drop_first)
      : mark_(std::move(mark)), drop_first_(drop_first) {}
  void apply(Tokens& tokens) const override {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      replace_all(tokens[i], mark_, i == 0 && drop_first_ ? "" : " ");
    }
  }

 private:
  std::string mark_;
  bool drop_first_;
};

void clean_up(std::string& text) {
  constexpr std::string_view kPairs[][2] = {
      {" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
      {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
      {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}
  };
  for (const auto& pair : kPairs) replace_all(text, pair[0], pair[1]);
}

class WordPiece final : public Decoder {
 public:
  WordPiece(std::string prefix, bool cleanup)
      : prefix_(std::move(prefix)), cleanup_(cleanup) {}
  void apply(Tokens& tokens) const override {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      std::string& token = tokens[i];
      if (i && token.starts_with(prefix_)) {
        token.erase(0, prefix_.size());
      } else if (i) {
        token.insert(0, " ");
      }
      if (cleanup_) clean_up(token);
    }
  }

 private:
  std::string prefix_;
  bool cleanup_;
};

class BpeDecoder final : public Decoder {
 public:
  explicit BpeDecoder(std::string suffix) : suffix_(std::move(suffix)) {}
  void apply(Tokens& tokens) const override {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      replace_all(tokens[i], suffix_, i + 1 == tokens.size() ? "" : " ");
    }
  }

 private:
  std::string suffix_;
};

Step sequence_of(const Json& json) {
  std::vector<Step> steps;
  for (const Json& item : array_field(json, kWhat, "decoders")) {
    steps.push_back(make_decoder(item));
  }
  return std::make_unique<Sequence>(std::move(steps));
}

Step metaspace_of(const Json& json) {
  bool drop = bool_field(json, kWhat, "add_prefix_space", true);
  if (json.contains("prepend_scheme")) {
    drop = drop && string_field(json, kWhat, "prepend_scheme") != "never";
  }
  return std::make_unique<Metaspace>(
      char_field(json, kWhat, "replacement"), drop
  );
}

Step strip_of(const Json& json) {
  const auto count = [&](const char* key) {
    const std::int64_t value = int_field(json, kWhat, key, 0);
    if (value < 0) throw FormatError("decoder: Strip counts are not negative");
    return static_cast<std::size_t>(value);
  };
  return std::make_unique<Strip>(
      char_field(json, kWhat, "content"), count("start"), count("stop")
  );
}

}  // namespace

int fallback_byte(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') {
    return -1;
  }
  int value = 0;
  // Rust's parser takes a sign, so "<0x+F>" is a byte as well.
  const char* begin = token.data() + 3 + (token[3] == '+');
  const char* last = token.data() + 5;
  const auto [end, error] = std::from_chars(begin, last, value, 16);
  return error == std::errc{} && end == last && value >= 0 ? value : -1;
}

std::unique_ptr<Decoder> make_byte_level_decoder() {
  return std::make_unique<ByteLevel>();
}

std::unique_ptr<Decoder> make_decoder(const Json& json) {
  if (json.is_null()) return nullptr;
  const std::string type = component_type(json, kWhat);
  if (type == "Sequence") return sequence_of(json);
  if (type == "ByteLevel") return make_byte_level_decoder();
  if (type == "ByteFallback") return std::make_unique<ByteFallback>();
  if (type == "Fuse") return std::make_unique<Fuse>();
  if (type == "Strip") return strip_of(json);
  if (type == "Metaspace") return metaspace_of(json);
  if (type == "Replace") {
    return std::make_unique<Replace>(
        pattern_field(json, kWhat, "pattern"),
        string_field(json, kWhat, "content")
    );
  }
  if (type == "WordPiece") {
    return std::make_unique<WordPiece>(
        string_field(json, kWhat, "prefix"),
        bool_field(json, kWhat, "cleanup", true)
    );
  }
  if (type == "BPEDecoder") {
    return std::make_unique<BpeDecoder>(string_field(json, kWhat, "suffix"));
  }
  unknown_type(kWhat, type);
}

}  // namespace hearth::text
