#pragma once
// A pull as the terminal shows it: a bar over everything with the files under
// way, a line for each large file when it is there, and a word about whatever
// is waited for.
#include <map>
#include <optional>
#include <string>

#include "hearth/base/progress.h"
#include "hearth/cli/command.h"
#include "hearth/hub/pull.h"

namespace hearth::cli {

// Ctrl-C is asked for through InterruptGuard: the caller holds one.
class PullProgress final : public hub::PullEvents {
 public:
  PullProgress(const Context& context, std::string model);

  void check() override;
  void planned(const hub::Pulled& plan) override;
  void advanced(const hub::PulledFile& file, std::uint64_t there) override;
  void finished(const hub::PulledFile& file) override;
  void retrying(const std::string& what, double seconds) override;
  void waiting(const hub::PulledFile& file) override;
  // Ends the bar.
  void done();

 private:
  struct Active {
    double start = 0;
    std::uint64_t first = 0, there = 0, size = 0;
  };
  void note(const std::string& text) const;
  std::string active_text() const;

  const Context& context_;
  std::string model_;
  std::optional<Progress> progress_;
  std::map<std::string, Active> active_;  // by name
  std::uint64_t finished_ = 0;            // bytes of files that are through
};

}  // namespace hearth::cli
