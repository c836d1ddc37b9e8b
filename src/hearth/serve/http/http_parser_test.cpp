#include "hearth/serve/http/http_parser.h"

#include <gtest/gtest.h>

namespace hearth::serve {
namespace {

// Feeds the text whole, and byte by byte; both must agree.
HttpParser fed(std::string_view text, const HttpLimits& limits = {}) {
  HttpParser whole(limits), bytes(limits);
  whole.feed(text);
  for (const char c : text) bytes.feed({&c, 1});
  EXPECT_EQ(whole.done(), bytes.done());
  EXPECT_EQ(whole.fault().has_value(), bytes.fault().has_value());
  if (whole.fault() && bytes.fault()) {
    EXPECT_EQ(whole.fault()->status, bytes.fault()->status);
  }
  if (bytes.done() && whole.done()) {
    HttpParser copy = whole;
    const auto a = copy.take(), b = bytes.take();
    EXPECT_EQ(a.body, b.body);
    EXPECT_EQ(a.headers, b.headers);
    EXPECT_EQ(a.path, b.path);
  }
  return whole;
}

int fault_of(std::string_view text, const HttpLimits& limits = {}) {
  const auto parser = fed(text, limits);
  return parser.fault() ? parser.fault()->status : 0;
}

TEST(HttpParser, ReadsARequestWithItsBody) {
  auto parser =
      fed("POST /v1/x?a=b HTTP/1.1\r\nHost: h\r\nX-Y:  z \r\n"
          "content-length: 3\r\n\r\nabc");
  ASSERT_TRUE(parser.done());
  const auto r = parser.take();
  EXPECT_EQ(r.method, "POST");
  EXPECT_EQ(r.path, "/v1/x");
  EXPECT_EQ(r.query, "a=b");
  EXPECT_EQ(r.body, "abc");
  ASSERT_NE(r.header("x-y"), nullptr);
  EXPECT_EQ(*r.header("x-y"), "z");
  EXPECT_TRUE(r.keeps_alive());
  EXPECT_FALSE(parser.started());
}

TEST(HttpParser, ReadsAWholeUrl) {
  const struct {
    const char *target, *path, *query, *host;
  } cases[] = {
      {"http://a:80/v1/x?b=c", "/v1/x", "b=c", "a:80"},
      {"HTTPS://[::1]:8080", "/", "", "[::1]:8080"},
      {"http://a?b=/c", "/", "b=/c", "a"},
      {"/x?u=http://b/", "/x", "u=http://b/", "h"},
  };
  for (const auto& c : cases) {
    const std::string line = std::string("GET ") + c.target + " HTTP/1.";
    auto parser = fed(line + "1\r\nHost: h\r\n\r\n");
    ASSERT_TRUE(parser.done()) << c.target;
    const auto r = parser.take();
    EXPECT_EQ(r.path, c.path);
    EXPECT_EQ(r.query, c.query);
    // The host of the URL counts.
    EXPECT_EQ(*r.header("Host"), c.host);
    EXPECT_EQ(fault_of(line + "1\r\n\r\n"), 400);
  }
  auto old = fed("GET http://a/ HTTP/1.0\r\n\r\n");
  ASSERT_TRUE(old.done());
  EXPECT_EQ(*old.take().header("Host"), "a");
  for (const char* target :
       {"http:///x", "http://", "http://u@a/", "ftp://a/", "http:a/", "?x"}) {
    EXPECT_EQ(
        fault_of(std::string("GET ") + target + " HTTP/1.1\r\nHost: h\r\n\r\n"),
        400
    ) << target;
  }
}

TEST(HttpParser, ReadsChunksWithExtensionsAndTrailer) {
  auto parser =
      fed("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: Chunked\r\n\r\n"
          "3;x=1\r\nabc\r\nA\r\n0123456789\r\n0\r\nT: v\r\n\r\n");
  ASSERT_TRUE(parser.done());
  EXPECT_EQ(parser.take().body, "abc0123456789");
}

TEST(HttpParser, TakesOneRequestAtATime) {
  const std::string one = "\r\nGET /a HTTP/1.1\r\nHost: h\r\n\r\n";
  const std::string two = one + "GET /b HTTP/1.1\r\nHost: h\r\n\r\n";
  HttpParser parser{HttpLimits{}};
  EXPECT_EQ(parser.feed(two), one.size());
  EXPECT_EQ(parser.take().path, "/a");
  parser.feed(std::string_view(two).substr(one.size()));
  ASSERT_TRUE(parser.done());
  EXPECT_EQ(parser.take().path, "/b");
}

TEST(HttpParser, KeepAliveFollowsVersionAndHeader) {
  auto old = fed("GET / HTTP/1.0\r\n\r\n");
  ASSERT_TRUE(old.done());
  EXPECT_FALSE(old.take().keeps_alive());
  auto asked = fed("GET / HTTP/1.0\r\nConnection: x, Keep-Alive\r\n\r\n");
  EXPECT_TRUE(asked.take().keeps_alive());
  auto closes = fed("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
  EXPECT_FALSE(closes.take().keeps_alive());
}

TEST(HttpParser, RefusesWhatIsNotARequest) {
  const std::string host = "Host: h\r\n";
  const std::pair<std::string, int> cases[] = {
      {"GET /\r\n\r\n", 400},
      {"GET  / HTTP/1.1\r\n" + host + "\r\n", 400},
      {"G@T / HTTP/1.1\r\n" + host + "\r\n", 400},
      {"GET x HTTP/1.1\r\n" + host + "\r\n", 400},
      {"GET ftp://h/ HTTP/1.1\r\n" + host + "\r\n", 400},
      {"GET /\x01 HTTP/1.1\r\n" + host + "\r\n", 400},
      {"GET / HTTP/2.0\r\n" + host + "\r\n", 505},
      {"GET / HTTP/1.1\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\n" + host + host + "\r\n", 400},
      {"GET / HTTP/1.1\r\n" + host + "A : b\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\n" + host + "A: b\r\n c\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\n" + host + "A: b\nB: c\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\n" + host + "no colon\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\n" + host + "Expect: miracles\r\n\r\n", 417},
  };
  for (const auto& [text, status] : cases) {
    EXPECT_EQ(fault_of(text), status) << text;
  }
}

TEST(HttpParser, RefusesBodiesThatCouldBeReadTwoWays) {
  const std::string start = "POST / HTTP/1.1\r\nHost: h\r\n";
  const std::pair<std::string, int> cases[] = {
      {"Content-Length: 1\r\nContent-Length: 1\r\n\r\n", 400},
      {"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
      {"Content-Length: +1\r\n\r\n", 400},
      {"Content-Length: -1\r\n\r\n", 400},
      {"Content-Length: 1, 1\r\n\r\n", 400},
      {"Content-Length: \r\n\r\n", 400},
      {"Content-Length: 99999999999999999999999\r\n\r\n", 413},
      {"Transfer-Encoding: gzip, chunked\r\n\r\n", 501},
      {"Transfer-Encoding: chunked\r\n\r\nx\r\n", 400},
      {"Transfer-Encoding: chunked\r\n\r\n-1\r\n", 400},
      {"Transfer-Encoding: chunked\r\n\r\n0x1\r\n", 400},
      {"Transfer-Encoding: chunked\r\n\r\n1\nab", 400},
      {"Transfer-Encoding: chunked\r\n\r\n1\r\nab\r\n", 400},
      {"Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n", 400},
  };
  for (const auto& [text, status] : cases) {
    EXPECT_EQ(fault_of(start + text), status) << text;
  }
}

TEST(HttpParser, RefusesChunksThatCouldBeReadTwoWays) {
  const std::string start =
      "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
  const std::pair<std::string, int> cases[] = {
      {" 1\r\na\r\n0\r\n\r\n", 400},
      {"\t1\r\na\r\n0\r\n\r\n", 400},
      {"1 \r\na\r\n0\r\n\r\n", 400},
      {"1;x\ry\r\na\r\n0\r\n\r\n", 400},
      {"1\r;x\r\na\r\n0\r\n\r\n", 400},
      {"1;x\x01\r\na\r\n0\r\n\r\n", 400},
      {"1\r\na\r\n0\r\nno colon\r\n\r\n", 400},
      {"1\r\na\r\n0\r\nA : b\r\n\r\n", 400},
      {"1\r\na\r\n0\r\nA: b\r\n folded\r\n\r\n", 400},
      {"1\r\na\r\n0\r\nA: b\rc\r\n\r\n", 400},
      {"1\r\na\r\n0\r\nGET / HTTP/1.1\r\n\r\n", 400},
      {"1 ;x=\"y\"\r\na\r\n0\r\nA: b\r\n\r\n", 0},
      {"000000000001\r\na\r\n0000000000\r\n\r\n", 0},
      {"000123456789\r\na\r\n0\r\n\r\n", 400},
  };
  for (const auto& [text, status] : cases) {
    EXPECT_EQ(fault_of(start + text), status) << text;
  }
  std::string many = start + "0\r\n";
  for (int i = 0; i < 101; ++i) many += "A: b\r\n";
  EXPECT_EQ(fault_of(many + "\r\n"), 431);
}

TEST(HttpParser, BoundsEveryLength) {
  const HttpLimits limits{
      .max_target = 10, .max_head = 300, .max_headers = 3, .max_body = 8
  };
  const std::string start = "POST / HTTP/1.1\r\nHost: h\r\n";
  EXPECT_EQ(
      fault_of("GET /aaaaaaaaaaaaa HTTP/1.1\r\nHost: h\r\n\r\n", limits), 414
  );
  EXPECT_EQ(fault_of("GET /" + std::string(1000, 'a'), limits), 414);
  EXPECT_EQ(fault_of(start + "A: " + std::string(400, 'a'), limits), 431);
  EXPECT_EQ(fault_of(start + "A: 1\r\nB: 2\r\nC: 3\r\n\r\n", limits), 431);
  EXPECT_EQ(fault_of(start + "Content-Length: 9\r\n\r\n", limits), 413);
  EXPECT_EQ(fault_of(start + "Content-Length: 8\r\n\r\n12345678", limits), 0);
  const std::string chunked = start + "Transfer-Encoding: chunked\r\n\r\n";
  EXPECT_EQ(
      fault_of(chunked + "5\r\n12345\r\n4\r\n1234\r\n0\r\n\r\n", limits), 413
  );
  EXPECT_EQ(fault_of(chunked + "1" + std::string(999, ';'), limits), 400);
  EXPECT_EQ(
      fault_of(chunked + "0\r\nA: " + std::string(400, 'a'), limits), 400
  );
}

TEST(HttpParser, AsksOnceForABodyThatWaits) {
  HttpParser parser{HttpLimits{}};
  parser.feed(
      "POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\n"
      "Content-Length: 2\r\n\r\n"
  );
  EXPECT_TRUE(parser.wants_continue());
  EXPECT_FALSE(parser.wants_continue());
}

TEST(HttpMessage, AHeaderCannotEndItsLine) {
  const HttpAnswer answer{200, {{"A", "b\r\nSet-Cookie: c"}}, ""};
  EXPECT_ANY_THROW(answer_head(answer, HttpFraming::length, true));
}

}  // namespace
}  // namespace hearth::serve
