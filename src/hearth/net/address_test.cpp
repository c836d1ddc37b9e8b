// Addresses and heads that come from outside.
#include <gtest/gtest.h>

#include "hearth/base/error.h"
#include "hearth/net/http_head.h"
#include "hearth/net/url.h"

namespace hearth::net {
namespace {

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
      "W/\"ab\"\r\n\r\n";
  const HttpHead head = parse_http_head(text);
  EXPECT_EQ(head.status, 302);
  EXPECT_TRUE(head.is_redirect());
  EXPECT_EQ(head.find("location").value(), "/x");
  EXPECT_EQ(head.find("x-linked-etag").value(), "W/\"ab\"");
  EXPECT_EQ(parse_http_head("HTTP/1.0 200\nA: b\n\n").status, 200);
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

TEST(HttpHead, SaysOneThingOfItsBody) {
  const auto check = [](const std::string& headers, bool head_request) {
    check_body_headers(
        parse_http_head("HTTP/1.1 200 OK\r\n" + headers + "\r\n"), head_request
    );
  };
  for (const char* good :
       {"", "Content-Length: 5\r\n", "Transfer-Encoding: Chunked\r\n",
        "Content-Encoding: identity\r\n"}) {
    EXPECT_NO_THROW(check(good, false)) << good;
  }
  EXPECT_NO_THROW(check("Content-Encoding: gzip\r\n", true));
  for (const char* bad :
       {"Content-Length: -1\r\n", "Content-Length: 5x\r\n",
        "Content-Length: 99999999999999999999\r\n",
        "Content-Length: 5\r\nContent-Length: 6\r\n",
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: gzip\r\n", "Content-Encoding: gzip\r\n"}) {
    EXPECT_THROW(check(bad, false), FormatError) << bad;
  }
}

}  // namespace
}  // namespace hearth::net
