// Names and headers that come from outside.
#include <gtest/gtest.h>

#include "hearth/base/error.h"
#include "hearth/hub/hub_headers.h"
#include "hearth/hub/repo_name.h"
#include "hearth/net/http_head.h"

namespace hearth::hub {
namespace {

TEST(RepoName, IsReadWithFileAndRevision) {
  const RepoName plain = parse_repo_name("HuggingFaceTB/SmolLM2-135M");
  EXPECT_EQ(plain.folder(), "models--HuggingFaceTB--SmolLM2-135M");
  EXPECT_EQ(plain.revision, "main");
  EXPECT_EQ(plain.text(), "HuggingFaceTB/SmolLM2-135M");
  const RepoName full = parse_hub_reference("hf:a/b.c/q4/x.gguf@refs/pr/1");
  EXPECT_EQ(full.id(), "a/b.c");
  EXPECT_EQ(full.file, "q4/x.gguf");
  EXPECT_EQ(full.revision, "refs/pr/1");
  EXPECT_EQ(full.text(), "a/b.c/q4/x.gguf@refs/pr/1");
}

TEST(RepoName, RefusesWhatWouldLeaveTheCache) {
  const std::string_view bad[] = {
      "",
      "name",
      "/name",
      "org/",
      "../name",
      "org/..",
      "./x",
      "a/.",
      "a//b",
      "a b/c",
      "a/b c",
      "a\\b/c",
      "a/b--c",
      "a--b/c",
      "a/b.git",
      "-a/b",
      "a/b-",
      "a/..b",
      "a/b@",
      "a/b@..",
      "a/b@../../x",
      "a/b@/etc",
      "a/b@x/../y",
      "a/b@x//y",
      "a/b@.x",
      "a/b@x.lock",
      "a/b@x\\y",
      "a/b@x y",
      "a/b@x:y",
      "a/b/../c",
      "a/b//c",
      "a/b/c/",
      "a/b@x@{y",
      std::string_view("a/b\0c", 5),
      std::string_view("a/b@c\0", 6)
  };
  for (const auto text : bad) {
    EXPECT_THROW(parse_repo_name(text), UsageError) << text;
  }
  EXPECT_THROW(parse_repo_name("a/" + std::string(97, 'x')), UsageError);
  EXPECT_THROW(parse_repo_name("a/b@" + std::string(256, 'x')), UsageError);
}

TEST(FileName, MustBeAPlainRelativePath) {
  for (const char* good : {"config.json", "a/b/c.bin", "..x", "x..", "ü.txt"}) {
    EXPECT_NO_THROW(check_file_name(good)) << good;
  }
  const std::string_view bad[] = {"",         "/etc/passwd",
                                  "../x",     "a/../../x",
                                  "a/..",     "./a",
                                  "a//b",     "a/",
                                  "..",       ".",
                                  "a\\..\\b", "C:\\x",
                                  "a\nb",     std::string_view("a\0b", 3)};
  for (const auto name : bad) {
    EXPECT_THROW(check_file_name(name), FormatError) << name;
  }
  EXPECT_THROW(check_file_name(std::string(256, 'x')), FormatError);
  std::string deep = "x";
  for (int i = 0; i < 40; ++i) deep += "/x";
  EXPECT_THROW(check_file_name(deep), FormatError);
}

TEST(HubHeaders, AreReadOrLeft) {
  const auto range = parse_content_range("bytes 5-9/10");
  ASSERT_TRUE(range);
  EXPECT_EQ(range->first, 5u);
  EXPECT_EQ(range->total, 10u);
  for (const char* bad :
       {"", "bytes */10", "bytes 5-9/*", "bytes 9-5/10", "bytes 5-10/10",
        "items 5-9/10", "bytes 5/10-9"}) {
    EXPECT_FALSE(parse_content_range(bad)) << bad;
  }
  EXPECT_EQ(parse_retry_after("7", 0), 7.0);
  EXPECT_EQ(
      parse_retry_after("Sun, 06 Nov 1994 08:49:37 GMT", 784111767), 10.0
  );
  EXPECT_EQ(parse_retry_after("Sun, 06 Nov 1994 08:49:37 GMT", 1e10), 0.0);
  EXPECT_FALSE(parse_retry_after("soon", 0));
  EXPECT_EQ(next_link("</a>; rel=\"prev\", </b?c=1>; rel=\"next\""), "/b?c=1");
  EXPECT_FALSE(next_link("</a>; rel=\"prev\""));
  EXPECT_FALSE(next_link(">a<; rel=\"next\""));
}

TEST(HubHeaders, TheHubsOwnAnswerComesBeforeTheStorages) {
  FileHeaders file;
  read_file_headers(
      net::parse_http_head(
          "HTTP/1.1 302 Found\r\nX-Repo-Commit: c\r\nX-Linked-Etag: \"big\"\r\n"
          "ETag: \"small\"\r\nX-Linked-Size: 12\r\nContent-Length: 3\r\n\r\n"
      ),
      file
  );
  read_file_headers(
      net::parse_http_head(
          "HTTP/1.1 200 OK\r\nETag: \"cdn\"\r\nContent-Length: 9\r\n\r\n"
      ),
      file
  );
  EXPECT_EQ(file.commit, "c");
  EXPECT_EQ(file.etag, "big");
  EXPECT_EQ(file.size, 12u);
}

}  // namespace
}  // namespace hearth::hub
