#include "hearth/hub/http_client.h"

#include <chrono>

#include <fmt/format.h>

#include "hearth/base/units.h"

namespace hearth::hub {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kReadBytes = std::size_t{128} << 10;
constexpr int kMostInterim = 8;  // answers of the kind 100 Continue

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Notices a server that drips: each window must bring its share.
class SpeedWatch {
 public:
  explicit SpeedWatch(const HttpLimits& limits) : limits_(limits) {}
  void add(std::size_t bytes) { bytes_ += bytes; }
  void check() {
    if (seconds_since(start_) < limits_.slow_seconds) return;
    if (bytes_ < limits_.slow_bytes) {
      throw NetworkError(
          fmt::format(
              "it sent {} in {:.0f} s, which is too slow", format_bytes(bytes_),
              limits_.slow_seconds
          )
      );
    }
    start_ = Clock::now();
    bytes_ = 0;
  }

 private:
  const HttpLimits& limits_;
  Clock::time_point start_ = Clock::now();
  std::size_t bytes_ = 0;
};

std::string request_text(const HttpRequest& request) {
  std::string out = fmt::format(
      "{} {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: hearth\r\nAccept: */*\r\n"
      "Accept-Encoding: identity\r\nConnection: close\r\n",
      request.head_only ? "HEAD" : "GET", request.url.target,
      request.url.authority()
  );
  for (const auto& [name, value] : request.headers) {
    out += fmt::format("{}: {}\r\n", name, value);
  }
  return out + "\r\n";
}

class Exchange {
 public:
  Exchange(
      const HttpRequest& request,
      const HttpLimits& limits,
      const HttpReceiver& receiver
  )
      : request_(request),
        receiver_(receiver),
        speed_(limits),
        connection_(
            request.url,
            {limits.connect_seconds, limits.idle_seconds,
             [this] {
               receiver_.check();
               speed_.check();
             }}
        ),
        buffer_(kReadBytes) {}

  HttpHead run() {
    connection_.write(request_text(request_));
    HttpHead head = read_head();
    for (int i = 0; head.status < 200; head = read_head()) {
      if (++i > kMostInterim) {
        throw FormatError("the answer does not come to its point");
      }
    }
    const BodyFrame frame = body_frame(head, request_.head_only);
    if (receiver_.head(head)) read_body(frame);
    return head;
  }

 private:
  // Bytes that are there already, else the next ones; empty at the end.
  std::string_view next() {
    if (!pending_.empty()) return std::exchange(pending_, {});
    const std::size_t n = connection_.read(buffer_);
    speed_.add(n);
    return {buffer_.data(), n};
  }

  HttpHead read_head() {
    std::string text;
    while (true) {
      const std::string_view bytes = next();
      if (bytes.empty()) throw NetworkError("it closed without an answer");
      const std::size_t before = text.size();
      text += bytes.substr(0, kMostHeadBytes + 4);
      if (const auto end = end_of_head(text)) {
        pending_ = bytes.substr(*end - before);
        return parse_http_head(std::string_view(text).substr(0, *end));
      }
      if (text.size() > kMostHeadBytes) {
        throw FormatError("the answer's headers are too large");
      }
    }
  }

  void read_body(const BodyFrame& frame) {
    switch (frame.kind) {
      case BodyFrame::Kind::none:
        return;
      case BodyFrame::Kind::length:
        return read_length(frame.length);
      case BodyFrame::Kind::chunked:
        return read_chunks();
      case BodyFrame::Kind::until_close:
        return read_to_close();
    }
  }

  void read_length(std::uint64_t left) {
    while (left > 0) {
      const std::string_view bytes = next();
      if (bytes.empty()) {
        throw NetworkError(
            fmt::format("it broke off {} before the end", format_bytes(left))
        );
      }
      const auto n = std::min<std::uint64_t>(left, bytes.size());
      left -= n;
      if (!receiver_.body(bytes.substr(0, n))) return;
    }
  }

  void read_chunks() {
    ChunkReader chunks;
    std::string piece;
    while (!chunks.done()) {
      const std::string_view bytes = next();
      if (bytes.empty()) throw NetworkError("it broke off before the end");
      piece.clear();
      chunks.feed(bytes, piece);
      if (!piece.empty() && !receiver_.body(piece)) return;
    }
  }

  void read_to_close() {
    while (true) {
      const std::string_view bytes = next();
      if (bytes.empty() || !receiver_.body(bytes)) return;
    }
  }

  const HttpRequest& request_;
  const HttpReceiver& receiver_;
  SpeedWatch speed_;
  Connection connection_;
  std::vector<char> buffer_;
  std::string_view pending_;  // of buffer_
};

}  // namespace

HttpHead http_fetch(
    const HttpRequest& request,
    const HttpLimits& limits,
    const HttpReceiver& receiver
) {
  return Exchange(request, limits, receiver).run();
}

}  // namespace hearth::hub
