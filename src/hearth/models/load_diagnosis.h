#pragma once
// Which part of a start was slow, and why, from what was measured.
#include <string>
#include <string_view>
#include <vector>

#include "hearth/models/load_report.h"

namespace hearth::models {

// A start from nothing to the first token, in seconds; load as its report has
// it.
struct StartFacts {
  double open = 0, header = 0, tokenizer = 0, build = 0, first_token = 0;
  LoadReport load;
  std::string tokenizer_file;  // empty: there is none, or nobody knows
  // Over the whole start.
  std::uint64_t major_faults = 0;
  double memory_stall = 0;           // in which some task waited for memory
  double disk_bytes_per_second = 0;  // as `doctor` measured; 0: it has not

  double total() const;
};

// One stretch of a start. Names: open, header, tokenizer, build, read, convert,
// pack, quantise, memory, first token.
struct StartPhase {
  std::string name;
  double seconds = 0;
};
std::vector<StartPhase> phases(const StartFacts& facts);

enum class SlowPart : unsigned char {
  disk,             // waiting for reads
  mapping,          // pages of a mapping that were not there
  memory_pressure,  // the system had to find memory first
  quantising,
  converting,    // widening, rounding, packing
  initialising,  // everything but weights: tokenizer, first token, ...
};
std::string_view name_of(SlowPart part);

struct Diagnosis {
  SlowPart part = SlowPart::initialising;
  double seconds = 0, share = 0;  // of the whole start
  std::string why, advice;
};
Diagnosis diagnose(const StartFacts& facts);

}  // namespace hearth::models
