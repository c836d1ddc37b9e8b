// Every file of tests/broken is refused in one line that names it and says
// why. reasons.txt holds what the line must contain, a file a line.
#include <filesystem>
#include <fstream>
#include <map>

#include <gtest/gtest.h>

#include "hearth/base/error.h"
#include "hearth/data/cache/cache.h"
#include "hearth/data/read/dataset_test_impl.h"
#include "hearth/text/chat/chat.h"
#include "hearth/text/tokenizer/tokenizer.h"

namespace hearth::data {
namespace {

namespace fs = std::filesystem;

const fs::path kFolder = fs::path(HEARTH_SOURCE_DIR) / "tests/broken";

std::map<std::string, std::string> reasons() {
  std::map<std::string, std::string> out;
  std::ifstream in(kFolder / "reasons.txt");
  for (std::string line; std::getline(in, line);) {
    const auto tab = line.find('\t');
    if (tab != line.npos) out[line.substr(0, tab)] = line.substr(tab + 1);
  }
  return out;
}

void prepare_strictly(const std::string& file) {
  const testing::TempFolder folder;
  CacheSettings settings;
  settings.read.on_bad_line = BadLinePolicy::kFatal;
  PrepareOptions options;
  options.folder = folder / "cache";
  options.threads = 1;
  prepare_cache(
      find_sources({file}), settings, testing::byte_encoder(), options
  );
}

// Reads a file as its folder says; the message of the refusal.
std::string refusal(const std::string& kind, const std::string& file) {
  try {
    if (kind == "tokenizer") text::Tokenizer::load(file);
    if (kind == "jsonl") prepare_strictly(file);
    if (kind == "shard") io::TokenShard(file).verify();
    if (kind == "template") {
      const Json messages =
          Json::array({{{"role", "user"}, {"content", "hi"}}});
      text::ChatTemplates::load(file).choose(false).render(messages, {});
    }
  } catch (const UsageError& e) {
    return e.what();
  }
  return "it was not refused";
}

TEST(BrokenFiles, AreRefusedInOneLine) {
  auto wanted = reasons();
  ASSERT_FALSE(wanted.empty());
  for (const auto& entry : fs::recursive_directory_iterator(kFolder)) {
    if (!entry.is_regular_file()) continue;
    const std::string name =
        fs::relative(entry.path(), kFolder).generic_string();
    // Models are refused by io, whose own test walks them.
    if (name == "reasons.txt" || name.starts_with("model/")) continue;
    const auto reason = wanted.find(name);
    ASSERT_NE(reason, wanted.end()) << name << " has no line in reasons.txt";
    const std::string kind = name.substr(0, name.find('/'));
    const std::string message = refusal(kind, entry.path().string());
    EXPECT_NE(message.find(entry.path().filename().string()), message.npos)
        << message;
    EXPECT_NE(message.find(reason->second), message.npos)
        << name << ": " << message;
    EXPECT_EQ(message.find('\n'), message.npos) << message;
    wanted.erase(reason);
  }
  for (const auto& [name, reason] : wanted) ADD_FAILURE() << name << " is gone";
}

}  // namespace
}  // namespace hearth::data
