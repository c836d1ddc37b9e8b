#pragma once
// Numbers as people read them.
#include <cstddef>
#include <string>

namespace hearth {

std::string format_bytes(std::size_t bytes);  // 1.5 GiB
std::string format_seconds(double seconds);   // 12.3 s, 4m07s, 2h15m
std::string format_count(double count);       // 950, 12.3k, 4.56M, 7.89G

}  // namespace hearth
