#include "hearth/text/tokenizer/normalizer.h"

#include "hearth/base/error.h"
#include "hearth/text/tokenizer/base64.h"
#include "hearth/text/tokenizer/byte_alphabet.h"
#include "hearth/text/tokenizer/component_json.h"
#include "hearth/text/tokenizer/unicode.h"
#include "hearth/text/tokenizer/utf8.h"

namespace hearth::text {
namespace {

constexpr std::string_view kWhat = "normalizer";

class Sequence final : public Normalizer {
 public:
  explicit Sequence(std::vector<std::unique_ptr<Normalizer>> steps)
      : steps_(std::move(steps)) {}
  void apply(std::string& text) const override {
    for (const auto& step : steps_) step->apply(text);
  }

 private:
  std::vector<std::unique_ptr<Normalizer>> steps_;
};

class NormalForm final : public Normalizer {
 public:
  explicit NormalForm(unicode::Form form) : form_(form) {}
  void apply(std::string& text) const override {
    std::string out;
    if (unicode::normalize(text, form_, out)) text.swap(out);
  }

 private:
  unicode::Form form_;
};

// Text that becomes empty stays so: nothing is prepended to nothing.
class Prepend final : public Normalizer {
 public:
  explicit Prepend(std::string prefix) : prefix_(std::move(prefix)) {}
  void apply(std::string& text) const override {
    if (!text.empty()) text.insert(0, prefix_);
  }

 private:
  std::string prefix_;
};

class Replace final : public Normalizer {
 public:
  Replace(std::unique_ptr<Matcher> matcher, std::string content)
      : matcher_(std::move(matcher)), content_(std::move(content)) {}
  void apply(std::string& text) const override {
    std::string out;
    std::size_t copied = 0;
    bool changed = false;
    matcher_->find_all(text, [&](std::size_t begin, std::size_t end) {
      if (!changed) out.reserve(text.size() + text.size() / 2);
      changed = true;
      out.append(text, copied, begin - copied);
      out += content_;
      copied = end;
    });
    if (!changed) return;
    out.append(text, copied, std::string::npos);
    text.swap(out);
  }

 private:
  std::unique_ptr<Matcher> matcher_;
  std::string content_;
};

class Strip final : public Normalizer {
 public:
  Strip(bool left, bool right) : left_(left), right_(right) {}
  void apply(std::string& text) const override {
    std::size_t end = text.size(), begin = 0;
    while (right_ && end > 0) {
      const std::size_t at = previous_character(text, end);
      if (!unicode::is_space(decode_utf8(text.data() + at).value)) break;
      end = at;
    }
    while (left_ && begin < end) {
      const CodePoint c = decode_utf8(text.data() + begin);
      if (!unicode::is_space(c.value)) break;
      begin += c.size;
    }
    text = text.substr(begin, end - begin);
  }

 private:
  bool left_, right_;
};

// Character by character: `map` appends what becomes of each.
class Each final : public Normalizer {
 public:
  using Map = void (*)(std::string& out, std::uint32_t c);
  explicit Each(Map map) : map_(map) {}
  void apply(std::string& text) const override {
    std::string out;
    out.reserve(text.size());
    for (std::size_t i = 0; i < text.size();) {
      const CodePoint c = decode_utf8(text.data() + i);
      map_(out, c.value);
      i += c.size;
    }
    text.swap(out);
  }

 private:
  Map map_;
};

void strip_accent(std::string& out, std::uint32_t c) {
  if (!(unicode::table()[c] & unicode::kAccent)) append_utf8(out, c);
}

// Control characters vanish, kinds of space become a space.
void nmt(std::string& out, std::uint32_t c) {
  const bool dropped = (c >= 1 && c <= 8) || c == 0xB ||
                       (c >= 0xE && c <= 0x1F) || c == 0x7F || c == 0x8F ||
                       c == 0x9F;
  if (dropped) return;
  const bool space = c == 9 || c == 0xA || c == 0xC || c == 0xD ||
                     c == 0x1680 || (c >= 0x200B && c <= 0x200F) ||
                     c == 0x2028 || c == 0x2029 || c == 0x2581 || c == 0xFEFF ||
                     c == 0xFFFD;
  append_utf8(out, space ? ' ' : c);
}

class ByteLevel final : public Normalizer {
 public:
  void apply(std::string& text) const override {
    std::string out;
    append_byte_spelling(out, text);
    text.swap(out);
  }
};

class SqueezeSpaces final : public Normalizer {
 public:
  void apply(std::string& text) const override {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
      const bool repeated = out.empty() || out.back() == ' ';
      if (text[i] != ' ' || !repeated) out += text[i];
    }
    // The mark that will stand for a space counts as one here, and only here.
    constexpr std::string_view kMark = "\u2581";
    while (out.ends_with(' ') || out.ends_with(kMark)) {
      out.resize(out.size() - (out.back() == ' ' ? 1 : kMark.size()));
    }
    text.swap(out);
  }
};

std::unique_ptr<Normalizer> sequence_of(const Json& json) {
  std::vector<std::unique_ptr<Normalizer>> steps;
  for (const Json& item : array_field(json, kWhat, "normalizers")) {
    steps.push_back(make_normalizer(item));
  }
  return make_sequence(std::move(steps));
}

}  // namespace

std::unique_ptr<Normalizer> make_sequence(
    std::vector<std::unique_ptr<Normalizer>> steps
) {
  return std::make_unique<Sequence>(std::move(steps));
}
std::unique_ptr<Normalizer> make_prepend(std::string prefix) {
  return std::make_unique<Prepend>(std::move(prefix));
}
std::unique_ptr<Normalizer> make_replace(std::string from, std::string to) {
  return std::make_unique<Replace>(
      make_literal_matcher(std::move(from)), std::move(to)
  );
}
std::unique_ptr<Normalizer> make_squeeze_spaces() {
  return std::make_unique<SqueezeSpaces>();
}

std::unique_ptr<Normalizer> make_normalizer(const Json& json) {
  if (json.is_null()) return nullptr;
  const std::string type = component_type(json, kWhat);
  const auto form = [](unicode::Form f) {
    return std::make_unique<NormalForm>(f);
  };
  if (type == "Sequence") return sequence_of(json);
  if (type == "NFC") return form(unicode::Form::kNfc);
  if (type == "NFD") return form(unicode::Form::kNfd);
  if (type == "NFKC") return form(unicode::Form::kNfkc);
  if (type == "NFKD") return form(unicode::Form::kNfkd);
  if (type == "Prepend") {
    return make_prepend(string_field(json, kWhat, "prepend"));
  }
  if (type == "Replace") {
    return std::make_unique<Replace>(
        pattern_field(json, kWhat, "pattern"),
        string_field(json, kWhat, "content")
    );
  }
  if (type == "Strip") {
    return std::make_unique<Strip>(
        bool_field(json, kWhat, "strip_left", true),
        bool_field(json, kWhat, "strip_right", true)
    );
  }
  if (type == "Lowercase") {
    return std::make_unique<Each>(unicode::append_lower);
  }
  if (type == "StripAccents") return std::make_unique<Each>(strip_accent);
  if (type == "Nmt") return std::make_unique<Each>(nmt);
  if (type == "ByteLevel") return std::make_unique<ByteLevel>();
  if (type == "Precompiled") {
    return make_charsmap(
        decode_base64(string_field(json, kWhat, "precompiled_charsmap")), true
    );
  }
  unknown_type(kWhat, type);
}

}  // namespace hearth::text
