#pragma once
// Reads the pieces that the header of a GGUF file is made of and checks each
// length against what is left of the file.
#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/io/gguf_metadata.h"

namespace hearth::io {

static_assert(std::endian::native == std::endian::little);

enum GgufValueType : std::uint32_t {
  kU8,
  kI8,
  kU16,
  kI16,
  kU32,
  kI32,
  kF32,
  kBool,
  kString,
  kArray,
  kU64,
  kI64,
  kF64
};

class GgufReader {
 public:
  GgufReader(
      std::string_view bytes,
      const std::string& name,
      std::size_t at = 0
  )
      : bytes_(bytes), name_(name), at_(at) {}
  std::size_t at() const { return at_; }

  [[noreturn]] void fail(std::string_view what) const {
    throw FormatError::at_offset(name_, at_, what);
  }
  template <class T>
  T scalar() {
    if (bytes_.size() - at_ < sizeof(T)) fail("the file is cut short");
    T value;
    std::memcpy(&value, bytes_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return value;
  }
  std::string text() {
    const auto size = scalar<std::uint64_t>();
    if (size > bytes_.size() - at_) fail("a string is longer than the file");
    std::string out(bytes_.substr(at_, size));
    at_ += size;
    return out;
  }
  GgufMetadata::Value value(std::uint32_t type) {
    switch (type) {
      case kF32:
        return static_cast<double>(scalar<float>());
      case kF64:
        return scalar<double>();
      case kBool:
        return scalar<std::uint8_t>() != 0;
      case kString:
        return text();
      case kArray:
        return array();
      default:
        return integer(type);
    }
  }

 private:
  std::int64_t integer(std::uint32_t type) {
    switch (type) {
      case kU8:
        return scalar<std::uint8_t>();
      case kI8:
        return scalar<std::int8_t>();
      case kU16:
        return scalar<std::uint16_t>();
      case kI16:
        return scalar<std::int16_t>();
      case kU32:
        return scalar<std::uint32_t>();
      case kI32:
        return scalar<std::int32_t>();
      case kU64:
        return static_cast<std::int64_t>(scalar<std::uint64_t>());
      case kI64:
        return scalar<std::int64_t>();
      default:
        fail(fmt::format("value type {} is not known", type));
    }
  }
  template <class T, class Item>
  GgufMetadata::Value list(std::uint64_t size, Item item) {
    std::vector<T> out;
    out.reserve(size);
    for (std::uint64_t i = 0; i < size; ++i) out.push_back(item());
    return out;
  }
  GgufMetadata::Value array() {
    const auto type = scalar<std::uint32_t>();
    const auto size = scalar<std::uint64_t>();
    // Every item takes at least a byte of what is left.
    const std::size_t least = type == kString ? 8 : 1;
    if (size > (bytes_.size() - at_) / least) {
      fail("an array is longer than the file");
    }
    switch (type) {
      case kString:
        return list<std::string>(size, [&] { return text(); });
      case kF32:
        return list<double>(size, [&] { return double{scalar<float>()}; });
      case kF64:
        return list<double>(size, [&] { return scalar<double>(); });
      case kBool:
        return list<std::int64_t>(size, [&] {
          return std::int64_t{scalar<std::uint8_t>()};
        });
      case kArray:
        fail("arrays of arrays are not supported");
      default:
        return list<std::int64_t>(size, [&] { return integer(type); });
    }
  }

  std::string_view bytes_;
  const std::string& name_;
  std::size_t at_;
};

}  // namespace hearth::io
