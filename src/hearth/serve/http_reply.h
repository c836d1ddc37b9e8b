#pragma once
// The answer to one request, written from any thread. Nothing here blocks:
// bytes wait in a bounded buffer until the server's loop sends them, and a
// client that reads too slowly for its buffer is let go.
#include <chrono>
#include <cstddef>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>

#include "hearth/serve/http_message.h"

namespace hearth::serve {

using Clock = std::chrono::steady_clock;

class HttpReply {
 public:
  // What the loop gives it: how the request wants its answer, how many bytes
  // may wait, and whom to tell that there are some.
  struct Terms {
    bool keep_alive = true;
    bool head_only = false;  // the method was HEAD: no body is sent
    int minor = 1;
    std::size_t max_waiting = std::size_t{1} << 20;
    std::function<void()> wake;
  };
  explicit HttpReply(Terms terms) : terms_(std::move(terms)) {}

  // The whole answer. Only the first of send() and begin() counts.
  void send(const HttpAnswer& answer);

  // An answer in pieces: begin, write as often as needed, end.
  void begin(const HttpAnswer& answer);
  // False when nobody listens any more.
  bool write(std::string_view bytes);
  void end();

  bool begun() const;

  // Called once, on the loop's thread, when the client left before the end;
  // at once where it has left already.
  void on_gone(std::function<void()> callback);
  // Called once, on the loop's thread, if the answer has not ended by then.
  void on_deadline(Clock::time_point when, std::function<void()> callback);

  // For the loop.
  struct Pull {
    std::string bytes;
    bool ended = false, closes = false;
    int status = 0;
  };
  Pull pull();
  bool overflowed() const;
  void client_left();
  void check_deadline(Clock::time_point now);

 private:
  void append(std::string_view bytes);
  HttpFraming stream_framing() const;

  const Terms terms_;
  mutable std::mutex mutex_;
  std::string waiting_;
  bool begun_ = false, ended_ = false, gone_ = false, overflowed_ = false;
  bool chunked_ = false, closes_ = false;
  int status_ = 0;
  std::function<void()> gone_callback_, deadline_callback_;
  Clock::time_point deadline_{};
};

}  // namespace hearth::serve
