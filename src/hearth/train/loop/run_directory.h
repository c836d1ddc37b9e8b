#pragma once
// The folder a run lives in: its resolved config, the machine, the version,
// metrics and checkpoints. One process at a time holds it.
#include <string>
#include <string_view>

#include "hearth/base/file_handle.h"
#include "hearth/base/json.h"

namespace hearth::train {

enum class RunMode : unsigned char {
  fresh,      // there must be nothing yet, or a run that never made a step
  overwrite,  // there must be a run or nothing; what the run left is removed
  resume,     // there must be a run
};

struct RunDescription {
  std::string config;  // the resolved recipe, YAML
  Json machine;
  std::string version;
};

class RunDirectory {
 public:
  // Makes the folder where it is missing and locks it. Throws UsageError with
  // a hint when the mode does not suit what is there, or when another process
  // trains in it. A lock goes with its process, however that ends.
  RunDirectory(std::string path, RunMode mode);
  // A folder that it made and that was never described goes again.
  ~RunDirectory();
  RunDirectory(const RunDirectory&) = delete;
  RunDirectory& operator=(const RunDirectory&) = delete;

  const std::string& path() const { return path_; }
  std::string file(std::string_view name) const;
  std::string metrics_path() const { return file("metrics.jsonl"); }

  // Whether a trained model or adapter is there: the run came to its end.
  bool has_model() const;

  // Writes config.yaml, machine.json and version, each whole or not at all. Of
  // a run that does not go on, what an earlier one left is removed first: until
  // here it stands.
  void describe(const RunDescription& description) const;

 private:
  std::string path_;
  RunMode mode_;
  bool made_ = false;
  FileHandle lock_;
};

}  // namespace hearth::train
