#pragma once
// What the system is told, and says, about pages of a mapped file. All of it is
// advice: a refusal changes nothing but time.
#include <cstddef>
#include <span>

namespace hearth {

// Tells the system that these bytes will be read soon, so that it begins to
// read them from the disk.
void expect_pages(std::span<const std::byte> mapped);
// Reads these bytes and maps them into this process's memory at once, rather
// than at each first use.
void map_pages(std::span<const std::byte> mapped);
// Takes these pages out of this process's memory; they come back when they are
// read again.
void drop_pages(std::span<const std::byte> mapped);

// How many of these bytes lie in memory now, this process's or not.
std::size_t resident_bytes(std::span<const std::byte> mapped);

}  // namespace hearth
