#pragma once
// Unicode as Python's str methods see it. text_tables.cpp is generated.
#include <cstddef>
#include <cstdint>

namespace hearth::text::jinja {

// Every stride-th code point from first to last maps to itself plus delta.
struct CaseRun {
  std::uint32_t first, last, stride;
  std::int32_t delta;
};
// An image of two or three code points; unused ones are 0.
struct CaseSpecial {
  std::uint32_t from, to[3];
};

#define HEARTH_RUNS(name)      \
  extern const CaseRun name[]; \
  extern const std::size_t name##Count;
#define HEARTH_CASE(name)                   \
  HEARTH_RUNS(name)                         \
  extern const CaseSpecial name##Special[]; \
  extern const std::size_t name##SpecialCount;
HEARTH_RUNS(kAlpha)
HEARTH_RUNS(kDecimal)
HEARTH_RUNS(kDigit)
HEARTH_RUNS(kNumeric)
HEARTH_RUNS(kSpace)
HEARTH_RUNS(kUpper)
HEARTH_RUNS(kLower)
HEARTH_RUNS(kTitle)
HEARTH_RUNS(kUnprintable)
HEARTH_CASE(kToLower)
HEARTH_CASE(kToUpper)
HEARTH_CASE(kToTitle)  // where it differs from upper case
HEARTH_CASE(kToFold)   // where it differs from lower case
#undef HEARTH_CASE
#undef HEARTH_RUNS

}  // namespace hearth::text::jinja
