#pragma once
// The environment variables Hearth reads: this closed list and no other.
#include <optional>
#include <string>

namespace hearth::env {

inline constexpr const char* kDevice = "HEARTH_DEVICE";    // as --device
inline constexpr const char* kThreads = "HEARTH_THREADS";  // as --threads
inline constexpr const char* kIsa = "HEARTH_ISA";          // kernel table
inline constexpr const char* kCache = "HEARTH_CACHE";      // cache folder
inline constexpr const char* kConfig = "HEARTH_CONFIG";    // config folder
inline constexpr const char* kNoColor = "NO_COLOR";

// Hugging Face's own, read as its tools read them (hub/settings.h).
inline constexpr const char* kHfEndpoint = "HF_ENDPOINT";
inline constexpr const char* kHfHome = "HF_HOME";
inline constexpr const char* kHfHubCache = "HF_HUB_CACHE";
inline constexpr const char* kHfHubCacheOld = "HUGGINGFACE_HUB_CACHE";
inline constexpr const char* kHfOffline = "HF_HUB_OFFLINE";
inline constexpr const char* kHfOfflineOld = "TRANSFORMERS_OFFLINE";
inline constexpr const char* kHfToken = "HF_TOKEN";
inline constexpr const char* kHfTokenOld = "HUGGING_FACE_HUB_TOKEN";
inline constexpr const char* kHfTokenPath = "HF_TOKEN_PATH";
inline constexpr const char* kHfNoToken = "HF_HUB_DISABLE_IMPLICIT_TOKEN";

// The variable's value; nothing when it is unset or empty.
std::optional<std::string> get(const char* name);

// Where caches live: HEARTH_CACHE, else the platform's place for a user's
// caches. The folder may not exist yet.
std::string cache_folder();
// Where a user's own settings live: HEARTH_CONFIG, else the platform's place.
std::string config_folder();

}  // namespace hearth::env
