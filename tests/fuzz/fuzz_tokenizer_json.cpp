// tokenizer.json: whatever the bytes, load or refuse; what loads must encode
// and decode without harm.
#include <cstdint>

#include "hearth/base/error.h"
#include "hearth/text/tokenizer/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(
    const std::uint8_t* data,
    std::size_t size
) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    const auto t = hearth::text::Tokenizer::from_json(bytes, "fuzz");
    const auto ids = t->encode(
        "It's <s> caf\u00E9 \u4F60\u597D 123\n\n  x\xF0\x9F",
        {.truncate = true, .pad = t->limits().pad_to < 4096}
    );
    (void)t->decode(ids);
    (void)t->encode(bytes.substr(0, 256));
  } catch (const hearth::Error&) {
  }
  return 0;
}
