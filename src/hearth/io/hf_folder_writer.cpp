#include "hearth/io/hf_folder_writer.h"

#include <array>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "hearth/base/atomic_file.h"
#include "hearth/base/error.h"
#include "hearth/io/folder_writer_impl.h"

namespace hearth::io {
namespace {

namespace fs = std::filesystem;

constexpr std::array kTokenizerFiles{
    "tokenizer.json",
    "tokenizer.model",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "merges.txt",
    "chat_template.jinja",
    "chat_template.json",
    "spiece.model",
};

using Shard = std::vector<TensorToWrite>;

std::vector<Shard> split(
    std::vector<TensorToWrite> tensors,
    std::uint64_t most
) {
  std::vector<Shard> shards(1);
  std::uint64_t filled = 0;
  for (TensorToWrite& tensor : tensors) {
    const std::uint64_t size = bytes_of(tensor);
    if (!shards.back().empty() && filled + size > most) {
      shards.emplace_back();
      filled = 0;
    }
    filled += size;
    shards.back().push_back(std::move(tensor));
  }
  return shards;
}

std::string shard_name(std::size_t index, std::size_t count) {
  return fmt::format("model-{:05}-of-{:05}.safetensors", index + 1, count);
}

void write_shards(const AtomicFolder& folder, std::vector<Shard> shards) {
  if (shards.size() == 1) {
    return write_safetensors(
        folder.file("model.safetensors"), std::move(shards[0])
    );
  }
  std::map<std::string, std::string> map;
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const std::string name = shard_name(i, shards.size());
    for (const TensorToWrite& tensor : shards[i]) {
      total += bytes_of(tensor);
      if (!map.emplace(tensor.name, name).second) {
        throw UsageError(
            "[io.write_hf_folder] a tensor's name must stand once, got " +
            tensor.name + " twice"
        );
      }
    }
    write_safetensors(folder.file(name), std::move(shards[i]));
  }
  // The plain kind of JSON: ordered ones search every key again.
  const nlohmann::json index = {
      {"metadata", {{"total_size", total}}}, {"weight_map", map}
  };
  write_file_atomically(
      folder.file("model.safetensors.index.json"), index.dump(2) + "\n"
  );
}

void copy_file(const std::string& from, const std::string& to) {
  std::error_code error;
  if (!fs::copy_file(from, to, error)) {
    throw IoError(fmt::format("cannot copy {}: {}", from, error.message()));
  }
}

}  // namespace

std::vector<std::string> tokenizer_files(const std::string& folder) {
  std::vector<std::string> out;
  std::error_code ignored;
  for (const char* name : kTokenizerFiles) {
    if (fs::is_regular_file(fs::path(folder) / name, ignored)) {
      out.emplace_back(name);
    }
  }
  return out;
}

void write_hf_folder(
    const std::string& path,
    const Json& config,
    const Json& generation_config,
    std::vector<TensorToWrite> tensors,
    const HfFolderOptions& options
) {
  if (!config.is_object()) {
    throw UsageError("[io.write_hf_folder] the config must be an object");
  }
  std::vector<Shard> shards = split(std::move(tensors), options.shard_bytes);
  AtomicFolder folder(path, options.force, "config.json");
  write_file_atomically(
      folder.file("config.json"), to_json_text(config) + "\n"
  );
  if (!generation_config.empty()) {
    write_file_atomically(
        folder.file("generation_config.json"),
        to_json_text(generation_config) + "\n"
    );
  }
  if (!options.carry_from.empty()) {
    const fs::path from(options.carry_from);
    for (const std::string& name : tokenizer_files(options.carry_from)) {
      copy_file((from / name).string(), folder.file(name));
    }
  }
  for (const auto& [name, text] : options.texts) {
    const std::string file = folder.file(name);
    fs::create_directories(fs::path(file).parent_path());
    write_file_atomically(file, text);
  }
  write_shards(folder, std::move(shards));
  folder.commit();
}

}  // namespace hearth::io
