#include "hearth/base/yaml.h"

#include <gtest/gtest.h>

#include "hearth/base/error.h"

namespace hearth {
namespace {

std::string error_of(const std::string& text) {
  try {
    parse_yaml(text, "r.yaml");
  } catch (const FormatError& e) {
    return e.what();
  }
  return "";
}

TEST(Yaml, RemembersLinesAndQuotes) {
  const YamlNode n =
      parse_yaml("a: 1\nb:\n  c: \"2\"\n  d: [x, y]\n", "r.yaml");
  ASSERT_NE(n.find("b"), nullptr);
  const YamlNode* c = n.find("b")->find("c");
  ASSERT_NE(c, nullptr);
  EXPECT_EQ(c->where(), "r.yaml:3");
  EXPECT_TRUE(c->quoted);
  EXPECT_FALSE(n.find("a")->quoted);
  EXPECT_EQ(n.find("b")->find("d")->items.size(), 2u);
  EXPECT_EQ(n.find("zzz"), nullptr);
}

TEST(Yaml, ErrorsSayFileAndLine) {
  EXPECT_EQ(error_of("a: 1\nb: [1, 2\n").rfind("r.yaml:", 0), 0u);
  EXPECT_EQ(
      error_of("a: 1\nb: 2\na: 3\n"),
      "r.yaml:3: key 'a' must appear once, it is also on line 1"
  );
  EXPECT_NE(error_of("? [1, 2]\n: 3\n"), "");
}

TEST(Yaml, HostileDocumentsAreRefused) {
  EXPECT_NE(error_of(std::string(500, '[')), "");
  EXPECT_NE(error_of(std::string("a: 1\0b", 6)), "");
  // Each line has two aliases of the line before: a small text that stands for
  // billions of values.
  std::string bomb = "a0: &a0 [x, x]\n";
  for (int i = 1; i < 30; ++i) {
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [*a" +
            std::to_string(i - 1) + ", *a" + std::to_string(i - 1) + "]\n";
  }
  EXPECT_NE(error_of(bomb).find("at most"), std::string::npos);
}

}  // namespace
}  // namespace hearth
