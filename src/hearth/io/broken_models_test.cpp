// Every model of tests/broken/model is refused in one line that names it.
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "hearth/io/model_bytes_test.h"
#include "hearth/io/model_source.h"

namespace hearth::io {
namespace {

namespace fs = std::filesystem;

TEST(BrokenModels, AreRefusedInOneLineThatNamesTheFile) {
  const fs::path root = HEARTH_SOURCE_DIR "/tests/broken/model";
  std::ifstream list(root / "expected.txt");
  std::size_t seen = 0;
  for (std::string line; std::getline(list, line); ++seen) {
    const std::size_t tab = line.find('\t');
    ASSERT_NE(tab, line.npos) << line;
    const std::string name = line.substr(0, tab);
    const std::string phrase = line.substr(tab + 1);
    const std::string message =
        test::refusal([&] { open_model((root / name).string()); });
    EXPECT_NE(message.find(phrase), message.npos) << name << ": " << message;
    EXPECT_NE(message.find(name), message.npos) << message;
    EXPECT_EQ(message.find('\n'), message.npos) << message;
  }
  std::size_t there = 0;
  for (const auto& entry : fs::directory_iterator(root)) {
    there += entry.path().filename() == "expected.txt" ? 0 : 1;
  }
  EXPECT_EQ(seen, there) << "expected.txt must name each model once";
  EXPECT_GE(seen, 12u);
}

TEST(BrokenModels, AnArgumentThatIsNoModelIsRefused) {
  const auto message = [](const char* path) {
    return test::refusal([&] { open_model(path); });
  };
  EXPECT_NE(message("hf:org/name").find("hub"), std::string::npos);
  EXPECT_NE(message("/no/such/model").find("no such model"), std::string::npos);
  const TempFolder folder;
  folder.write("model.safetensors", "x");
  const std::string file = folder / "model.safetensors";
  EXPECT_NE(message(file.c_str()).find("the folder"), std::string::npos);
}

}  // namespace
}  // namespace hearth::io
