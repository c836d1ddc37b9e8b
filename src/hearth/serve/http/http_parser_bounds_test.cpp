// Bounds that a body in chunks could get around, piece by piece.
#include <gtest/gtest.h>

#include "hearth/serve/http/http_parser.h"

namespace hearth::serve {
namespace {

int fault_of(std::string_view text, const HttpLimits& limits = {}) {
  HttpParser parser(limits);
  parser.feed(text);
  return parser.fault() ? parser.fault()->status : 0;
}

const std::string kChunked =
    "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";

TEST(HttpParserBounds, ManyShortTrailerLinesAreTooLongToo) {
  const HttpLimits limits{.max_target = 64, .max_head = 300};
  std::string text = kChunked + "1\r\na\r\n0\r\n";
  for (int i = 0; i < 5; ++i) text += "A: " + std::string(10, 'a') + "\r\n";
  EXPECT_EQ(fault_of(text + "\r\n", limits), 0);
  for (int i = 0; i < 40; ++i) text += "A: " + std::string(10, 'a') + "\r\n";
  EXPECT_EQ(fault_of(text, limits), 431);
}

TEST(HttpParserBounds, AChunksSizeHasEightDigitsAtMost) {
  EXPECT_EQ(fault_of(kChunked + "00000001\r\na\r\n0\r\n\r\n"), 0);
  EXPECT_EQ(fault_of(kChunked + "100000001\r\na\r\n0\r\n\r\n"), 400);
  // Zeros before it, as some clients write them, are as many as a line holds.
  EXPECT_EQ(fault_of(kChunked + "000000001\r\na\r\n0\r\n\r\n"), 0);
  const std::string zeros(300, '0');
  EXPECT_EQ(fault_of(kChunked + zeros + "1\r\na\r\n0\r\n\r\n"), 400);
}

TEST(HttpParserBounds, OldClientsSendNoChunks) {
  EXPECT_EQ(
      fault_of(
          "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
      ),
      501
  );
}

TEST(HttpParserBounds, AValueHoldsNoControlCharacter) {
  for (const char c : {'\0', '\x01', '\x1f', '\x7f'}) {
    const std::string text =
        std::string("GET / HTTP/1.1\r\nHost: h\r\nA: b") + c + "c\r\n\r\n";
    EXPECT_EQ(fault_of(text), 400) << static_cast<int>(c);
  }
  EXPECT_EQ(fault_of("GET / HTTP/1.1\r\nHost: h\r\nA: b\tc\r\n\r\n"), 0);
}

}  // namespace
}  // namespace hearth::serve
