#include "hearth/io/hf_folder.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <set>

#include <fmt/format.h>

#include "hearth/base/atomic_file.h"
#include "hearth/base/clock.h"
#include "hearth/base/error.h"
#include "hearth/io/file_source.h"
#include "hearth/io/message_impl.h"
#include "hearth/io/safetensors.h"
#include "hearth/io/strict_json.h"

namespace hearth::io {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSingle = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";

using Shard = std::shared_ptr<const SafetensorsFile>;

class HfFolder final : public ModelSource, public FileSource {
 public:
  explicit HfFolder(const std::string& path) : path_(path) {
    check_is_model();
    const auto start = Clock::now();
    config_ = read_config_file(file("config.json"));
    if (has("generation_config.json")) {
      generation_config_ = read_config_file(file("generation_config.json"));
    }
    header_time_ += Clock::now() - start;
    if (has(kSingle)) {
      open_shard(kSingle, {});
    } else {
      open_index();
    }
    std::sort(tensors_.begin(), tensors_.end(), [](auto& a, auto& b) {
      return a.name < b.name;
    });
  }

  const std::string& path() const override { return path_; }
  const Json& config() const override { return config_; }
  const Json& generation_config() const override { return generation_config_; }
  std::span<const TensorInfo> tensors() const override { return tensors_; }
  TensorData data(const TensorInfo& tensor) const override {
    const auto it = shards_.find(tensor.file);
    if (it == shards_.end()) {
      throw UsageError(
          fmt::format(
              "[io.data] tensor {} must be of this model",
              in_quotes(tensor.name)
          )
      );
    }
    return {it->second->bytes(tensor), it->second};
  }
  double header_seconds() const override { return header_time_.count(); }
  bool plain(const TensorInfo& tensor) const override {
    return shards_.contains(tensor.file);
  }
  void release(const TensorInfo& tensor) const override {
    const auto it = shards_.find(tensor.file);
    if (it != shards_.end()) it->second->release(tensor);
  }

 private:
  using Listed = std::map<std::string, std::string>;  // tensor to shard

  std::string file(const std::string& name) const {
    return (fs::path(path_) / name).string();
  }

  // A pipe would be waited at for ever.
  bool has(const std::string& name) const {
    std::error_code ignored;
    const auto status = fs::status(file(name), ignored);
    if (!fs::exists(status) || fs::is_regular_file(status)) {
      return fs::exists(status);
    }
    throw FormatError::at(file(name), 0, "must be a regular file");
  }

  void check_is_model() const {
    const bool weights = has(kSingle) || has(kIndex);
    if (has("config.json") && weights) return;
    if (has("adapter_config.json") && !weights) {
      throw FormatError::at(
          path_, 0, "holds an adapter, not a model: give its base model"
      );
    }
    if (weights)
      throw FormatError::at(path_, 0, "has weights but no config.json");
    if (!has("config.json")) {
      throw FormatError::at(
          path_, 0,
          fmt::format(
              "is not a model: it has no config.json and neither {} nor {}",
              kSingle, kIndex
          )
      );
    }
    if (has("pytorch_model.bin") || has("pytorch_model.bin.index.json")) {
      throw FormatError(
          fmt::format(
              "{}: has its weights in pytorch_model.bin only, which can run "
              "code when it is read; {} is needed",
              path_, kSingle
          ),
          "convert it once where you trust it: transformers' "
          "from_pretrained(...).save_pretrained(...) writes safetensors"
      );
    }
    throw FormatError::at(
        path_, 0,
        fmt::format("has config.json but neither {} nor {}", kSingle, kIndex)
    );
  }

  void open_index() {
    const std::string name = file(kIndex);
    const std::string text = read_text_file(name);
    const SortedJson index = parse_strict_json(text, name, 0, {.max_depth = 8});
    const auto fail = [&](std::string_view what) {
      throw FormatError::at(name, 0, what);
    };
    const auto map = index.find("weight_map");
    if (!index.is_object() || map == index.end() || !map->is_object()) {
      fail("must be an object with a weight_map");
    }
    Listed listed;
    std::set<std::string> shards;
    for (const auto& [tensor, shard] : map->items()) {
      if (!shard.is_string()) fail("weight_map must name a file per tensor");
      listed[tensor] = shard.get<std::string>();
      shards.insert(listed[tensor]);
    }
    for (const std::string& shard : shards) {
      check_inside(name, shard);
      if (!has(shard)) {
        fail(fmt::format("shard {} is missing", in_quotes(shard)));
      }
      open_shard(shard, listed);
    }
    for (const auto& [tensor, shard] : listed) {
      if (!found_.contains(tensor)) {
        fail(
            fmt::format(
                "tensor {} is not in {}, where the index has it",
                in_quotes(tensor), in_quotes(shard)
            )
        );
      }
    }
  }

  static void check_inside(const std::string& index, const std::string& shard) {
    const fs::path path(shard);
    bool inside = !shard.empty() && path.is_relative() &&
                  shard.find('\0') == std::string::npos;
    for (const fs::path& part : path) inside = inside && part != "..";
    if (!inside) {
      throw FormatError::at(
          index, 0,
          fmt::format(
              "shard {} must lie in the model's folder", in_quotes(shard)
          )
      );
    }
  }

  void open_shard(const std::string& name, const Listed& listed) {
    MappedFile mapped(file(name));
    const auto start = Clock::now();
    const auto shard =
        std::make_shared<const SafetensorsFile>(std::move(mapped));
    header_time_ += Clock::now() - start;
    shards_[shard->name()] = shard;
    for (const TensorInfo& tensor : shard->tensors()) {
      const auto it = listed.find(tensor.name);
      if (it != listed.end() && it->second != name) {
        throw FormatError::at(
            shard->name(), 0,
            fmt::format(
                "has tensor {}, the index has it in {}", in_quotes(tensor.name),
                in_quotes(it->second)
            )
        );
      }
      if (!found_.insert(tensor.name).second) {
        throw FormatError::at(
            shard->name(), 0,
            fmt::format("tensor {} is in two shards", in_quotes(tensor.name))
        );
      }
      tensors_.push_back(tensor);
    }
  }

  std::string path_;
  std::chrono::duration<double> header_time_{0};
  Json config_, generation_config_ = Json::object();
  std::map<std::string, Shard> shards_;
  std::set<std::string> found_;
  std::vector<TensorInfo> tensors_;
};

}  // namespace

std::shared_ptr<const ModelSource> open_hf_folder(const std::string& path) {
  return std::make_shared<const HfFolder>(path);
}

}  // namespace hearth::io
