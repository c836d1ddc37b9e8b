#pragma once
// One client's connection, as the loop sees it: what it has sent, what is
// being answered, and until when it may take its time.
#include <memory>
#include <string>

#include "hearth/serve/http_server.h"

namespace hearth::serve {

class HttpConnection {
 public:
  // What the loop offers to its connections.
  struct Host {
    const HttpServerOptions& options;
    HttpCounters& counters;
    std::function<void(HttpRequest, std::shared_ptr<HttpReply>)> submit;
    std::function<void()> wake;
  };

  HttpConnection(int fd, Host& host, Clock::time_point now);
  ~HttpConnection();
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;

  int fd() const { return fd_; }
  bool wants_read() const;
  bool wants_write() const { return sent_ < out_.size(); }
  bool busy() const { return reply_ != nullptr || wants_write(); }

  // Each returns false when the connection is over.
  bool on_readable(Clock::time_point now);
  bool on_writable(Clock::time_point now);
  // Takes over what was written since and looks at the clock.
  bool tick(Clock::time_point now, bool stopping);

 private:
  bool parse(Clock::time_point now);
  void answer_fault(const HttpFault& fault);
  void start_request(Clock::time_point now);
  bool flush(Clock::time_point now);
  bool end_of_answer(Clock::time_point now);
  bool past_deadline(Clock::time_point now);

  const int fd_;
  Host& host_;
  HttpParser parser_;
  std::string in_;  // bytes after the request under way
  std::string out_;
  std::size_t sent_ = 0;
  std::shared_ptr<HttpReply> reply_;
  // Answered in full and told so; what else comes is thrown away until the
  // client closes too, since closing first could destroy the answer.
  bool lingering_ = false, close_after_ = false;
  Clock::time_point idle_since_, request_since_, progress_, lingers_since_;
};

}  // namespace hearth::serve
