#pragma once
// Limits on a chat template from outside. The defaults leave real templates
// room for megabytes of conversation and stop a hostile one within a second.
#include <cstddef>

namespace hearth::text {

struct TemplateLimits {
  std::size_t max_source_bytes = std::size_t{1} << 20;
  std::size_t max_output_bytes = std::size_t{64} << 20;
  // Nodes evaluated, items walked, 64-byte pieces scanned.
  std::size_t max_work = 20'000'000;
  // Sum of all bytes allocated for values, so also a bound on the peak.
  std::size_t max_value_bytes = std::size_t{512} << 20;
  // Nesting of syntax, and of evaluation through macros. The default fits the
  // 512 KiB stack of a secondary thread on macOS.
  int max_depth = 300;
};

}  // namespace hearth::text
