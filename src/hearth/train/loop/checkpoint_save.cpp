// Writing a checkpoint: into a folder beside its place, synced, renamed.
#include <filesystem>

#include <fcntl.h>

#include <fmt/format.h>

#include "hearth/base/atomic_file.h"
#include "hearth/base/error.h"
#include "hearth/base/file_handle.h"
#include "hearth/io/safetensors_writer.h"
#include "hearth/train/loop/checkpoint.h"
#include "hearth/train/loop/checkpoint_files_impl.h"
#include "hearth/train/loop/checkpoint_tensors_impl.h"

namespace hearth::train {
namespace {

namespace fs = std::filesystem;

void sync_folder(const std::string& path) {
  FileHandle::open(path, O_RDONLY | O_DIRECTORY, "open").sync();
}

void write_arrays(
    const std::string& path,
    const std::vector<NamedArray>& arrays
) {
  std::vector<io::TensorToWrite> tensors;
  for (const NamedArray& a : arrays) tensors.push_back(tensor_of(a));
  io::write_safetensors(path, std::move(tensors));
}

void write_parts(const std::string& folder, const CheckpointContent& content) {
  fs::create_directory(folder);
  write_arrays(folder + "/" + files::kWeights, content.weights);
  write_arrays(folder + "/" + files::kOptimizer, content.optimizer);
  const Json state = {{"step", content.step}, {"state", content.state}};
  write_file_atomically(folder + "/" + files::kState, to_json_text(state));
  files::write_checksums(folder);
  sync_folder(folder);
}

// Renames a whole new checkpoint to its place, where one of the same step may
// stand; it stays beside until the new one is in.
void put_in_place(const fs::path& made, const fs::path& place) {
  const fs::path old =
      place.parent_path() / (files::kOldPrefix + place.filename().string());
  if (fs::exists(place)) fs::rename(place, old);
  fs::rename(made, place);
  sync_folder(place.parent_path().string());
  fs::remove_all(old);
}

}  // namespace

std::string save_checkpoint(
    const std::string& run,
    const CheckpointContent& content
) {
  if (content.step < 0) {
    throw UsageError("[train.save_checkpoint] the step must be 0 or more");
  }
  const fs::path place = checkpoint_path(run, content.step);
  const fs::path made =
      place.parent_path() / (files::kNewPrefix + place.filename().string());
  try {
    fs::create_directories(place.parent_path());
    files::remove_leftovers(run);
    write_parts(made.string(), content);
    put_in_place(made, place);
  } catch (const std::exception& e) {
    std::error_code ignored;
    fs::remove_all(made, ignored);
    if (dynamic_cast<const UsageError*>(&e) != nullptr) throw;
    throw IoError(
        fmt::format(
            "[train.save_checkpoint] step {} was not saved: {}", content.step,
            e.what()
        ),
        "earlier checkpoints stand; make room on the disk and resume"
    );
  }
  return place.string();
}

}  // namespace hearth::train
