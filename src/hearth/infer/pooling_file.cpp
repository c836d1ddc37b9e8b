#include "hearth/infer/pooling_file.h"

#include <filesystem>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/base/json.h"

namespace hearth::infer {

Pooling pooling_of_model(const std::string& folder) {
  const auto path = std::filesystem::path(folder) / "1_Pooling" / "config.json";
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return Pooling::mean;
  const Json config = read_json_file(path.string());
  const auto says = [&](const char* key) {
    return config.is_object() && config.contains(key) && config[key] == true;
  };
  // The two means point the same way, and vectors are scaled anyway.
  const bool mean = says("pooling_mode_mean_tokens") ||
                    says("pooling_mode_mean_sqrt_len_tokens");
  const bool last = says("pooling_mode_lasttoken");
  if (mean != last) return mean ? Pooling::mean : Pooling::last;
  throw UsageError(
      fmt::format(
          "[infer.pooling_of_model] {} must ask for the mean or the last token",
          path.string()
      ),
      "--pooling says which of the two to take"
  );
}

}  // namespace hearth::infer
