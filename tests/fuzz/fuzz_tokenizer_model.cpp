// SentencePiece's tokenizer.model: whatever the bytes, load or refuse.
#include <cstdint>

#include "hearth/base/error.h"
#include "hearth/text/tokenizer/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(
    const std::uint8_t* data,
    std::size_t size
) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    const auto t = hearth::text::Tokenizer::from_sentencepiece(bytes, "fuzz");
    (void)t->decode(t->encode("It's caf\u00E9 \u4F60\u597D 123\n\n  x"));
    (void)t->encode(bytes.substr(0, 256));
  } catch (const hearth::Error&) {
  }
  return 0;
}
