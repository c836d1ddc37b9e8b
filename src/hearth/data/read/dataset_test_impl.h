#pragma once
// What the tests of datasets, caches and loaders share: a tokenizer of bytes,
// a template of angle brackets, a folder that goes away.
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "hearth/base/temp_folder_test.h"
#include "hearth/data/read/dataset_encode.h"

namespace hearth::data::testing {

// Id = byte + 3; 1 begins, 2 ends a text.
class ByteEncoder : public TextEncoder {
 public:
  void encode(
      std::string_view text,
      std::vector<std::int32_t>& out
  ) const override {
    for (unsigned char c : text) out.push_back(c + 3);
  }
  std::string decode(std::span<const std::int32_t> ids) const override {
    std::string text;
    for (auto id : ids) {
      if (id >= 3) text += static_cast<char>(id - 3);
    }
    return text;
  }
  std::uint32_t vocabulary() const override { return 259; }
  std::optional<std::int32_t> bos() const override { return 1; }
  std::optional<std::int32_t> eos() const override { return 2; }
  Hash128 hash() const override { return {7, 7}; }
};

// "<role>content" for each message; an assistant's content is its turn.
class BracketRenderer : public ChatRenderer {
 public:
  explicit BracketRenderer(std::uint64_t version = 1) : version_(version) {}
  RenderedChat render(const Json& messages, const Json& tools) const override {
    RenderedChat chat;
    if (tools.is_array()) chat.text += "[" + std::to_string(tools.size()) + "]";
    for (std::size_t i = 0; i < messages.size(); ++i) {
      const auto role = messages[i].at("role").get<std::string>();
      chat.text += "<" + role + ">";
      const std::size_t begin = chat.text.size();
      chat.text += messages[i].at("content").get<std::string>();
      if (messages[i].contains("train")) chat.text += "LEAK";
      if (role == "assistant")
        chat.turns.push_back({begin, chat.text.size(), i});
    }
    return chat;
  }
  Hash128 hash() const override { return {version_, 9}; }

 private:
  std::uint64_t version_;
};

inline ExampleEncoder byte_encoder(EncodeSettings settings = {}) {
  return {
      std::make_shared<ByteEncoder>(), std::make_shared<BracketRenderer>(),
      settings
  };
}

using hearth::read_all;
using hearth::TempFolder;

// Every file of a folder by name, for comparing two folders byte by byte.
inline std::map<std::string, std::string> contents(const std::string& folder) {
  std::map<std::string, std::string> files;
  for (const auto& e : std::filesystem::directory_iterator(folder)) {
    files[e.path().filename().string()] = read_all(e.path());
  }
  return files;
}

}  // namespace hearth::data::testing
