#include "hearth/serve/key_scopes.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "hearth/base/atomic_file.h"
#include "hearth/base/error.h"
#include "hearth/base/temp_folder_test.h"

namespace hearth::serve {
namespace {

namespace fs = std::filesystem;

TEST(KeyScopes, EachKeyHasItsOwnAndEachProcessOthers) {
  const KeyScopes a, b;
  EXPECT_EQ(a.of("key-one"), a.of("key-one"));
  EXPECT_NE(a.of("key-one"), a.of("key-two"));
  EXPECT_NE(a.of("key-one"), b.of("key-one"));
  EXPECT_NE(a.of(""), Hash128{});
}

TEST(KeyScopes, AFolderKeepsItsNames) {
  const TempFolder temp;
  const std::string folder = temp / "scopes";
  const Hash128 first = KeyScopes(folder).of("key-one");
  EXPECT_EQ(KeyScopes(folder).of("key-one"), first);
  const auto file = fs::path(folder) / "scopes.secret";
  EXPECT_EQ(
      fs::status(file).permissions(),
      fs::perms::owner_read | fs::perms::owner_write
  );
  // HMAC-SHA256 (RFC 2104) of "key-one" under a secret of 32 bytes of 'k',
  // by Python's hmac.
  std::ofstream(file, std::ios::trunc) << std::string(32, 'k');
  EXPECT_EQ(
      KeyScopes(folder).of("key-one").hex(), "81265aa9c964ce587ba32c011ce83f9c"
  );
  std::ofstream(file, std::ios::trunc) << "short";
  EXPECT_THROW(KeyScopes{folder}, FormatError);
}

}  // namespace
}  // namespace hearth::serve
