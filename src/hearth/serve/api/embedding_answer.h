#pragma once
// Vectors in OpenAI's JSON.
#include <span>
#include <string>
#include <vector>

namespace hearth::serve {

// The vector as a list of numbers, each with as few digits as identify it; or
// its little-endian bytes in base64, in quotes.
std::string vector_text(std::span<const float> vector, bool base64);

// {"object":"list","data":[…],"model":…,"usage":…}; `vectors` as written above.
std::string embedding_answer(
    const std::string& model,
    const std::vector<std::string>& vectors,
    int prompt_tokens
);

}  // namespace hearth::serve
