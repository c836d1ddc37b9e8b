#pragma once
// A folder that a test fills and that goes with it.
#include <filesystem>
#include <string>

#include <unistd.h>

#include <fmt/format.h>

namespace hearth::train {

class TestFolder {
 public:
  TestFolder() {
    static int count = 0;
    path_ = (std::filesystem::temp_directory_path() /
             fmt::format("hearth-train-{}-{}", getpid(), count++))
                .string();
    std::filesystem::create_directories(path_);
  }
  ~TestFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace hearth::train
