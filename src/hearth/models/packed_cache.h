#pragma once
// Models as this machine's kernels read them, kept in a folder so that the
// next start maps them instead of reading, converting and packing.
//
//   CONTENT-VARIANT.pack  an io::PackedFile: the weights of that content, in
//                         the variant of instruction set, layout and options
//   CONTENT-VARIANT.pack.tmp-RANDOM    the same while it is written
//   names/PATH.json       which content lay at a path, with the sizes and
//                         times of its files then
//
// A model is found by its path if none of its files has changed since, and
// its weights by what they are, so a copy elsewhere shares them once it was
// looked at. Nothing here is trusted: what does not fit is not used.
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "hearth/base/hash.h"
#include "hearth/io/packed_file.h"
#include "hearth/models/load.h"

namespace hearth::models {

// What a packed file is bound to beside the content.
Json packed_variant(const LoadOptions& options, mx::Dtype compute);

// Over the config and every tensor's name, type, shape and bytes; reads all of
// them. `read` is told how many bytes were.
Hash128 content_hash(
    const io::ModelSource& source,
    io::ReadMode mode,
    const std::function<void(std::size_t bytes, std::size_t total)>& read = {}
);

class PackedCache {
 public:
  explicit PackedCache(std::string folder);

  struct Found {
    enum class State : unsigned char { none, stale, broken, ready };
    State state = State::none;
    std::string why;                             // of stale and broken
    std::shared_ptr<const io::PackedFile> file;  // of ready
  };
  // Opens what fits a model; its bytes are not verified. Never throws for what
  // it finds.
  Found find(const io::ModelSource& source, const Json& variant) const;

  // Writes the weights of a model that was loaded with that variant, and
  // remembers its path. Older ones leave when more than limit bytes would be
  // kept; 0: a quarter of the disk. So does what a process that is gone left
  // unfinished. check is called now and then and throws to give up: then
  // nothing was changed. Returns the path. Throws IoError, and UsageError when
  // the model was not loaded for inference on a CPU.
  std::string store(
      const LoadedModel& model,
      const Json& variant,
      const Hash128& content,
      std::size_t limit = 0,
      const std::function<void()>& check = [] {}
  ) const;
  // Remembers a path alone. True when its weights are there in that variant.
  bool remember(
      const io::ModelSource& source,
      const Json& variant,
      const Hash128& content
  ) const;

  struct Listed {
    std::string path, model;  // model: where it came from
    Json variant;
    std::size_t bytes = 0;
    std::int64_t used = 0;    // seconds since 1970, when it was last mapped
    bool unfinished = false;  // being written, or left by who was killed
  };
  // Last used first. Files that cannot be read have no model.
  std::vector<Listed> list() const;
  // Removes everything; returns how many bytes that were. Throws IoError when
  // something stays.
  std::size_t clean() const;

  const std::string& folder() const { return folder_; }

 private:
  std::string folder_;

  std::string pack_path(const std::string& content, const Json& variant) const;
  std::string name_path(const io::ModelSource& source) const;
  void make_room(const std::string& keep, std::size_t limit) const;
  void remove_left_over() const;
};

// Verifies the file and says in the report what that took, a packed file being
// one shard; classes have the time of the blocks that their bytes lie in.
// Throws FormatError when a block is not what was written.
void verify_packed(const io::PackedFile& file, LoadReport& report);

// Fills every parameter from the file: arrays over its mapping, which they
// keep. Throws FormatError when a parameter is missing or not of its shape.
void fill_from_packed(
    const std::shared_ptr<const io::PackedFile>& file,
    Decoder& decoder
);

}  // namespace hearth::models
