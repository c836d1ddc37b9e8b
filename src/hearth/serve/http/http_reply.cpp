#include "hearth/serve/http/http_reply.h"

#include <utility>

namespace hearth::serve {

void HttpReply::forget_callbacks() {
  gone_callback_ = deadline_callback_ = room_callback_ = nullptr;
}

void HttpReply::send(const HttpAnswer& answer) {
  {
    const std::lock_guard lock(mutex_);
    if (begun_ || gone_) return;
    begun_ = ended_ = true;
    closes_ = !terms_.keep_alive;
    waiting_ += answer_head(answer, HttpFraming::length, terms_.keep_alive);
    if (!terms_.head_only) waiting_ += answer.body;
    forget_callbacks();
  }
  terms_.wake();
}

void HttpReply::start(const HttpAnswer& answer) {
  begun_ = true;
  chunked_ = terms_.minor >= 1;
  closes_ = !terms_.keep_alive || !chunked_;
  waiting_ += answer_head(
      answer, chunked_ ? HttpFraming::chunked : HttpFraming::closing,
      terms_.keep_alive
  );
}

void HttpReply::begin(const HttpAnswer& answer, std::string nothing) {
  {
    const std::lock_guard lock(mutex_);
    if (begun_ || gone_) return;
    start(answer);
    nothing_ = std::move(nothing);
  }
  terms_.wake();
}

void HttpReply::draw(const HttpAnswer& answer, NextPiece next) {
  {
    const std::lock_guard lock(mutex_);
    if (begun_ || gone_) return;
    start(answer);
    next_piece_ = std::move(next);
    forget_callbacks();
  }
  terms_.wake();
}

void HttpReply::draw_piece() {
  std::string piece;
  const bool more = next_piece_(piece);
  if (!piece.empty()) append(piece);
  if (more) return;
  next_piece_ = nullptr;
  finish();
}

void HttpReply::finish() {
  ended_ = true;
  if (chunked_ && !terms_.head_only) waiting_ += http_chunk({});
  forget_callbacks();
}

void HttpReply::say_nothing() {
  const std::lock_guard lock(mutex_);
  if (!begun_ || ended_ || gone_ || nothing_.empty()) return;
  append(nothing_);
}

void HttpReply::append(std::string_view bytes) {
  if (terms_.head_only) return;
  if (chunked_) {
    waiting_ += http_chunk(bytes);
  } else {
    waiting_ += bytes;
  }
}

bool HttpReply::write(std::string_view bytes) {
  {
    const std::lock_guard lock(mutex_);
    if (gone_) return false;
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
    finish();
  }
  terms_.wake();
}

bool HttpReply::begun() const {
  const std::lock_guard lock(mutex_);
  return begun_;
}

bool HttpReply::full() const {
  const std::lock_guard lock(mutex_);
  return is_full();
}

bool HttpReply::on_room(std::function<void()> callback) {
  const std::lock_guard lock(mutex_);
  if (gone_ || ended_ || !is_full()) return false;
  room_callback_ = std::move(callback);
  return true;
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
  Pull out;
  std::function<void()> callback;
  {
    const std::lock_guard lock(mutex_);
    if (next_piece_ && waiting_.empty()) draw_piece();
    out = {
        std::exchange(waiting_, {}), ended_, closes_, next_piece_ != nullptr
    };
    callback = std::exchange(room_callback_, nullptr);
  }
  if (callback) callback();
  return out;
}

void HttpReply::client_left() {
  std::function<void()> callback;
  {
    const std::lock_guard lock(mutex_);
    gone_ = true;
    waiting_.clear();
    next_piece_ = nullptr;
    callback = std::exchange(gone_callback_, nullptr);
    forget_callbacks();
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

std::optional<std::string> HttpReply::probe() {
  const std::lock_guard lock(mutex_);
  if (!waiting_.empty() || next_piece_) return "";
  if (terms_.minor == 0 || ended_) return {};
  // Before the answer, any client must pass over an interim one.
  if (!begun_) return "HTTP/1.1 100 Continue\r\n\r\n";
  if (nothing_.empty()) return {};
  append(nothing_);
  return "";
}

}  // namespace hearth::serve
