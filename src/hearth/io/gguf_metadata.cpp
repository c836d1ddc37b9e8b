#include "hearth/io/gguf_metadata.h"

#include <bit>
#include <cstring>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/base/mapped_file.h"

namespace hearth::io {
namespace {

static_assert(std::endian::native == std::endian::little);
constexpr std::uint64_t kMaxKeys = 1 << 16;

enum Type : std::uint32_t {
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

class Reader {
 public:
  Reader(std::string_view bytes, const std::string& name)
      : bytes_(bytes), name_(name) {}

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
  std::size_t at_ = 0;
};

}  // namespace

GgufMetadata::GgufMetadata(std::string_view bytes, const std::string& name)
    : name_(name) {
  Reader reader(bytes, name_);
  if (reader.scalar<std::uint32_t>() != 0x46554747) {
    reader.fail("not a GGUF file");
  }
  const auto version = reader.scalar<std::uint32_t>();
  if (version != 2 && version != 3) {
    reader.fail(fmt::format("GGUF version {} is not supported", version));
  }
  reader.scalar<std::uint64_t>();  // tensors
  const auto count = reader.scalar<std::uint64_t>();
  if (count > kMaxKeys) reader.fail("too many keys");
  for (std::uint64_t i = 0; i < count; ++i) {
    std::string key = reader.text();
    const auto type = reader.scalar<std::uint32_t>();
    values_.insert_or_assign(std::move(key), reader.value(type));
  }
}

GgufMetadata GgufMetadata::read(const std::string& path) {
  const MappedFile file(path);
  return GgufMetadata(file.text(), path);
}

const GgufMetadata::Value* GgufMetadata::find(std::string_view key) const {
  const auto it = values_.find(key);
  return it == values_.end() ? nullptr : &it->second;
}

namespace {

template <class T>
const T* as(
    const GgufMetadata::Value* value,
    const std::string& name,
    std::string_view key,
    std::string_view wanted
) {
  if (!value) return nullptr;
  if (const T* typed = std::get_if<T>(value)) return typed;
  throw FormatError::at(name, 0, fmt::format("{} must be {}", key, wanted));
}

}  // namespace

std::string GgufMetadata::text(
    std::string_view key,
    std::string fallback
) const {
  const auto* value = as<std::string>(find(key), name_, key, "a string");
  if (value) return *value;
  return fallback;
}

std::int64_t GgufMetadata::integer(
    std::string_view key,
    std::int64_t fallback
) const {
  const auto* value = as<std::int64_t>(find(key), name_, key, "an integer");
  return value ? *value : fallback;
}

bool GgufMetadata::boolean(std::string_view key, bool fallback) const {
  const auto* value = as<bool>(find(key), name_, key, "true or false");
  return value ? *value : fallback;
}

const std::vector<std::string>& GgufMetadata::texts(
    std::string_view key
) const {
  const auto* value =
      as<std::vector<std::string>>(find(key), name_, key, "a list of strings");
  if (!value) throw FormatError::at(name_, 0, fmt::format("no {}", key));
  return *value;
}

std::vector<double> GgufMetadata::numbers(std::string_view key) const {
  const Value* value = find(key);
  if (!value) return {};
  if (const auto* whole = std::get_if<std::vector<std::int64_t>>(value)) {
    return {whole->begin(), whole->end()};
  }
  return *as<std::vector<double>>(value, name_, key, "a list of numbers");
}

}  // namespace hearth::io
