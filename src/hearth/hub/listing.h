#pragma once
// What a hub says a model consists of: the commit behind a revision, and the
// files of that commit with their sizes and checksums. The JSON is untrusted:
// every name is checked before it is part of a path.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::hub {

struct RemoteFile {
  std::string name;                   // as in "onnx/model.onnx"
  std::optional<std::uint64_t> size;  // nothing: the listing does not say
  // sha256 of a large file (64 digits), git blob id of a plain one (40); empty
  // where the listing does not say. It is the file's name in the cache.
  std::string oid;
};

struct Revision {
  std::string commit;                   // 40 digits
  std::vector<std::string> file_names;  // siblings; may lack sizes
};

// /api/models/ORG/NAME/revision/REV. `name` stands for it in errors. Throws
// FormatError.
Revision parse_revision(std::string_view json, std::string_view name);

// One page of /api/models/ORG/NAME/tree/COMMIT?recursive=true, added to files.
void parse_tree(
    std::string_view json,
    std::string_view name,
    std::vector<RemoteFile>& files
);

// Sorted by name. Throws FormatError when a name stands twice, or is both a
// file and the folder of another.
void finish_listing(std::vector<RemoteFile>& files);

}  // namespace hearth::hub
