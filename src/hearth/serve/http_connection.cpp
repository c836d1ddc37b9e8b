#include <cerrno>

#include <sys/socket.h>
#include <unistd.h>

#include "hearth/serve/http_connection_impl.h"

namespace hearth::serve {
namespace {

constexpr std::size_t kReadAtOnce = std::size_t{64} << 10;
constexpr auto kLinger = std::chrono::milliseconds(500);
#ifdef MSG_NOSIGNAL
constexpr int kSendFlags = MSG_NOSIGNAL;
#else
constexpr int kSendFlags = 0;
#endif

bool would_block(int error) {
  return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

}  // namespace

HttpConnection::HttpConnection(int fd, Host& host, Clock::time_point now)
    : fd_(fd),
      host_(host),
      parser_(host.options.limits),
      idle_since_(now),
      request_since_(now),
      progress_(now),
      lingers_since_(now) {
  ++host_.counters.open;
}

HttpConnection::~HttpConnection() {
  if (reply_) {
    ++host_.counters.left;
    reply_->client_left();
  }
  close(fd_);
  --host_.counters.open;
}

// A client that sends ahead is read up to a bound, so that it is seen to
// leave; beyond that it waits.
bool HttpConnection::wants_read() const {
  return lingering_ || in_.size() < kReadAtOnce;
}

bool HttpConnection::on_readable(Clock::time_point now) {
  char bytes[16384];
  const ssize_t n = recv(fd_, bytes, sizeof bytes, 0);
  if (n == 0) return false;
  if (n < 0) return would_block(errno);
  if (lingering_) return true;
  host_.counters.bytes_in += static_cast<std::uint64_t>(n);
  in_.append(bytes, static_cast<std::size_t>(n));
  return reply_ != nullptr || close_after_ || parse(now);
}

bool HttpConnection::parse(Clock::time_point now) {
  const bool before = parser_.started();
  in_.erase(0, parser_.feed(in_));
  if (!before && parser_.started()) request_since_ = now;
  if (parser_.wants_continue()) out_ += "HTTP/1.1 100 Continue\r\n\r\n";
  if (parser_.fault()) {
    answer_fault(*parser_.fault());
  } else if (parser_.done()) {
    start_request(now);
  }
  return flush(now);
}

void HttpConnection::answer_fault(const HttpFault& fault) {
  ++host_.counters.faults;
  HttpAnswer answer{fault.status, {{"Content-Type", "text/plain"}}, fault.what};
  if (host_.options.fault_answer) answer = host_.options.fault_answer(fault);
  out_ += answer_head(answer, HttpFraming::length, false) + answer.body;
  close_after_ = true;
}

void HttpConnection::start_request(Clock::time_point now) {
  HttpRequest request = parser_.take();
  reply_ = std::make_shared<HttpReply>(HttpReply::Terms{
      .keep_alive = request.keeps_alive(),
      .head_only = request.method == "HEAD",
      .minor = request.minor,
      .max_waiting = host_.options.max_waiting,
      .wake = host_.wake
  });
  progress_ = now;
  host_.submit(std::move(request), reply_);
}

bool HttpConnection::on_writable(Clock::time_point now) {
  return flush(now);
}

bool HttpConnection::flush(Clock::time_point now) {
  while (sent_ < out_.size()) {
    const ssize_t n =
        send(fd_, out_.data() + sent_, out_.size() - sent_, kSendFlags);
    if (n < 0) return would_block(errno);
    sent_ += static_cast<std::size_t>(n);
    progress_ = now;
    host_.counters.bytes_out += static_cast<std::uint64_t>(n);
  }
  out_.clear();
  sent_ = 0;
  if (!close_after_ || reply_ || lingering_) return true;
  lingering_ = true;
  lingers_since_ = now;
  shutdown(fd_, SHUT_WR);
  return true;
}

bool HttpConnection::end_of_answer(Clock::time_point now) {
  reply_.reset();
  idle_since_ = now;
  if (close_after_) return flush(now);
  return in_.empty() || parse(now);
}

bool HttpConnection::past_deadline(Clock::time_point now) {
  const auto& o = host_.options;
  if (lingering_) return now - lingers_since_ > kLinger;
  if (wants_write()) return now - progress_ > o.write_timeout;
  if (reply_) return false;
  if (!parser_.started()) return now - idle_since_ > o.idle_timeout;
  const auto patience =
      parser_.head_done() ? o.head_timeout + o.body_timeout : o.head_timeout;
  if (now - request_since_ <= patience || close_after_) return false;
  answer_fault({408, "the request took too long to arrive"});
  ++host_.counters.timed_out;
  return !flush(now);
}

bool HttpConnection::tick(Clock::time_point now, bool stopping) {
  if (past_deadline(now)) {
    if (wants_write()) ++host_.counters.too_slow;
    return false;
  }
  if (stopping && !busy() && !lingering_) return false;
  if (!reply_) return true;
  reply_->check_deadline(now);
  if (reply_->overflowed()) {
    ++host_.counters.too_slow;
    return false;
  }
  // One buffer is sent before the next is taken, which bounds both.
  if (wants_write()) return true;
  // Nobody else holds it: whatever is there now is all that will come.
  const bool orphan = reply_.use_count() == 1;
  HttpReply::Pull pull = reply_->pull();
  if (orphan && !pull.ended) {
    if (reply_->begun()) return false;
    reply_->send({500, {}, {}});
    pull = reply_->pull();
  }
  if (!pull.bytes.empty()) progress_ = now;
  out_ = std::move(pull.bytes);
  if (pull.ended) {
    close_after_ = close_after_ || pull.closes || stopping;
    // All of it is here; the client may take it at its own speed.
    return end_of_answer(now) && flush(now);
  }
  return flush(now);
}

}  // namespace hearth::serve
