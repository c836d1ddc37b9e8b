#pragma once
// Small model files made in memory, byte by byte, for tests.
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "hearth/base/error.h"
#include "hearth/base/temp_folder_test.h"

namespace hearth::io::test {

inline std::span<const std::byte> as_bytes(const std::string& text) {
  return std::as_bytes(std::span(text));
}

template <class T>
std::string raw(const T& value) {
  std::string out(sizeof value, '\0');
  std::memcpy(out.data(), &value, sizeof value);
  return out;
}

inline std::string safetensors(
    const std::string& header,
    const std::string& data
) {
  return raw(std::uint64_t{header.size()}) + header + data;
}

inline std::string gguf_text(const std::string& text) {
  return raw(std::uint64_t{text.size()}) + text;
}

// A GGUF file: keys, tensor list, padding, data.
struct GgufMaker {
  std::string keys, tensors, data;
  std::uint64_t key_count = 0, tensor_count = 0;
  std::uint32_t version = 3;

  void text(const std::string& key, const std::string& value) {
    add(key, 8, gguf_text(value));
  }
  void u32(const std::string& key, std::uint32_t value) {
    add(key, 4, raw(value));
  }
  void f32(const std::string& key, float value) { add(key, 6, raw(value)); }
  void add(const std::string& key, std::uint32_t type, const std::string& v) {
    keys += gguf_text(key) + raw(type) + v;
    ++key_count;
  }
  // Sizes innermost first, as the format has them.
  void tensor(
      const std::string& name,
      const std::vector<std::uint64_t>& sizes,
      std::uint32_t type,
      std::uint64_t offset
  ) {
    tensors += gguf_text(name) + raw(static_cast<std::uint32_t>(sizes.size()));
    for (const std::uint64_t size : sizes) tensors += raw(size);
    tensors += raw(type) + raw(offset);
    ++tensor_count;
  }
  // Floats put at the end of the data, with the entry that names them.
  void floats(
      const std::string& name,
      const std::vector<std::uint64_t>& sizes,
      const std::vector<float>& values
  ) {
    tensor(name, sizes, 0, data.size());
    for (const float v : values) data += raw(v);
    data.resize((data.size() + 31) / 32 * 32);
  }
  std::string bytes() const {
    std::string out = "GGUF" + raw(version) + raw(tensor_count) +
                      raw(key_count) + keys + tensors;
    out.resize((out.size() + 31) / 32 * 32);
    return out + data;
  }
};

// The message of the error that the call throws; empty when it throws none.
template <class Call>
std::string refusal(Call call) {
  try {
    call();
  } catch (const Error& e) {
    return e.what();
  }
  return {};
}

}  // namespace hearth::io::test
