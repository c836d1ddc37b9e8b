#include "hearth/text/tokenizer/tokenizer_parts.h"

#include <algorithm>

#include "hearth/text/tokenizer/byte_alphabet.h"

namespace hearth::text {

std::size_t TokenizerParts::id_limit() const {
  std::size_t limit = vocabulary->id_limit();
  for (const AddedToken& token : added.all()) {
    limit = std::max(limit, static_cast<std::size_t>(token.id) + 1);
  }
  return limit;
}

std::string_view TokenizerParts::decoded_token(std::int32_t id) const {
  if (added.find(id)) return added.decoded(id);
  return vocabulary->token(id);
}

void TokenizerParts::decode_ahead() {
  if (!byte_level_decoder || decoded) return;
  auto made = std::make_unique<DecodedBytes>();
  const auto limit = static_cast<std::int32_t>(id_limit());
  made->own_places.reserve(static_cast<std::size_t>(limit) + 1);
  std::string& bytes = made->own_bytes;
  for (std::int32_t id = 0; id < limit; ++id) {
    made->own_places.push_back(static_cast<std::uint32_t>(bytes.size()));
    const std::string_view token = decoded_token(id);
    if (!append_spelled_bytes(bytes, token)) bytes += token;
  }
  made->own_places.push_back(static_cast<std::uint32_t>(bytes.size()));
  made->bytes = bytes;
  made->places = made->own_places;
  decoded = std::move(made);
}

}  // namespace hearth::text
