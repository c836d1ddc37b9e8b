#pragma once
// Base64 to bytes.
#include <string>
#include <string_view>

namespace hearth::text {

// Throws FormatError for anything but padded standard base64.
std::string decode_base64(std::string_view text);

}  // namespace hearth::text
