#pragma once
// The bytes of a page as its writer had them before they were compressed.
#include <cstdint>
#include <string>
#include <string_view>

namespace hearth::data::parquet {

// Replaces what `out` holds by exactly `size` bytes. Throws FormatError for
// bytes that are broken or give another size, and for a codec that is not known
// here.
void unpack(
    std::int64_t codec,
    std::string_view packed,
    std::size_t size,
    std::string& out
);

// Snappy's block format; false when the bytes are none, or not of that size.
bool unpack_snappy(std::string_view packed, std::size_t size, std::string& out);

}  // namespace hearth::data::parquet
