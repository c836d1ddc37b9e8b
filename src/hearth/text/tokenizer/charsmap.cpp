// SentencePiece's precompiled normalisation: a double-array trie of source
// strings whose values point into a block of zero-ended replacements.
#include <cstring>

#include "hearth/base/error.h"
#include "hearth/text/tokenizer/normalizer.h"
#include "hearth/text/tokenizer/unicode.h"
#include "hearth/text/tokenizer/utf8.h"

namespace hearth::text {
namespace {

class Charsmap final : public Normalizer {
 public:
  Charsmap(std::string blob, bool clusters) : clusters_(clusters) {
    std::uint32_t trie_bytes = 0;
    if (blob.size() >= 4) std::memcpy(&trie_bytes, blob.data(), 4);
    if (blob.size() < 4 || trie_bytes % 4 || trie_bytes > blob.size() - 4) {
      throw FormatError("precompiled charsmap is cut short");
    }
    units_.resize(trie_bytes / 4);
    if (trie_bytes > 0) std::memcpy(units_.data(), blob.data() + 4, trie_bytes);
    texts_ = blob.substr(4 + trie_bytes);
    if (texts_.empty() || texts_.back() != '\0') texts_ += '\0';
  }

  void apply(std::string& text) const override {
    std::string out;
    out.reserve(text.size());
    for (std::size_t i = 0; i < text.size();) {
      i += clusters_ ? cluster(text, i, out) : longest(text, i, out);
    }
    text.swap(out);
  }

 private:
  struct Found {
    std::size_t size = 0;  // bytes of the source; 0: none
    std::uint32_t value = 0;
  };

  std::uint32_t unit(std::size_t i) const {
    return i < units_.size() ? units_[i] : 0;
  }
  static std::uint32_t offset(std::uint32_t u) {
    return (u >> 10) << ((u & (1u << 9)) >> 6);
  }

  // Shortest or longest key that is a prefix of text.
  Found search(std::string_view text, bool shortest) const {
    Found found;
    if (units_.empty()) return found;
    std::size_t node = offset(units_[0]);
    for (std::size_t i = 0; i < text.size(); ++i) {
      const auto label = static_cast<unsigned char>(text[i]);
      if (label == 0) break;
      node ^= label;
      const std::uint32_t u = unit(node);
      if ((u & ((1u << 31) | 0xFF)) != label) break;
      node ^= offset(u);
      if (u >> 8 & 1) {
        found = {i + 1, unit(node) & ((1u << 31) - 1)};
        if (shortest) break;
      }
    }
    return found;
  }

  std::string_view text_at(std::uint32_t value) const {
    return value < texts_.size() ? std::string_view(texts_.data() + value)
                                 : std::string_view();
  }

  std::size_t longest(
      std::string_view text,
      std::size_t i,
      std::string& out
  ) const {
    if (const Found found = search(text.substr(i), false); found.size) {
      out += text_at(found.value);
      return found.size;
    }
    const std::size_t size = utf8_size(text[i]);
    out.append(text, i, size);
    return size;
  }

  // What Hugging Face does: a short cluster is looked up whole, where the
  // first key found on the way counts; else each of its characters is.
  std::size_t cluster(
      std::string_view text,
      std::size_t i,
      std::string& out
  ) const {
    const std::size_t end = cluster_end(text, i);
    const std::string_view part = text.substr(i, end - i);
    if (part.size() < 6) {
      if (const Found found = search(part, true); found.size) {
        out += text_at(found.value);
        return part.size();
      }
    }
    for (std::size_t at = 0; at < part.size();) {
      const std::string_view one = part.substr(at, utf8_size(part[at]));
      const Found found = search(one, true);
      out += found.size ? text_at(found.value) : one;
      at += one.size();
    }
    return part.size();
  }

  static bool extends(std::uint32_t c) {
    const unicode::Category k = unicode::category(c);
    return k == unicode::kMn || k == unicode::kMe || k == unicode::kMc ||
           c == 0x200C || c == 0x200D || (c >= 0x1F3FB && c <= 0x1F3FF) ||
           (c >= 0xFF9E && c <= 0xFF9F);
  }
  // 1 leading consonant, 2 vowel, 3 trailing consonant, 4 LV, 5 LVT
  static int hangul(std::uint32_t c) {
    if (c >= 0x1100 && c <= 0x115F) return 1;
    if (c >= 0x1160 && c <= 0x11A7) return 2;
    if (c >= 0x11A8 && c <= 0x11FF) return 3;
    if (c >= 0xAC00 && c <= 0xD7A3) return (c - 0xAC00) % 28 ? 5 : 4;
    return 0;
  }
  static bool joined(int left, int right) {
    if (left == 1) return right == 1 || right == 2 || right >= 4;
    if (left == 2 || left == 4) return right == 2 || right == 3;
    return (left == 3 || left == 5) && right == 3;
  }

  // Extended grapheme clusters, as far as keys of under six bytes can tell.
  static std::size_t cluster_end(std::string_view text, std::size_t i) {
    CodePoint c = decode_utf8(text.data() + i);
    std::size_t end = i + c.size;
    if (text.substr(i, 2) == "\r\n") return i + 2;
    if (unicode::category(c.value) == unicode::kCc) return end;
    while (end < text.size()) {
      const CodePoint next = decode_utf8(text.data() + end);
      if (!extends(next.value) &&
          !joined(hangul(c.value), hangul(next.value))) {
        break;
      }
      c = next;
      end += next.size;
    }
    return end;
  }

  bool clusters_;
  std::vector<std::uint32_t> units_;
  std::string texts_;
};

}  // namespace

std::unique_ptr<Normalizer> make_charsmap(std::string blob, bool clusters) {
  return std::make_unique<Charsmap>(std::move(blob), clusters);
}

}  // namespace hearth::text
