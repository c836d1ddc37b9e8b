#pragma once
// Text from outside inside a message: one line, cut, nothing that a terminal
// would act on.
#include <string>
#include <string_view>

namespace hearth {

inline std::string in_quotes(std::string_view text, std::size_t longest = 120) {
  std::string out = "'";
  for (const char c : text.substr(0, longest)) {
    const auto byte = static_cast<unsigned char>(c);
    out += byte < ' ' || byte >= 0x7f ? '?' : c;
  }
  return out + (text.size() > longest ? "...'" : "'");
}

}  // namespace hearth
