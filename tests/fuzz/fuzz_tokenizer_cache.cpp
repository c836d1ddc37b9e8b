// A tokenizer's binary cache: the header's checksum is made right, so that the
// tables behind it are reached; load or refuse, and encode without harm.
#include <cstdint>
#include <cstring>
#include <vector>

#include "hearth/base/error.h"
#include "hearth/text/tokenizer/bpe_trainer.h"
#include "hearth/text/tokenizer/tokenizer.h"
#include "hearth/text/tokenizer/tokenizer_cache.h"

namespace {

using hearth::text::TokenizerParts;

struct alignas(64) Line {
  std::byte bytes[64];
};

// A whole cache that the input's bytes are laid over.
const std::string& whole() {
  static const std::string bytes = [] {
    hearth::text::BpeTrainer trainer({.vocab_size = 262});
    const std::string_view texts[] = {"the cat sat on the mat, the cat sat"};
    trainer.add(texts);
    std::string rest;
    TokenizerParts parts =
        hearth::text::read_tokenizer_json(trainer.train(), "seed", &rest);
    parts.decode_ahead();
    return hearth::text::tokenizer_cache_bytes(parts, rest, {});
  }();
  return bytes;
}

void use(std::string_view bytes) {
  std::vector<Line> lines(bytes.size() / sizeof(Line) + 1);
  if (!bytes.empty()) std::memcpy(lines.data(), bytes.data(), bytes.size());
  const std::span<std::byte> copy(
      reinterpret_cast<std::byte*>(lines.data()), bytes.size()
  );
  hearth::text::seal_tokenizer_cache(copy);
  try {
    const hearth::text::Tokenizer t(
        hearth::text::parse_tokenizer_cache(copy, {}, "fuzz")
    );
    (void)t.decode(t.encode("the caf\u00E9 sat <s>\n\n 12\xF0\x9F"));
  } catch (const hearth::Error&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(
    const std::uint8_t* data,
    std::size_t size
) {
  use({reinterpret_cast<const char*>(data), size});
  // Edits of a whole one: (place, value), three bytes each.
  std::string edited = whole();
  for (std::size_t i = 0; i + 3 <= size; i += 3) {
    const std::size_t place = data[i] | std::size_t{data[i + 1]} << 8;
    edited[place % edited.size()] = static_cast<char>(data[i + 2]);
  }
  use(edited);
  return 0;
}
