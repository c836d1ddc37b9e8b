#pragma once
// The answer to one request, written from any thread. Nothing here blocks:
// bytes wait until the server's loop sends them. Whoever writes in pieces asks
// whether the client keeps up, and goes on when it is told that there is room.
#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "hearth/base/clock.h"
#include "hearth/serve/http/http_message.h"

namespace hearth::serve {

class HttpReply {
 public:
  // What the loop gives it: how the request wants its answer, how many bytes
  // may wait before it counts as full, and whom to tell that there are some.
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

  // An answer in pieces: begin, write as often as needed, end. `nothing` is a
  // piece that means nothing to its reader, sent to learn whether there still
  // is one; empty where the type has none.
  void begin(const HttpAnswer& answer, std::string nothing = {});
  // Takes a piece of any size. False when nobody listens any more.
  bool write(std::string_view bytes);
  void end();

  // An answer whose body is drawn as the client takes it: `next` appends a
  // piece and says whether there are more. It is called on the loop's thread
  // and has only what it owns: nothing of the request need be left.
  using NextPiece = std::function<bool(std::string& out)>;
  void draw(const HttpAnswer& answer, NextPiece next);

  bool begun() const;
  // The client has not yet taken what was written: time to pause.
  bool full() const;
  // Calls once, on the loop's thread, when what waits has gone out. False, and
  // no call, where it is not full or nobody listens.
  bool on_room(std::function<void()> callback);

  // Called once, on the loop's thread, when the client left before the end;
  // at once where it has left already.
  void on_gone(std::function<void()> callback);
  // Called once, on the loop's thread, if the answer has not ended by then.
  void on_deadline(Clock::time_point when, std::function<void()> callback);

  // What the loop takes from a reply at a time.
  struct Pull {
    std::string bytes;
    bool ended = false, closes = false;
    bool draws = false;  // there is more as soon as it is asked for
  };
  Pull pull();
  void client_left();
  void check_deadline(Clock::time_point now);
  // Sees to it that something goes out soon, which a client who only stopped
  // sending can take and one who left cannot: what is returned first, or what
  // waits here. Nothing where there is no such thing to send.
  std::optional<std::string> probe();
  // The client has heard nothing for long: writes a piece that means nothing,
  // where the answer has begun and knows one.
  void say_nothing();

 private:
  void start(const HttpAnswer& answer);
  void append(std::string_view bytes);
  void draw_piece();
  void finish();
  void forget_callbacks();
  bool is_full() const { return waiting_.size() >= terms_.max_waiting; }

  const Terms terms_;
  mutable std::mutex mutex_;
  std::string waiting_, nothing_;
  NextPiece next_piece_;
  bool begun_ = false, ended_ = false, gone_ = false;
  bool chunked_ = false, closes_ = false;
  std::function<void()> gone_callback_, deadline_callback_, room_callback_;
  Clock::time_point deadline_{};
};

}  // namespace hearth::serve
