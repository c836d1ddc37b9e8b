// Any bytes: a file of packed weights, or a FormatError. The table is hashed,
// so the same bytes are tried as a table that was written right, too.
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "hearth/base/error.h"
#include "hearth/base/hash.h"
#include "hearth/io/packed_file.h"

namespace {

void read(std::span<const std::byte> bytes) {
  hearth::ThreadPool pool(1);
  try {
    const hearth::io::PackedFile file(bytes, "fuzz");
    std::uint64_t sum = 0;
    for (const auto& entry : file.entries()) {
      for (const std::byte b : file.bytes(entry)) {
        sum += static_cast<std::uint64_t>(b);
      }
    }
    file.verify(pool);
    if (sum == 1) throw hearth::FormatError("never mind");
  } catch (const hearth::FormatError&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t n) {
  const std::string_view text(reinterpret_cast<const char*>(data), n);
  read(std::as_bytes(std::span(text)));
  std::string file("HEARTHPK\1\0\0\0\0\0\0\0", 16);
  file.resize(256, '\0');
  file[64 + 56] = 8;  // the length of an entry at 128
  const auto word = [&](std::uint64_t v) {
    char raw[8];
    std::memcpy(raw, &v, sizeof v);
    file.append(raw, sizeof raw);
  };
  file += text;
  word(256);
  word(n);
  word(hearth::hash64(text));
  file += "HEARTHPK";
  read(std::as_bytes(std::span(file)));
  return 0;
}
