#pragma once
// Small numbers as Parquet packs them: runs of one value, and groups of eight
// of a fixed number of bits. Given out one by one, so that a run of any length
// costs no memory.
#include <cstdint>
#include <string_view>

namespace hearth::data::parquet {

class RunReader {
 public:
  RunReader() = default;
  // `width` bits each, at most 32.
  RunReader(std::string_view bytes, unsigned width)
      : bytes_(bytes), width_(width) {}
  // Throws FormatError when the bytes end before.
  std::uint32_t next();

 private:
  std::string_view bytes_;
  unsigned width_ = 0;
  std::size_t at_ = 0;
  std::uint64_t left_ = 0;  // of this run
  bool packed_ = false;
  std::uint32_t value_ = 0;  // of a run of one value
  std::uint64_t bit_ = 0;    // of the next packed value, from at_ on

  void begin_run();
  std::uint32_t packed_value();
};

// Bits that the values 0 to `most` need.
unsigned bits_for(std::uint32_t most);

}  // namespace hearth::data::parquet
