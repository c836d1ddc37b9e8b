#include "hearth/text/tokenizer/added_tokens.h"

#include <algorithm>
#include <cstring>

#include "hearth/text/tokenizer/unicode.h"
#include "hearth/text/tokenizer/utf8.h"

namespace hearth::text {
namespace {

bool is_word(std::string_view text, std::size_t at) {
  const CodePoint c = decode_utf8(text.data() + at);
  return (unicode::table()[c.value] & unicode::kRustWord) != 0;
}

bool stands_alone(std::string_view text, std::size_t begin, std::size_t end) {
  const bool left =
      begin == 0 || !is_word(text, previous_character(text, begin));
  return left && (end == text.size() || !is_word(text, end));
}

std::size_t spaces_before(std::string_view text, std::size_t at) {
  while (at > 0) {
    const std::size_t before = previous_character(text, at);
    if (!unicode::is_space(decode_utf8(text.data() + before).value)) break;
    at = before;
  }
  return at;
}

std::size_t spaces_after(std::string_view text, std::size_t at) {
  while (at < text.size()) {
    const CodePoint c = decode_utf8(text.data() + at);
    if (!unicode::is_space(c.value)) break;
    at += c.size;
  }
  return at;
}

}  // namespace

void StringSet::add(std::string_view text, std::size_t value) {
  if (text.empty()) return;
  std::int32_t node = 0;
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    PairTable::Merge child = children_.find(node, byte);
    if (child.merged < 0) {
      child = {0, nodes_++};
      children_.set(node, byte, child);
      values_.push_back(-1);
    }
    node = child.merged;
  }
  values_[static_cast<std::size_t>(node)] = static_cast<std::int64_t>(value);
  const auto first = static_cast<unsigned char>(text[0]);
  start_count_ += !starts_[first];
  starts_[first] = true;
  only_start_ = text[0];
}

bool StringSet::find(
    std::string_view text,
    std::size_t from,
    Found& found
) const {
  if (empty()) return false;
  for (std::size_t i = from; i < text.size(); ++i) {
    if (start_count_ == 1) {
      const void* hit =
          std::memchr(text.data() + i, only_start_, text.size() - i);
      if (!hit) return false;
      i = static_cast<std::size_t>(static_cast<const char*>(hit) - text.data());
    } else if (!starts_[static_cast<unsigned char>(text[i])]) {
      continue;
    }
    std::int32_t node = 0;
    std::size_t end = 0, value = 0;
    for (std::size_t j = i; j < text.size(); ++j) {
      node = children_.find(node, static_cast<unsigned char>(text[j])).merged;
      if (node < 0) break;
      const std::int64_t here = values_[static_cast<std::size_t>(node)];
      if (here < 0) continue;
      end = j + 1;
      value = static_cast<std::size_t>(here);
    }
    if (end) {
      found = {i, end, value};
      return true;
    }
  }
  return false;
}

void AddedTokens::add(AddedToken token) {
  if (token.content.empty()) return;
  const auto it = by_id_.find(token.id);
  const std::size_t index = it == by_id_.end() ? tokens_.size() : it->second;
  if (token.special) specials_.insert(token.content);
  by_content_[token.content] = index;
  if (it == by_id_.end()) {
    by_id_[token.id] = index;
    tokens_.push_back(std::move(token));
  } else {
    tokens_[index] = std::move(token);
  }
}

void AddedTokens::finish(const Normalizer* normalizer) {
  forms_.resize(tokens_.size());
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    const AddedToken& token = tokens_[i];
    if (!token.normalized) {
      plain_.add(token.content, i);
      continue;
    }
    std::string form = token.content;
    if (normalizer) normalizer->apply(form);
    normalized_.add(form, i);
    if (form != token.content) forms_[i] = std::move(form);
  }
}

const AddedToken* AddedTokens::find(std::int32_t id) const {
  const auto it = by_id_.find(id);
  return it == by_id_.end() ? nullptr : &tokens_[it->second];
}

const AddedToken* AddedTokens::find(std::string_view content) const {
  const auto it = by_content_.find(std::string(content));
  return it == by_content_.end() ? nullptr : &tokens_[it->second];
}

std::string_view AddedTokens::decoded(std::int32_t id) const {
  const std::size_t index = by_id_.at(id);
  return forms_[index].empty() ? tokens_[index].content : forms_[index];
}

void AddedTokens::split(
    std::string_view text,
    bool normalized,
    bool specials,
    std::span<const std::size_t> plain_at,
    OnText on_text,
    OnToken on_token
) const {
  const StringSet& set = normalized ? normalized_ : plain_;
  std::size_t done = 0, from = 0;
  for (StringSet::Found found; set.find(text, from, found);) {
    from = found.end;
    const AddedToken& token = tokens_[found.value];
    const bool plain =
        !specials || std::ranges::binary_search(plain_at, found.begin);
    if (token.special && plain) continue;
    std::size_t begin = found.begin, end = found.end;
    if (token.single_word && !stands_alone(text, begin, end)) continue;
    if (token.lstrip) begin = std::max(spaces_before(text, begin), done);
    if (token.rstrip) end = spaces_after(text, end);
    if (done < begin) on_text(text.substr(done, begin - done));
    on_token(token.id);
    done = end;
  }
  if (done < text.size()) on_text(text.substr(done));
}

}  // namespace hearth::text
