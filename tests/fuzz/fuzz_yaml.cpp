// Any bytes: a tree, a list of profiles, or a FormatError.
#include <cstdint>
#include <string_view>

#include "hearth/base/error.h"
#include "hearth/hardware/profile.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t n) {
  const std::string_view text(reinterpret_cast<const char*>(data), n);
  try {
    hearth::parse_yaml(text, "fuzz");
    hearth::hardware::parse_profiles(text, "fuzz");
  } catch (const hearth::FormatError&) {
  }
  return 0;
}
