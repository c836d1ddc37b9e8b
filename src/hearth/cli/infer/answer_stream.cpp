#include "hearth/cli/infer/answer_stream.h"

#include "hearth/base/clock.h"
#include "hearth/base/error.h"

namespace hearth::cli {
namespace {

struct Arrival {
  infer::Event event;
  Clock::time_point time;
};

// Shared with the listener, which may outlive the wait when this thread throws.
struct Arrivals {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Arrival> queue;

  void push(const infer::Event& event) {
    const std::lock_guard lock(mutex);
    queue.push_back({event, Clock::now()});
    changed.notify_one();
  }
  // Returns nothing when none comes for a while.
  std::optional<Arrival> pop() {
    std::unique_lock lock(mutex);
    changed.wait_for(lock, std::chrono::milliseconds(50), [&] {
      return !queue.empty();
    });
    if (queue.empty()) return std::nullopt;
    Arrival out = std::move(queue.front());
    queue.pop_front();
    return out;
  }
};

double ms(Clock::duration time) {
  return to_seconds(time) * 1e3;
}

}  // namespace

std::vector<std::int32_t> Answer::ids() const {
  std::vector<std::int32_t> out;
  for (const auto& t : tokens) out.push_back(t.id);
  return out;
}

Answer stream_answer(
    infer::Engine& engine,
    infer::Request request,
    const std::function<void(const infer::GeneratedToken&)>& show,
    const std::function<bool()>& go_on
) {
  const auto arrivals = std::make_shared<Arrivals>();
  const auto start = Clock::now();
  const auto id =
      engine.submit(std::move(request), [arrivals](const infer::Event& e) {
        arrivals->push(e);
      });
  Answer out;
  std::string error, hint;
  Clock::time_point first = start, last = start;
  bool cancelled = false;
  for (;;) {
    if (!cancelled && !go_on()) {
      engine.cancel(id);
      cancelled = true;
    }
    const auto arrival = arrivals->pop();
    if (!arrival) continue;
    const infer::Event& e = arrival->event;
    if (e.kind == infer::Event::Kind::end) {
      out.finish = e.finish, error = e.error, hint = e.hint;
      out.prompt_tokens = e.prompt_tokens, out.cached_tokens = e.cached_tokens;
      break;
    }
    if (e.kind != infer::Event::Kind::token || cancelled) continue;
    last = arrival->time;
    if (out.tokens.empty()) first = last;
    out.text += e.token.text;
    out.tokens.push_back(e.token);
    show(e.token);
  }
  if (!error.empty()) throw Error(error, hint);
  out.first_step_ms = ms(first - start);
  out.decode_ms = ms(last - first);
  const auto later = static_cast<double>(out.tokens.size()) - 1;
  if (later > 0 && out.decode_ms > 0) {
    out.tokens_per_s = later / out.decode_ms * 1e3;
  }
  return out;
}

}  // namespace hearth::cli
