#include "hearth/io/model_source.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/io/gguf_source.h"
#include "hearth/io/hf_folder.h"

namespace hearth::io {
namespace fs = std::filesystem;

const TensorInfo* ModelSource::find(std::string_view name) const {
  const auto all = tensors();
  const auto it = std::lower_bound(
      all.begin(), all.end(), name,
      [](const TensorInfo& t, std::string_view n) { return t.name < n; }
  );
  return it != all.end() && it->name == name ? &*it : nullptr;
}

std::shared_ptr<const ModelSource> open_model(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::is_directory(status)) return open_hf_folder(path);
  if (!fs::exists(status)) {
    if (path.starts_with("hf:")) {
      throw UsageError(
          fmt::format(
              "{}: a model of a hub is fetched before it is opened", path
          ),
          fmt::format("hearth pull {}", path.substr(3))
      );
    }
    throw UsageError(
        fmt::format("{}: there is no such model folder or .gguf file", path)
    );
  }
  if (path.ends_with(".safetensors") || path.ends_with(".json")) {
    throw UsageError(
        fmt::format("{}: a model is the folder that holds this file", path),
        fmt::format("give {}", fs::path(path).parent_path().string() + "/")
    );
  }
  return open_gguf(path);
}

}  // namespace hearth::io
