#include "hearth/serve/api/embedding_answer.h"

#include <bit>
#include <cstdint>
#include <iterator>

#include <fmt/format.h>

#include "hearth/base/json.h"

namespace hearth::serve {
namespace {

std::string base64_of(std::string_view bytes) {
  constexpr std::string_view kLetters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::string_view some = bytes.substr(at, 3);
    std::uint32_t bits = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      const char c = i < some.size() ? some[i] : '\0';
      bits = bits << 8 | static_cast<unsigned char>(c);
    }
    for (std::size_t i = 0; i < 4; ++i) {
      out += i <= some.size() ? kLetters[bits >> (18 - 6 * i) & 63] : '=';
    }
  }
  return out;
}

std::string bytes_of(std::span<const float> vector) {
  std::string out;
  out.reserve(vector.size() * 4);
  for (const float value : vector) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    for (int shift = 0; shift < 32; shift += 8) {
      out += static_cast<char>(bits >> shift & 0xFF);
    }
  }
  return out;
}

}  // namespace

std::string vector_text(std::span<const float> vector, bool base64) {
  if (base64) return '"' + base64_of(bytes_of(vector)) + '"';
  return fmt::format("[{}]", fmt::join(vector, ","));
}

std::string embedding_answer(
    const std::string& model,
    const std::vector<std::string>& vectors,
    int prompt_tokens
) {
  std::string out = R"({"object":"list","data":[)";
  for (std::size_t i = 0; i < vectors.size(); ++i) {
    fmt::format_to(
        std::back_inserter(out),
        R"({}{{"object":"embedding","index":{},"embedding":{}}})",
        i == 0 ? "" : ",", i, vectors[i]
    );
  }
  fmt::format_to(
      std::back_inserter(out),
      R"(],"model":{},"usage":{{"prompt_tokens":{},"total_tokens":{}}}}})",
      to_json_line(Json(model)), prompt_tokens, prompt_tokens
  );
  return out;
}

}  // namespace hearth::serve
