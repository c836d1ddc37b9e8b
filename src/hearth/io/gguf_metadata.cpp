#include "hearth/io/gguf_metadata.h"

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/base/mapped_file.h"
#include "hearth/io/gguf_reader_impl.h"
#include "hearth/io/message_impl.h"

namespace hearth::io {
namespace {

constexpr std::uint64_t kMaxKeys = 1 << 16;

}  // namespace

GgufMetadata::GgufMetadata(std::string_view bytes, const std::string& name)
    : name_(name) {
  GgufReader reader(bytes, name_);
  if (reader.scalar<std::uint32_t>() != 0x46554747) {
    reader.fail("not a GGUF file");
  }
  const auto version = reader.scalar<std::uint32_t>();
  if (version != 2 && version != 3) {
    const bool swapped = version == 0x02000000 || version == 0x03000000;
    reader.fail(
        swapped ? "big-endian GGUF is not supported"
                : fmt::format("GGUF version {} is not supported", version)
    );
  }
  tensor_count_ = reader.scalar<std::uint64_t>();
  const auto count = reader.scalar<std::uint64_t>();
  if (count > kMaxKeys) reader.fail("too many keys");
  for (std::uint64_t i = 0; i < count; ++i) {
    std::string key = reader.text();
    const auto type = reader.scalar<std::uint32_t>();
    const auto [it, fresh] = values_.try_emplace(std::move(key));
    if (!fresh) reader.fail(in_quotes(it->first) + " is given twice");
    it->second = reader.value(type);
  }
  end_ = reader.at();
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

double GgufMetadata::number(std::string_view key, double fallback) const {
  const Value* value = find(key);
  if (value != nullptr && std::holds_alternative<std::int64_t>(*value)) {
    return static_cast<double>(std::get<std::int64_t>(*value));
  }
  const auto* typed = as<double>(value, name_, key, "a number");
  return typed ? *typed : fallback;
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
