// Ids back to text.
#include <algorithm>

#include "hearth/text/tokenizer/joiner_impl.h"
#include "hearth/text/tokenizer/tokenizer.h"
#include "hearth/text/tokenizer/tokenizer_parts.h"
#include "hearth/text/tokenizer/utf8.h"

namespace hearth::text {

bool Tokenizer::decodes_bytes() const {
  return parts_->decoded != nullptr;
}

bool Tokenizer::decode_bytes(
    std::span<const std::int32_t> ids,
    bool skip,
    std::string& out
) const {
  if (!parts_->decoded) return false;
  const auto [bytes, places] =
      std::pair(parts_->decoded->bytes, parts_->decoded->places);
  for (const std::int32_t id : ids) {
    if (id < 0 || static_cast<std::size_t>(id) + 1 >= places.size()) continue;
    if (skip && is_special(id)) continue;
    const std::uint32_t begin = places[static_cast<std::size_t>(id)];
    const std::uint32_t end = places[static_cast<std::size_t>(id) + 1];
    out.append(bytes, begin, end - begin);
  }
  return true;
}

std::string Tokenizer::decode(
    std::span<const std::int32_t> ids,
    bool skip_special
) const {
  std::string out;
  out.reserve(ids.size() * 5);
  if (decode_bytes(ids, skip_special, out)) {
    return is_valid_utf8(out) ? out : repair_utf8(out);
  }
  if (joiner_) {
    if (auto text = joiner_->decode(ids, skip_special)) return std::move(*text);
  }
  std::vector<std::string> tokens;
  tokens.reserve(ids.size());
  for (const std::int32_t id : ids) {
    const bool known =
        parts_->added.find(id) || parts_->vocabulary->contains(id);
    if (!known) continue;
    const std::string_view token = parts_->decoded_token(id);
    if (skip_special && parts_->added.is_special(token)) continue;
    tokens.emplace_back(token);
  }
  if (parts_->decoder) parts_->decoder->apply(tokens);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (i && !parts_->decoder) out += ' ';
    out += tokens[i];
  }
  return out;
}

std::string Tokenizer::decoded_bytes(std::int32_t id, bool skip_special) const {
  std::string out;
  decode_bytes({&id, 1}, skip_special, out);
  return out;
}

std::string Tokenizer::token_bytes(std::int32_t id) const {
  std::string out;
  if (is_special(id)) return out;
  if (decode_bytes({&id, 1}, false, out)) return out;
  if (!parts_->added.find(id) && !parts_->vocabulary->contains(id)) return out;
  std::string token(parts_->decoded_token(id));
  if (!parts_->decoder) return token;
  if (const int byte = fallback_byte(token); byte >= 0) {
    return {static_cast<char>(byte)};
  }
  // Behind another token, so that nothing is stripped as a text's beginning.
  std::vector<std::string> tokens = {"x", token};
  parts_->decoder->apply(tokens);
  for (const std::string& part : tokens) out += part;
  return out.substr(std::min<std::size_t>(1, out.size()));
}

}  // namespace hearth::text
