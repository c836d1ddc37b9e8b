#pragma once
// What the system is told, and says, about pages of a mapped file. All of it is
// advice: a refusal changes nothing but time.
#include <cstddef>
#include <span>

namespace hearth {

// They will be read soon: the system begins to.
void expect_pages(std::span<const std::byte> mapped);
// Reads them and puts them into this process's memory at once, rather than at
// each first use.
void map_pages(std::span<const std::byte> mapped);
// They leave this process's memory, and come back when they are read again.
void drop_pages(std::span<const std::byte> mapped);

// How many of these bytes lie in memory now, this process's or not.
std::size_t resident_bytes(std::span<const std::byte> mapped);

}  // namespace hearth
