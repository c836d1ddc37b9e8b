#include "hearth/serve/key_scopes.h"

#include <filesystem>
#include <fstream>

#include <unistd.h>

#include <gtest/gtest.h>

#include "hearth/base/atomic_file.h"
#include "hearth/base/error.h"

namespace hearth::serve {
namespace {

namespace fs = std::filesystem;

struct Folder {
  fs::path path =
      fs::temp_directory_path() / ("hearth-scopes-" + std::to_string(getpid()));
  Folder() { fs::remove_all(path); }
  ~Folder() { fs::remove_all(path); }
};

TEST(KeyScopes, EachKeyHasItsOwnAndEachProcessOthers) {
  const KeyScopes a, b;
  EXPECT_EQ(a.of("key-one"), a.of("key-one"));
  EXPECT_NE(a.of("key-one"), a.of("key-two"));
  EXPECT_NE(a.of("key-one"), b.of("key-one"));
  EXPECT_NE(a.of(""), Hash128{});
}

TEST(KeyScopes, AFolderKeepsItsNames) {
  const Folder folder;
  const Hash128 first = KeyScopes(folder.path.string()).of("key-one");
  EXPECT_EQ(KeyScopes(folder.path.string()).of("key-one"), first);
  const auto file = folder.path / "scopes.secret";
  EXPECT_EQ(
      fs::status(file).permissions(),
      fs::perms::owner_read | fs::perms::owner_write
  );
  // HMAC-SHA256 (RFC 2104) of "key-one" under a secret of 32 bytes of 'k',
  // by Python's hmac.
  std::ofstream(file, std::ios::trunc) << std::string(32, 'k');
  EXPECT_EQ(
      KeyScopes(folder.path.string()).of("key-one").hex(),
      "81265aa9c964ce587ba32c011ce83f9c"
  );
  std::ofstream(file, std::ios::trunc) << "short";
  EXPECT_THROW(KeyScopes(folder.path.string()), FormatError);
}

}  // namespace
}  // namespace hearth::serve
