#pragma once
// The generated tables behind unicode.h: flat lists that its constructor
// expands. Nothing else reads them.
#include <cstddef>
#include <cstdint>

namespace hearth::text::unicode {

// code point, value: from that code point on, the value of unicode.h's table.
extern const std::uint32_t kRuns[];
extern const std::size_t kRunsSize;
// code point << 8 | canonical combining class
extern const std::uint32_t kCombining[];
extern const std::size_t kCombiningSize;
// code point, length, replacement...; fully decomposed
extern const std::uint32_t kCanonical[];
extern const std::size_t kCanonicalSize;
extern const std::uint32_t kCompatible[];
extern const std::size_t kCompatibleSize;
// first, second, composed
extern const std::uint32_t kPairs[];
extern const std::size_t kPairsSize;
// code point, its lower case
extern const std::uint32_t kLower[];
extern const std::size_t kLowerSize;

}  // namespace hearth::text::unicode
