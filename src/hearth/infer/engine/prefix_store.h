#pragma once
// Beginnings of texts on disk: whole pages of keys and values, found by the
// tokens they are of. What a page holds depends on the model and on the way it
// is computed, so each file carries a fingerprint: the runner's name for its
// weights, and what comes of a fixed text. A file that is damaged, or of
// another model, is not used; every file appears whole.
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hearth/base/hash.h"
#include "hearth/infer/engine/prefix_cache.h"

namespace hearth::infer {

class PrefixStore {
 public:
  // Makes the folder. Throws UsageError when the runner's pages cannot be
  // kept, IoError when the folder cannot be written.
  PrefixStore(Runner& runner, std::string folder, std::size_t max_bytes);

  // Tokens that some file has of this text's beginning, whole pages of them.
  int find(std::span<const std::int32_t> tokens, const PrefixGroup& group);
  // A new sequence of the first `count` tokens, as find() gave it; the pool
  // must have the pages. -1 when the file turns out to be gone or damaged.
  SequenceId read(
      std::span<const std::int32_t> tokens,
      int count,
      const PrefixGroup& group
  );
  // Keeps what the sequence holds of these tokens, unless it is there or too
  // short to be worth it. A disk that fails ends the writing, never the work.
  void write(
      SequenceId sequence,
      std::span<const std::int32_t> tokens,
      const PrefixGroup& group
  );
  std::size_t bytes() const;

 private:
  struct Entry {
    std::string path;
    Hash128 fingerprint;
    std::vector<std::int32_t> tokens;
    std::size_t bytes = 0;
    std::int64_t used = 0;
  };

  Runner& runner_;
  std::string folder_;
  std::size_t max_bytes_;
  std::vector<Entry> entries_;
  std::map<int, Hash128> fingerprints_;  // by adapter
  std::int64_t clock_ = 0;
  bool writes_ = true;

  // The name of what computes; nothing where the pool has no free page to find
  // it out with.
  std::optional<Hash128> fingerprint_of(int adapter);
  // The fingerprint of one scope: without the scope's secret nobody knows even
  // its files' names.
  std::optional<Hash128> name_of(const PrefixGroup& group);
  Entry* best(
      std::span<const std::int32_t> tokens,
      const PrefixGroup& group,
      int& most
  );
  void list();
  void remove(const Entry& entry);
  void make_room(std::size_t bytes);
  void save(const Entry& entry, SequenceId sequence) const;
};

}  // namespace hearth::infer
