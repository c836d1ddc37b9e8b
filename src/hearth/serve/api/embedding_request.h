#pragma once
// What a request to /v1/embeddings asks for.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hearth/serve/api/generation_request.h"

namespace hearth::serve {

struct EmbeddingRequest {
  std::string model;
  std::vector<TextOrIds> inputs;
  bool base64 = false;            // little-endian floats in it, else numbers
  std::optional<int> dimensions;  // so many of the first
};

EmbeddingRequest parse_embedding_request(
    std::string_view body,
    const RequestLimits& limits
);

}  // namespace hearth::serve
