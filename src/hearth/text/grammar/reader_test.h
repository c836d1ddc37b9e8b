#pragma once
// A plain reader of rules for tests: tries every way to read the text,
// remembers where each part may end, shares no code with the automaton.
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "hearth/text/grammar/expr.h"

namespace hearth::text::grammar {

class PlainReader {
 public:
  explicit PlainReader(const Rules& rules) : rules_(rules) {}

  bool matches(std::string_view text) {
    return run(text).contains(text.size());
  }
  // Whether something can be appended to make it match. Holds for rules in
  // which every part can be completed.
  bool begins(std::string_view text) {
    return run(text).contains(text.size()) || wanted_more_;
  }

 private:
  using Ends = std::set<std::size_t>;

  Ends run(std::string_view text) {
    text_ = text;
    wanted_more_ = false;
    known_.clear();
    return ends(*body(rules_.root), 0);
  }
  const ExprPtr& body(int rule) const {
    return rules_.rules.at(static_cast<std::size_t>(rule)).body;
  }

  Ends ends(const Expr& e, std::size_t at) {
    const auto found = known_.find({&e, at});
    if (found != known_.end()) return found->second;
    return known_[{&e, at}] = read(e, at);
  }

  Ends read(const Expr& e, std::size_t at) {
    switch (e.kind) {
      case Expr::Kind::bytes:
        return after_bytes(e.bytes, at);
      case Expr::Kind::chars:
        return after_char(e, at);
      case Expr::Kind::rule:
        return ends(*body(e.rule), at);
      case Expr::Kind::repeat:
        return after_repeat(e, at);
      case Expr::Kind::choice: {
        Ends all;
        for (const ExprPtr& part : e.parts) all.merge(ends(*part, at));
        return all;
      }
      case Expr::Kind::sequence:
        break;
    }
    Ends now{at};
    for (const ExprPtr& part : e.parts) now = after_all(*part, now);
    return now;
  }

  Ends after_all(const Expr& e, const Ends& starts) {
    Ends all;
    for (const std::size_t start : starts) all.merge(ends(e, start));
    return all;
  }

  Ends after_repeat(const Expr& e, std::size_t at) {
    Ends now{at}, all;
    if (e.min == 0) all.insert(at);
    for (int i = 1; !now.empty() && (e.max == kNoLimit || i <= e.max); ++i) {
      now = after_all(*e.parts.front(), now);
      const std::size_t before = all.size();
      if (i >= e.min) all.insert(now.begin(), now.end());
      if (i > e.min && all.size() == before) break;
    }
    return all;
  }

  Ends after_bytes(const std::string& bytes, std::size_t at) {
    for (const char byte : bytes) {
      if (at == text_.size()) {
        wanted_more_ = true;
        return {};
      }
      if (text_[at++] != byte) return {};
    }
    return {at};
  }

  // Reads bits of a character until its range of possible values is a point.
  Ends after_char(const Expr& e, std::size_t at) {
    if (at == text_.size()) {
      wanted_more_ = true;
      return {};
    }
    const auto lead = static_cast<unsigned char>(text_[at]);
    const int size = lead < 0x80   ? 1
                     : lead < 0xC0 ? 0
                     : lead < 0xE0 ? 2
                     : lead < 0xF0 ? 3
                     : lead < 0xF8 ? 4
                                   : 0;
    if (size == 0) return {};
    char32_t value = size == 1 ? lead : lead & (0xFFU >> (size + 1));
    int have = 1;
    for (; have < size && at + static_cast<std::size_t>(have) < text_.size();
         ++have) {
      const auto byte = static_cast<unsigned char>(
          text_[at + static_cast<std::size_t>(have)]
      );
      if ((byte & 0xC0) != 0x80) return {};
      value = value << 6 | (byte & 0x3F);
    }
    const int missing = 6 * (size - have);
    char32_t low = value << missing;
    const char32_t high = low | ((char32_t{1} << missing) - 1);
    const char32_t smallest = size == 2   ? 0x80
                              : size == 3 ? 0x800
                              : size == 4 ? 0x10000
                                          : 0;
    if (high < smallest) return {};
    if (low < smallest) low = smallest;
    for (const CodeRange& range : e.chars) {
      if (range.first > high || range.last < low) continue;
      if (have == size) return {at + static_cast<std::size_t>(size)};
      wanted_more_ = true;
    }
    return {};
  }

  const Rules& rules_;
  std::string_view text_;
  bool wanted_more_ = false;
  std::map<std::pair<const Expr*, std::size_t>, Ends> known_;
};

}  // namespace hearth::text::grammar
