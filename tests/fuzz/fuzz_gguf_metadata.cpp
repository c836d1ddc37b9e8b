// The key-value part of a GGUF file: whatever the bytes, read or refuse.
#include <cstdint>

#include "hearth/base/error.h"
#include "hearth/io/gguf_metadata.h"

extern "C" int LLVMFuzzerTestOneInput(
    const std::uint8_t* data,
    std::size_t size
) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    const hearth::io::GgufMetadata metadata(bytes, "fuzz");
    (void)metadata.text("tokenizer.ggml.model");
    (void)metadata.numbers("tokenizer.ggml.scores");
  } catch (const hearth::Error&) {
  }
  return 0;
}
