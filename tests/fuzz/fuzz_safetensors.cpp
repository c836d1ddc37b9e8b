// Any bytes: a safetensors file, or a FormatError; every tensor lies inside.
#include <cstdint>

#include "hearth/base/error.h"
#include "hearth/io/safetensors.h"
#include "hearth/io/tensor_scan.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t n) {
  const auto bytes = std::as_bytes(std::span(data, n));
  try {
    const hearth::io::SafetensorsFile file(bytes, "fuzz");
    for (const auto& tensor : file.tensors()) {
      (void)hearth::io::count_non_finite(tensor.type, file.bytes(tensor));
    }
  } catch (const hearth::FormatError&) {
  }
  return 0;
}
