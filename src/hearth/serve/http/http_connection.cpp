// One connection: what it reads, what it sends, and when it ends.
#include <cerrno>

#include <sys/socket.h>
#include <unistd.h>

#include "hearth/serve/http/http_connection_impl.h"

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

bool Pace::too_slow(
    std::size_t least_rate,
    std::chrono::milliseconds window,
    Clock::time_point now
) {
  const std::chrono::duration<double> passed = now - since;
  if (passed < window) return false;
  const bool slow = static_cast<double>(bytes) <
                    static_cast<double>(least_rate) * passed.count();
  begin(now);
  return slow;
}

HttpConnection::HttpConnection(
    int fd,
    std::string peer,
    Host& host,
    Clock::time_point now
)
    : fd_(fd),
      peer_(std::move(peer)),
      host_(host),
      parser_(host.options.limits),
      idle_since_(now),
      request_since_(now),
      came_(now),
      progress_(now),
      lingers_since_(now),
      silent_since_(now),
      takes_{.since = now},
      sends_{.since = now} {
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

// While it is answered a client is always read from, so that it is seen to
// leave.
bool HttpConnection::wants_read() const {
  return !at_end_ && (lingering_ || reply_ || in_.size() < kReadAtOnce);
}

// Whether the connection may be closed to make room for another: it is idle, or
// its last answer was sent and its client has had time to close.
bool HttpConnection::spare(Clock::time_point now) const {
  if (lingering_ && now - lingers_since_ > kLinger) return true;
  return !busy() && !parser_.started() && in_.empty();
}

bool HttpConnection::on_readable(Clock::time_point now) {
  char bytes[16384];
  const ssize_t n = recv(fd_, bytes, sizeof bytes, 0);
  if (n < 0) return would_block(errno);
  if (n == 0) {
    at_end_ = true;
    return on_end_of_input(now);
  }
  if (lingering_) {
    silent_since_ = now;
    return true;
  }
  host_.counters.bytes_in += static_cast<std::uint64_t>(n);
  if (reply_ && in_.size() >= kReadAtOnce) {
    return drop_ahead(static_cast<std::size_t>(n));
  }
  in_.append(bytes, static_cast<std::size_t>(n));
  return advance(now);
}

// The client sent too much before its answer: the answer under way is the last
// one on this connection, and a client that keeps sending is dropped.
bool HttpConnection::drop_ahead(std::size_t bytes) {
  constexpr std::size_t kMost = std::size_t{1} << 20;
  close_after_ = true;
  dropped_ahead_ += bytes;
  return dropped_ahead_ <= kMost;
}

// The client has closed its sending side: it may have left, or only have
// nothing more to say. If it left, it answers what is sent with a reset, which
// the loop notices.
bool HttpConnection::on_end_of_input(Clock::time_point now) {
  if (lingering_) return false;
  if (reply_ && !wants_write()) {
    const auto first = reply_->probe();
    if (!first) return false;
    out_ += *first;
  }
  return advance(now);
}

bool HttpConnection::on_writable(Clock::time_point now) {
  return advance(now);
}

// Sends what is owed and takes the next requests, a few at a time so that
// other connections have their turn.
bool HttpConnection::advance(Clock::time_point now) {
  constexpr int kAtOnce = 8;
  hurries_ = false;
  for (int i = 0; i < kAtOnce; ++i) {
    if (!flush(now)) return false;
    if (wants_write() || reply_) return true;
    if (close_after_) return !at_end_;
    if (in_.empty() || !parse(now)) return !at_end_;
  }
  hurries_ = true;
  return true;
}

// Takes one request out of the bytes that have come; returns false when more
// must come first.
bool HttpConnection::parse(Clock::time_point now) {
  const bool before = parser_.started();
  const std::size_t taken = parser_.feed(in_);
  in_.erase(0, taken);
  sends_.bytes += taken;
  came_ = now;
  if (!before && parser_.started()) request_since_ = now;
  if (parser_.fault()) {
    answer_fault(*parser_.fault());
    return true;
  }
  if (parser_.head_done() && !gated_) {
    take_head(now);
    if (answer_at_once(now)) return true;
  }
  body_.set(parser_.body_size());
  if (body_.over()) {
    answer_fault({503, "too many large requests arrive at once"});
    return true;
  }
  if (parser_.wants_continue()) out_ += "HTTP/1.1 100 Continue\r\n\r\n";
  if (parser_.done()) start_request(now);
  return wants_write() || reply_ != nullptr;
}

void HttpConnection::take_head(Clock::time_point now) {
  const auto& o = host_.options;
  gated_ = true;
  sends_.begin(now);
  parser_.comes_from(peer_);
  owner_ = o.owner ? o.owner(parser_.head()) : peer_;
  body_ = BodyShare(host_.bodies, owner_);
}

bool HttpConnection::answer_at_once(Clock::time_point now) {
  if (!host_.options.gate) return false;
  const HttpRequest& head = parser_.head();
  const auto answer = host_.options.gate(head);
  if (!answer) return false;
  const bool keep = parser_.done() && head.keeps_alive() && !host_.stopping;
  out_ += answer_head(*answer, HttpFraming::length, keep);
  if (head.method != "HEAD") out_ += answer->body;
  progress_ = idle_since_ = now;
  close_after_ = !keep;
  gated_ = false;
  parser_ = HttpParser(host_.options.limits);
  body_.set(0);
  return true;
}

void HttpConnection::answer_fault(const HttpFault& fault) {
  ++host_.counters.faults;
  HttpAnswer answer{fault.status, {{"Content-Type", "text/plain"}}, fault.what};
  if (host_.options.fault_answer) answer = host_.options.fault_answer(fault);
  out_ += answer_head(answer, HttpFraming::length, false) + answer.body;
  close_after_ = true;
  body_.set(0);
}

bool HttpConnection::refuse(const HttpFault& fault, Clock::time_point now) {
  answer_fault(fault);
  return flush(now);
}

void HttpConnection::start_request(Clock::time_point now) {
  HttpRequest request = parser_.take();
  gated_ = false;
  reply_ = std::make_shared<HttpReply>(HttpReply::Terms{
      .keep_alive = request.keeps_alive(),
      .head_only = request.method == "HEAD",
      .minor = request.minor,
      .max_waiting = host_.options.max_waiting,
      .wake = host_.wake
  });
  progress_ = now;
  host_.submit(
      std::move(request), owner_, std::exchange(body_, BodyShare()), reply_
  );
}

bool HttpConnection::flush(Clock::time_point now) {
  if (sent_ == 0) takes_.begin(now);
  while (sent_ < out_.size()) {
    const ssize_t n =
        send(fd_, out_.data() + sent_, out_.size() - sent_, kSendFlags);
    if (n < 0) return would_block(errno);
    sent_ += static_cast<std::size_t>(n);
    takes_.bytes += static_cast<std::size_t>(n);
    progress_ = now;
    host_.counters.bytes_out += static_cast<std::uint64_t>(n);
  }
  out_.clear();
  sent_ = 0;
  if (!close_after_ || reply_ || lingering_) return true;
  lingering_ = true;
  lingers_since_ = silent_since_ = now;
  in_.clear();
  shutdown(fd_, SHUT_WR);
  return true;
}

// Taking a byte now and then is not reading.
bool HttpConnection::reads_too_slowly(Clock::time_point now) {
  const auto& o = host_.options;
  if (now - progress_ > o.write_timeout) return true;
  return takes_.too_slow(o.least_rate, o.rate_window, now);
}

bool HttpConnection::past_deadline(Clock::time_point now) {
  const auto& o = host_.options;
  if (lingering_) {
    return now - silent_since_ > kLinger ||
           now - lingers_since_ > o.body_timeout;
  }
  if (wants_write()) return reads_too_slowly(now);
  if (reply_) return false;
  if (!parser_.started()) return now - idle_since_ > o.idle_timeout;
  const auto patience =
      parser_.head_done() ? o.head_timeout + o.body_timeout : o.head_timeout;
  const bool drips =
      parser_.head_done() &&
      sends_.too_slow(o.least_body_rate, o.body_rate_window, now);
  const bool late = now - request_since_ > patience;
  if ((!late && !drips) || close_after_) return false;
  answer_fault({408, "the request took too long to arrive"});
  ++host_.counters.timed_out;
  return false;
}

// One buffer is sent before the next is taken, which bounds both.
bool HttpConnection::pull(Clock::time_point now) {
  // Nobody else holds the reply, so nothing will be added to it.
  const bool orphan = reply_.use_count() == 1;
  HttpReply::Pull pull = reply_->pull();
  draws_ = pull.draws;
  if (orphan && !pull.ended && !pull.draws) {
    if (reply_->begun()) return false;
    reply_->send({500, {}, {}});
    pull = reply_->pull();
  }
  if (!pull.bytes.empty()) progress_ = now;
  out_ += pull.bytes;
  if (!pull.ended) return true;
  close_after_ = close_after_ || pull.closes || host_.stopping;
  reply_.reset();
  idle_since_ = now;
  return true;
}

bool HttpConnection::tick(Clock::time_point now) {
  const auto& o = host_.options;
  if (past_deadline(now)) {
    if (wants_write()) ++host_.counters.too_slow;
    return false;
  }
  if (reply_) {
    reply_->check_deadline(now);
    if (!wants_write() && !pull(now)) return false;
  }
  if (reply_ && !wants_write() && now - progress_ >= o.quiet_after) {
    reply_->say_nothing();
    progress_ = now;
  }
  return advance(now);
}

}  // namespace hearth::serve
