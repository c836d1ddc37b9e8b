// Names, addresses and heads that come from outside.
#include <gtest/gtest.h>

#include "hearth/base/error.h"
#include "hearth/hub/http_head.h"
#include "hearth/hub/hub_headers.h"
#include "hearth/hub/repo_name.h"
#include "hearth/hub/url.h"

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

TEST(Url, IsReadAndResolved) {
  const Url url = parse_url("https://Hub.Example:8443/base?x=1", "it");
  EXPECT_EQ(url.origin(), "https://hub.example:8443");
  EXPECT_EQ(url.target, "/base?x=1");
  EXPECT_EQ(url.shown(), "https://hub.example:8443/base");
  EXPECT_EQ(parse_url("http://[::1]:80", "it").authority(), "[::1]");
  EXPECT_TRUE(parse_url("http://[::1]:8080", "it").is_loopback());
  EXPECT_TRUE(parse_url("http://127.0.0.9", "it").is_loopback());
  EXPECT_FALSE(parse_url("http://127.0.0.1.evil.com", "it").is_loopback());
  const auto to = [&](const char* where) {
    const Url out = resolve_url(url, where);
    return out.origin() + out.target;
  };
  EXPECT_EQ(to("/x?y"), "https://hub.example:8443/x?y");
  EXPECT_EQ(to("x"), "https://hub.example:8443/x");
  EXPECT_EQ(to("?y"), "https://hub.example:8443/base?y");
  EXPECT_EQ(to("//cdn.example/x"), "https://cdn.example/x");
  EXPECT_EQ(
      to("http://cdn.example?s=http://x/"), "http://cdn.example/?s=http://x/"
  );
  EXPECT_EQ(to("/x?to=http://y/z"), "https://hub.example:8443/x?to=http://y/z");
  EXPECT_EQ(percent_encode("a b/ü+", true), "a%20b/%C3%BC%2B");
  EXPECT_EQ(percent_encode("refs/pr/1", false), "refs%2Fpr%2F1");
}

TEST(Url, RefusesWhatIsNone) {
  for (const char* bad :
       {"", "huggingface.co", "ftp://x", "https://", "https://user:pw@host/",
        "https://a b/", "https://x:0", "https://x:99999", "https://x:8x",
        "https://x/a b", "https://x/a\r\nHost: y", "https://[::1"}) {
    EXPECT_THROW(parse_url(bad, "it"), UsageError) << bad;
  }
  const Url base = parse_url("https://x/y", "it");
  for (const char* bad : {"", "ftp://x/", "/a b", "/a\r\nX: y", "https:///x"}) {
    EXPECT_THROW(resolve_url(base, bad), FormatError) << bad;
  }
  try {
    parse_url("https://me:secret@host/", "HF_ENDPOINT");
  } catch (const UsageError& e) {
    EXPECT_EQ(std::string(e.what()).find("secret"), std::string::npos);
  }
}

TEST(HttpHead, IsReadWithAnyLineEnds) {
  const std::string text =
      "HTTP/1.1 302 Found\r\nLocation:  /x \r\nX-Linked-ETag: "
      "W/\"ab\"\r\n\r\nrest";
  const auto end = end_of_head(text);
  ASSERT_TRUE(end);
  EXPECT_EQ(text.substr(*end), "rest");
  const HttpHead head = parse_http_head(std::string_view(text).substr(0, *end));
  EXPECT_EQ(head.status, 302);
  EXPECT_TRUE(head.is_redirect());
  EXPECT_EQ(head.find("location").value(), "/x");
  EXPECT_EQ(normalize_etag(head.find("x-linked-etag").value()), "ab");
  EXPECT_EQ(parse_http_head("HTTP/1.0 200\nA: b\n\n").status, 200);
  EXPECT_FALSE(end_of_head("HTTP/1.1 200 OK\r\nA: b\r\n"));
}

TEST(HttpHead, RefusesWhatIsNone) {
  for (const char* bad :
       {"", "SSH-2.0", "HTTP/2 200", "HTTP/1.1 20", "HTTP/1.1 abc OK",
        "HTTP/1.1 2000 OK", "HTTP/1.1 200 OK\r\nno colon\r\n",
        "HTTP/1.1 200 OK\r\n: empty\r\n", "HTTP/1.1 200 OK\r\nA b: c\r\n",
        "HTTP/1.1 200 OK\r\nA: b\x01\r\n"}) {
    EXPECT_THROW(parse_http_head(bad), FormatError) << bad;
  }
  std::string many = "HTTP/1.1 200 OK\r\n";
  for (int i = 0; i < 300; ++i) many += "A: b\r\n";
  EXPECT_THROW(parse_http_head(many), FormatError);
  const std::string huge =
      "HTTP/1.1 200 OK\r\nA: " + std::string(kMostHeadBytes, 'a') + "\r\n";
  EXPECT_THROW(parse_http_head(huge), FormatError);
}

TEST(HttpBody, ItsFrameMustBeClear) {
  const auto frame = [](const std::string& headers) {
    return body_frame(
        parse_http_head("HTTP/1.1 200 OK\r\n" + headers + "\r\n"), false
    );
  };
  using Kind = BodyFrame::Kind;
  EXPECT_EQ(frame("Content-Length: 5\r\n").length, 5u);
  EXPECT_EQ(frame("Transfer-Encoding: Chunked\r\n").kind, Kind::chunked);
  EXPECT_EQ(frame("").kind, Kind::until_close);
  for (const char* bad :
       {"Content-Length: -1\r\n", "Content-Length: 5x\r\n",
        "Content-Length: 99999999999999999999\r\n",
        "Content-Length: 5\r\nContent-Length: 6\r\n",
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: gzip\r\n", "Content-Encoding: gzip\r\n"}) {
    EXPECT_THROW(frame(bad), FormatError) << bad;
  }
}

TEST(HttpBody, ChunksComeApartInAnyPieces) {
  const std::string wire =
      "4;x=y\r\nWiki\r\nA\r\n0123456789\r\n0\r\nT: v\r\n\r\nmore";
  for (std::size_t step = 1; step <= wire.size(); ++step) {
    ChunkReader chunks;
    std::string out;
    for (std::size_t i = 0; i < wire.size(); i += step) {
      chunks.feed(std::string_view(wire).substr(i, step), out);
    }
    EXPECT_TRUE(chunks.done());
    EXPECT_EQ(out, "Wiki0123456789");
  }
  for (const char* bad :
       {"x\r\n", "\r\n", "-1\r\n", "ffffffffffffffffff\r\n", "1\r\nab\r\n"}) {
    ChunkReader chunks;
    std::string out;
    EXPECT_THROW(chunks.feed(bad, out), FormatError) << bad;
  }
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
      parse_http_head(
          "HTTP/1.1 302 Found\r\nX-Repo-Commit: c\r\nX-Linked-Etag: \"big\"\r\n"
          "ETag: \"small\"\r\nX-Linked-Size: 12\r\nContent-Length: 3\r\n\r\n"
      ),
      file
  );
  read_file_headers(
      parse_http_head(
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
