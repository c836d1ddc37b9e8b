// Any bytes: a document or a FormatError, never anything else.
#include <cstdint>
#include <string_view>

#include "hearth/base/error.h"
#include "hearth/base/json.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t n) {
  try {
    const auto json =
        hearth::parse_json({reinterpret_cast<const char*>(data), n}, "fuzz");
    hearth::parse_json(hearth::to_json_line(json), "again");
  } catch (const hearth::FormatError&) {
  }
  return 0;
}
