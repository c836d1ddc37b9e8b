#include "hearth/cli/model/model_identity.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include <fcntl.h>

#include <fmt/format.h>

#include "hearth/base/file_handle.h"
#include "hearth/base/hash.h"
#include "hearth/train/loop/run_model.h"

namespace hearth::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kBlock = 4096, kWhole = std::size_t{1} << 20;
constexpr std::size_t kSamples = 256;

void add_file(Hash64& hash, const fs::path& path) {
  const auto file = FileHandle::open(path.string(), O_RDONLY, "read");
  const auto size = static_cast<std::size_t>(fs::file_size(path));
  hash.update(fmt::format("{}:{}\n", path.filename().string(), size));
  const std::size_t blocks = (size + kBlock - 1) / kBlock;
  const std::size_t stride = size <= kWhole ? 1 : blocks / kSamples;
  std::array<std::byte, kBlock> bytes;
  for (std::size_t b = 0; b < blocks; b += stride) {
    hash.update(bytes.data(), file.read_at(bytes, b * kBlock));
  }
}

// Weights, configs, tokenizers and templates; not what people write beside
// them.
bool counts(const fs::path& path) {
  constexpr std::array<std::string_view, 5> kKinds{
      ".safetensors", ".json", ".gguf", ".model", ".jinja"
  };
  return std::ranges::find(kKinds, path.extension().string()) != kKinds.end();
}

void add_path(Hash64& hash, const std::string& path) {
  if (!fs::is_directory(path)) return add_file(hash, path);
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(path)) {
    if (entry.is_regular_file() && counts(entry.path())) {
      files.push_back(entry.path());
    }
  }
  std::ranges::sort(files);
  for (const fs::path& file : files) add_file(hash, file);
}

}  // namespace

std::string model_identity(const ModelFlags& flags) {
  Hash64 hash;
  if (const auto run = train::parse_run_reference(flags.model)) {
    // Of a run that trained adapters, the model below them lies elsewhere.
    add_path(hash, train::open_run_source(*run)->path());
    add_path(hash, train::run_checkpoint(*run));
  } else {
    flags.check_opens();
    add_path(hash, flags.model);
  }
  for (const std::string& beside : {flags.adapter, flags.tokenizer}) {
    hash.update("|");
    if (!beside.empty()) add_path(hash, beside);
  }
  return fmt::format("{:016x}", hash.digest());
}

}  // namespace hearth::cli
