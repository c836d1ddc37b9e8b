#pragma once
// Numbers as people read them.
#include <cstddef>
#include <string>
#include <string_view>

namespace hearth {

std::string format_bytes(std::size_t bytes);  // 1.5 GiB
std::string format_seconds(double seconds);   // 12.3 s, 4m07s, 2h15m
std::string format_count(double count);       // 950, 12.3k, 4.56M, 7.89G

// The inverse of format_bytes and its short forms: 6G, 512 MiB, 1.5GB, 4096.
// All units are powers of 1024. Throws UsageError that names `what`.
std::size_t parse_bytes(std::string_view text, std::string_view what);

}  // namespace hearth
