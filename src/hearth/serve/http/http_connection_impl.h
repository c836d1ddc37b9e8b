#pragma once
// One client's connection, as the loop sees it: what it has sent, what is
// being answered, and until when it may take its time.
#include <memory>
#include <string>

#include "hearth/serve/http/body_budget.h"
#include "hearth/serve/http/http_server.h"

namespace hearth::serve {

// Bytes that go one way, since when.
struct Pace {
  Clock::time_point since;
  std::size_t bytes = 0;

  void begin(Clock::time_point now) { *this = {now, 0}; }
  // Says at the end of each such time whether they were too few for it.
  bool too_slow(
      std::size_t least_rate,
      std::chrono::milliseconds window,
      Clock::time_point now
  );
};

class HttpConnection {
 public:
  // What the loop offers to its connections.
  struct Host {
    const HttpServerOptions& options;
    HttpCounters& counters;
    BodyBudget& bodies;
    std::function<void(
        HttpRequest,
        std::string owner,
        BodyShare,
        std::shared_ptr<HttpReply>
    )>
        submit;
    std::function<void()> wake;
    bool stopping = false;  // answers from now on end their connection
  };

  HttpConnection(int fd, std::string peer, Host& host, Clock::time_point now);
  ~HttpConnection();
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;

  int fd() const { return fd_; }
  bool wants_read() const;
  bool wants_write() const { return sent_ < out_.size(); }
  bool busy() const { return reply_ != nullptr || wants_write(); }
  // Whether there is more to do although no new byte has come.
  bool hurries() const { return hurries_ || (draws_ && !wants_write()); }
  // Asks nothing and is owed nothing: may go to make room.
  bool spare(Clock::time_point now) const;
  Clock::time_point idle_since() const { return idle_since_; }
  // Has begun to say what it wants and not ended.
  bool unfinished() const { return parser_.started() && !close_after_; }
  // Whether bytes of the body keep arriving.
  bool goes_on(Clock::time_point now) const {
    return parser_.head_done() && now - came_ < host_.options.stall;
  }
  // Since when nothing came. A head should come in one go, and is as old as its
  // first byte.
  Clock::time_point waits_since() const {
    return parser_.head_done() ? came_ : request_since_;
  }
  // Whose the request under way is: until its head is there, its address's.
  const std::string& owner() const {
    return parser_.head_done() ? owner_ : peer_;
  }

  // Each returns false when the connection is over.
  bool on_readable(Clock::time_point now);
  bool on_writable(Clock::time_point now);
  // Takes over what was written since and looks at the clock.
  bool tick(Clock::time_point now);

  // Says why and closes, instead of serving.
  bool refuse(const HttpFault& fault, Clock::time_point now);

 private:
  bool on_end_of_input(Clock::time_point now);
  bool drop_ahead(std::size_t bytes);
  bool advance(Clock::time_point now);
  bool parse(Clock::time_point now);
  void take_head(Clock::time_point now);
  bool answer_at_once(Clock::time_point now);
  void answer_fault(const HttpFault& fault);
  void start_request(Clock::time_point now);
  bool pull(Clock::time_point now);
  bool flush(Clock::time_point now);
  bool past_deadline(Clock::time_point now);
  bool reads_too_slowly(Clock::time_point now);

  const int fd_;
  const std::string peer_;
  Host& host_;
  HttpParser parser_;
  std::string owner_;  // known once the head is
  BodyShare body_;
  std::string in_;  // bytes after the request under way
  std::string out_;
  std::size_t sent_ = 0;
  std::size_t dropped_ahead_ = 0;
  std::shared_ptr<HttpReply> reply_;
  bool gated_ = false;  // the head of the request under way was looked at
  // Answered in full and told so; what else comes is thrown away until the
  // client closes too, since closing first could destroy the answer.
  bool lingering_ = false, close_after_ = false;
  bool at_end_ = false;  // the client sends no more
  bool hurries_ = false;
  bool draws_ = false;  // the reply has more as soon as it is asked
  Clock::time_point idle_since_, request_since_, came_, progress_,
      lingers_since_, silent_since_;
  Pace takes_;  // while more waits for the client
  Pace sends_;  // of a body
};

}  // namespace hearth::serve
