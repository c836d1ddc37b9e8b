#include "hearth/serve/embedding_job.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "hearth/base/error.h"
#include "hearth/base/log.h"
#include "hearth/serve/api/embedding_answer.h"

namespace hearth::serve {

EmbeddingJob::EmbeddingJob(
    JobHost host,
    EmbeddingPlan plan,
    std::shared_ptr<HttpReply> reply
)
    : share_(std::move(host.share)),
      host_(std::move(host)),
      plan_(std::move(plan)),
      reply_(std::move(reply)),
      parts_(plan_.requests.size()) {}

void EmbeddingJob::start() {
  {
    const std::lock_guard lock(mutex_);
    try {
      submit_more();
    } catch (const UsageError& e) {
      failed_ = true;
      cancel_all();
      throw ApiError(400, plain_message(e.what()), "input");
    }
    if (under_way_ == 0) {
      ++host_.metrics->rejected;
      throw ApiError(
          429, "too many requests wait already: try again later", {},
          "queue_full"
      );
    }
    ++host_.metrics->begun;
  }
  const std::weak_ptr<EmbeddingJob> weak = weak_from_this();
  reply_->on_deadline(Clock::now() + host_.timeout, [weak] {
    const auto self = weak.lock();
    if (!self) return;
    const std::lock_guard lock(self->mutex_);
    self->timed_out_ = true;
    self->cancel_all();
  });
  reply_->on_gone([weak] {
    const auto self = weak.lock();
    if (!self) return;
    const std::lock_guard lock(self->mutex_);
    if (self->failed_) return;
    self->failed_ = true;
    ++self->host_.metrics->cancelled;
    self->cancel_all();
  });
}

// Submits as many texts as may run at once; fewer where the engine has no room,
// which is no error while others of this request still run.
void EmbeddingJob::submit_more() {
  while (submitted_ < parts_.size() && under_way_ < plan_.at_once) {
    const std::size_t index = submitted_;
    try {
      parts_[index].id = host_.engine->submit(
          plan_.requests[index],
          [self = shared_from_this(), index](const infer::Event& event) {
            const std::lock_guard lock(self->mutex_);
            self->hear(index, event);
          }
      );
    } catch (const infer::QueueFull&) {
      return;
    }
    plan_.requests[index] = {};
    parts_[index].under_way = true;
    ++submitted_, ++under_way_;
  }
}

void EmbeddingJob::hear(std::size_t index, const infer::Event& event) {
  Part& part = parts_[index];
  if (event.kind == infer::Event::Kind::vector) {
    if (!failed_) keep(part, event.vector);
    return;
  }
  if (event.kind != infer::Event::Kind::end) return;
  part.under_way = false;
  --under_way_;
  if (failed_ || !ended_well(part, event)) return;
  prompt_tokens_ += event.prompt_tokens;
  ++done_;
  if (done_ == parts_.size()) return finish();
  submit_more();
  if (under_way_ > 0) return;
  fail(
      {429,
       "too many requests wait already: try again later",
       {},
       "queue_full"},
      host_.metrics->failed
  );
}

void EmbeddingJob::keep(Part& part, std::vector<float> vector) {
  vector.resize(plan_.dimensions);
  infer::scale_to_unit(vector);
  const bool finite =
      std::ranges::all_of(vector, [](float v) { return std::isfinite(v); });
  // JSON has no other numbers; ended_well() says what became of it.
  if (finite) part.vector = vector_text(vector, plan_.base64);
}

bool EmbeddingJob::ended_well(const Part& part, const infer::Event& event) {
  Metrics& metrics = *host_.metrics;
  if (timed_out_) {
    fail({504, "the answer took too long", {}, "timeout"}, metrics.timed_out);
  } else if (!event.error.empty()) {
    const int status = event.request_at_fault ? 400 : 500;
    fail({status, plain_message(event.error)}, metrics.failed);
  } else if (event.finish == infer::Finish::cancelled) {
    fail(
        {503,
         "the server stopped before the answer was whole",
         {},
         "server_stopped"},
        metrics.cancelled
    );
  } else if (part.vector.empty()) {
    fail({500, "the model gave numbers that are none"}, metrics.failed);
  }
  return !failed_;
}

void EmbeddingJob::finish() {
  std::vector<std::string> vectors;
  vectors.reserve(parts_.size());
  for (Part& part : parts_) vectors.push_back(std::move(part.vector));
  HttpHeaders headers = host_.headers;
  headers.emplace_back("Content-Type", "application/json");
  const std::chrono::duration<double> took = Clock::now() - began_;
  ++host_.metrics->done;
  host_.metrics->whole_request.observe(took.count());
  host_.metrics->count_answer(host_.route, 200);
  log_debug(
      "POST {} 200 {} tokens {:.0f} ms", host_.route, prompt_tokens_,
      took.count() * 1e3
  );
  share_.reset();
  reply_->send(
      {200, std::move(headers),
       embedding_answer(plan_.model, vectors, prompt_tokens_)}
  );
}

void EmbeddingJob::fail(
    const ApiError& error,
    std::atomic<std::uint64_t>& counter
) {
  failed_ = true;
  share_.reset();
  ++counter;
  cancel_all();
  HttpAnswer answer = error_answer(error);
  answer.headers.insert(
      answer.headers.end(), host_.headers.begin(), host_.headers.end()
  );
  host_.metrics->count_answer(host_.route, answer.status);
  reply_->send(answer);
}

void EmbeddingJob::cancel_all() {
  for (const Part& part : parts_) {
    if (part.under_way) host_.engine->cancel(part.id);
  }
}

void EmbeddingJob::cut_off() {
  const std::lock_guard lock(mutex_);
  cancel_all();
}

}  // namespace hearth::serve
