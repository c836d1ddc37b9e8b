// Any bytes: a GGUF model, or a FormatError; every tensor's bytes are read as
// Hugging Face has them.
#include <cstdint>

#include "hearth/base/error.h"
#include "hearth/io/gguf_file.h"
#include "hearth/io/gguf_source.h"
#include "hearth/io/tensor_scan.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t n) {
  const auto bytes = std::as_bytes(std::span(data, n));
  try {
    const hearth::io::GgufFile file(bytes, "fuzz");
    for (const auto& tensor : file.tensors()) {
      (void)hearth::io::count_non_finite(tensor.type, file.bytes(tensor));
    }
    const auto model = hearth::io::open_gguf(bytes, "fuzz");
    for (const auto& tensor : model->tensors()) {
      const auto copy = model->data(tensor);
      (void)hearth::io::count_non_finite(tensor.type, copy.bytes);
    }
  } catch (const hearth::FormatError&) {
  }
  return 0;
}
