// Any bytes: a shard, or a FormatError, and every read inside it likewise.
#include <cstdint>
#include <cstring>
#include <vector>

#include "hearth/base/error.h"
#include "hearth/io/token_shard.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t n) {
  // Tables are read in place, from memory aligned as a mapping is.
  std::vector<std::uint64_t> aligned(n / 8 + 1);
  if (n > 0) std::memcpy(aligned.data(), data, n);
  const auto bytes = std::as_bytes(std::span(aligned)).first(n);
  try {
    const hearth::io::TokenShard shard(bytes, "fuzz");
    for (std::uint64_t d = 0; d < shard.documents() && d < 64; ++d) {
      try {
        shard.spans(d);
        std::vector<std::int32_t> ids(
            std::min<std::uint64_t>(shard.length(d), std::uint64_t{1} << 16)
        );
        shard.read(d, 0, ids);
      } catch (const hearth::FormatError&) {
      }
    }
    shard.verify();
  } catch (const hearth::FormatError&) {
  }
  return 0;
}
