#pragma once
// Names of a checkpoint's parts, and its checksums.
#include <string>

namespace hearth::train::files {

inline constexpr const char* kWeights = "weights.safetensors";
inline constexpr const char* kOptimizer = "optimizer.safetensors";
inline constexpr const char* kState = "state.json";
inline constexpr const char* kChecksums = "checksums.json";

std::string checkpoints_folder(const std::string& run);

// Writes checksums.json over the folder's other files.
void write_checksums(const std::string& folder);
// Throws FormatError or IoError naming the first file that differs.
void verify_checksums(const std::string& folder);
// The same of one of the files.
void verify_checksum(const std::string& folder, const std::string& name);

// Whether the files are there in their sizes; their bytes are not read.
bool has_parts(const std::string& folder);

// A save that was interrupted leaves folders beside the checkpoints: a new one
// that is not whole, or an old one on its way out. Puts back the old one where
// nothing has taken its place, and removes the rest.
void remove_leftovers(const std::string& run);
inline constexpr const char* kNewPrefix = ".new-";
inline constexpr const char* kOldPrefix = ".old-";

}  // namespace hearth::train::files
