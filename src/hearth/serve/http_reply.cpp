#include "hearth/serve/http_reply.h"

#include <utility>

namespace hearth::serve {

HttpFraming HttpReply::stream_framing() const {
  return terms_.minor >= 1 ? HttpFraming::chunked : HttpFraming::closing;
}

void HttpReply::send(const HttpAnswer& answer) {
  {
    const std::lock_guard lock(mutex_);
    if (begun_ || gone_) return;
    begun_ = ended_ = true;
    status_ = answer.status;
    closes_ = !terms_.keep_alive;
    waiting_ += answer_head(answer, HttpFraming::length, terms_.keep_alive);
    if (!terms_.head_only) waiting_ += answer.body;
    gone_callback_ = deadline_callback_ = nullptr;
  }
  terms_.wake();
}

void HttpReply::begin(const HttpAnswer& answer) {
  {
    const std::lock_guard lock(mutex_);
    if (begun_ || gone_) return;
    begun_ = true;
    status_ = answer.status;
    const HttpFraming framing = stream_framing();
    chunked_ = framing == HttpFraming::chunked;
    closes_ = !terms_.keep_alive || !chunked_;
    waiting_ += answer_head(answer, framing, terms_.keep_alive);
  }
  terms_.wake();
}

void HttpReply::append(std::string_view bytes) {
  if (terms_.head_only) return;
  if (waiting_.size() + bytes.size() > terms_.max_waiting) {
    overflowed_ = true;
    waiting_.clear();
    return;
  }
  if (chunked_) {
    waiting_ += http_chunk(bytes);
  } else {
    waiting_ += bytes;
  }
}

bool HttpReply::write(std::string_view bytes) {
  {
    const std::lock_guard lock(mutex_);
    if (gone_ || overflowed_) return false;
    if (!begun_ || ended_ || bytes.empty()) return true;
    append(bytes);
  }
  terms_.wake();
  return true;
}

void HttpReply::end() {
  {
    const std::lock_guard lock(mutex_);
    if (!begun_ || ended_ || gone_) return;
    ended_ = true;
    if (chunked_ && !overflowed_ && !terms_.head_only) {
      waiting_ += http_chunk({});
    }
    gone_callback_ = deadline_callback_ = nullptr;
  }
  terms_.wake();
}

bool HttpReply::begun() const {
  const std::lock_guard lock(mutex_);
  return begun_;
}

bool HttpReply::overflowed() const {
  const std::lock_guard lock(mutex_);
  return overflowed_;
}

void HttpReply::on_gone(std::function<void()> callback) {
  {
    const std::lock_guard lock(mutex_);
    if (ended_) return;
    if (!gone_) {
      gone_callback_ = std::move(callback);
      return;
    }
  }
  callback();
}

void HttpReply::on_deadline(
    Clock::time_point when,
    std::function<void()> callback
) {
  const std::lock_guard lock(mutex_);
  if (ended_ || gone_) return;
  deadline_ = when;
  deadline_callback_ = std::move(callback);
}

HttpReply::Pull HttpReply::pull() {
  const std::lock_guard lock(mutex_);
  return {
      .bytes = std::exchange(waiting_, {}),
      .ended = ended_,
      .closes = closes_,
      .status = status_
  };
}

void HttpReply::client_left() {
  std::function<void()> callback;
  {
    const std::lock_guard lock(mutex_);
    gone_ = true;
    waiting_.clear();
    callback = std::exchange(gone_callback_, nullptr);
    deadline_callback_ = nullptr;
  }
  if (callback) callback();
}

void HttpReply::check_deadline(Clock::time_point now) {
  std::function<void()> callback;
  {
    const std::lock_guard lock(mutex_);
    if (!deadline_callback_ || now < deadline_) return;
    callback = std::exchange(deadline_callback_, nullptr);
  }
  callback();
}

}  // namespace hearth::serve
