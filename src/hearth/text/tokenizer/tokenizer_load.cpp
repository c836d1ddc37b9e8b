// Which reader a path means, and what tokenizer_config.json adds.
#include <filesystem>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/base/json.h"
#include "hearth/base/mapped_file.h"
#include "hearth/text/tokenizer/tokenizer.h"
#include "hearth/text/tokenizer/tokenizer_cache.h"
#include "hearth/text/tokenizer/tokenizer_parts.h"

namespace hearth::text {
namespace fs = std::filesystem;
namespace {

std::string file_of(const std::string& path) {
  if (!fs::is_directory(path)) return path;
  for (const char* name : {"tokenizer.json", "tokenizer.model"}) {
    const fs::path file = fs::path(path) / name;
    if (fs::exists(file)) return file.string();
  }
  throw UsageError(
      fmt::format("{} holds neither tokenizer.json nor tokenizer.model", path)
  );
}

// A token is given as text or as an object with its content.
std::string token_text(const Json& config, const char* key) {
  const auto it = config.find(key);
  if (it == config.end()) return {};
  if (it->is_string()) return it->get<std::string>();
  if (it->is_object() && it->contains("content") &&
      (*it)["content"].is_string()) {
    return (*it)["content"].get<std::string>();
  }
  return {};
}

}  // namespace

void read_tokenizer_config(const std::string& folder, TokenizerParts& parts) {
  const fs::path file = fs::path(folder) / "tokenizer_config.json";
  if (!fs::is_regular_file(file)) return;
  const Json config = read_json_file(file.string());
  if (!config.is_object()) {
    throw FormatError::at(file.string(), 0, "must be an object");
  }
  const auto take = [&](const char* key, std::optional<std::int32_t>& id) {
    const std::string text = token_text(config, key);
    if (text.empty()) return;
    if (const AddedToken* added = parts.added.find(text)) {
      id = added->id;
    } else if (const std::int32_t known = parts.vocabulary->find(text);
               known >= 0) {
      id = known;
    }
  };
  take("bos_token", parts.bos);
  take("eos_token", parts.eos);
  take("pad_token", parts.pad);
  take("unk_token", parts.unk);
  if (parts.format != "tokenizer.model") return;
  const auto habit = [&](const char* key, bool otherwise) {
    const auto it = config.find(key);
    return it != config.end() && it->is_boolean() ? it->get<bool>() : otherwise;
  };
  parts.prefix.clear();
  parts.suffix.clear();
  if (parts.bos && habit("add_bos_token", true)) parts.prefix = {*parts.bos};
  if (parts.eos && habit("add_eos_token", false)) parts.suffix = {*parts.eos};
}

std::shared_ptr<const Tokenizer> Tokenizer::load(const std::string& path) {
  const std::string file = file_of(path);
  TokenizerParts parts;
  if (file.ends_with(".gguf")) {
    parts = read_gguf_tokenizer(file);
  } else {
    const MappedFile mapped(file);
    const std::string_view text = mapped.text();
    if (!file.ends_with(".json")) {
      parts = read_sentencepiece(text, file);
    } else if (text.size() < kCachedSourceBytes) {
      parts = read_tokenizer_json(text, file);
    } else {
      parts = read_cached_tokenizer_json(text, file);
    }
    read_tokenizer_config(fs::path(file).parent_path().string(), parts);
  }
  return std::make_shared<const Tokenizer>(std::move(parts));
}

std::shared_ptr<const Tokenizer> Tokenizer::from_json(
    std::string_view text,
    const std::string& name
) {
  return std::make_shared<const Tokenizer>(read_tokenizer_json(text, name));
}

std::shared_ptr<const Tokenizer> Tokenizer::from_sentencepiece(
    std::string_view bytes,
    const std::string& name
) {
  return std::make_shared<const Tokenizer>(read_sentencepiece(bytes, name));
}

}  // namespace hearth::text
