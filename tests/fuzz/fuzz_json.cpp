// Any bytes: a document that survives writing and reading, or a FormatError.
#include <cstdint>
#include <string_view>

#include "hearth/base/error.h"
#include "hearth/base/json.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t n) {
  hearth::Json json;
  try {
    json = hearth::parse_json({reinterpret_cast<const char*>(data), n}, "fuzz");
  } catch (const hearth::FormatError&) {
    return 0;
  }
  // What we wrote we must read.
  hearth::parse_json(hearth::to_json_line(json), "again");
  return 0;
}
