#include "hearth/infer/engine/batch_policy.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <mutex>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hearth/base/clock.h"

namespace hearth::infer {
namespace {

constexpr int kTokens = 24;  // of each copy
constexpr std::size_t kPrompt = 64;

// When the tokens of all copies came.
struct Times {
  std::mutex mutex;
  std::condition_variable ended;
  int left = 0;
  std::vector<std::vector<Clock::time_point>> tokens;
};

// Gaps between a copy's tokens once all copies are decoding.
std::vector<double> steps_ms(const Times& times) {
  Clock::time_point all{};
  for (const auto& t : times.tokens) {
    if (!t.empty()) all = std::max(all, t.front());
  }
  std::vector<double> out;
  for (const auto& t : times.tokens) {
    for (std::size_t i = 1; i < t.size(); ++i) {
      if (t[i - 1] < all) continue;
      out.push_back(to_seconds(t[i] - t[i - 1]) * 1e3);
    }
  }
  std::ranges::sort(out);
  return out;
}

// Submits a copy for each of the batch and waits for all. False when it was
// called off.
bool decode_copies(
    Engine& engine,
    const std::vector<std::int32_t>& prompt,
    const std::shared_ptr<Times>& times,
    const std::function<bool()>& go_on
) {
  constexpr auto kTick = std::chrono::milliseconds(50);
  std::vector<RequestId> ids;
  for (std::size_t i = 0; i < times->tokens.size(); ++i) {
    Request request;
    request.prompt = prompt, request.max_tokens = kTokens;
    ids.push_back(engine.submit(request, [times, i](const Event& event) {
      const std::lock_guard lock(times->mutex);
      if (event.kind == Event::Kind::token) {
        times->tokens[i].push_back(Clock::now());
      } else if (--times->left == 0) {
        times->ended.notify_all();
      }
    }));
  }
  bool going = true;
  std::unique_lock lock(times->mutex);
  const auto done = [&] { return times->left == 0; };
  while (!times->ended.wait_for(lock, kTick, done)) {
    if (!going || go_on()) continue;
    going = false;
    lock.unlock();
    for (const RequestId id : ids) engine.cancel(id);
    lock.lock();
  }
  return going;
}

// Returns nothing when the measurement was called off.
std::optional<BatchMeasurement> measure(
    Engine& engine,
    const std::vector<std::int32_t>& prompt,
    int batch,
    const std::function<bool()>& go_on
) {
  engine.set_max_batch(batch);
  const auto times = std::make_shared<Times>();
  times->left = batch;
  times->tokens.resize(static_cast<std::size_t>(batch));
  if (!decode_copies(engine, prompt, times, go_on)) return std::nullopt;
  BatchMeasurement out;
  out.batch = batch;
  const auto steps = steps_ms(*times);
  if (steps.empty()) return out;
  double sum = 0;
  for (const double s : steps) sum += s;
  const auto count = static_cast<double>(steps.size());
  const auto at = [&](double share) {
    return steps[static_cast<std::size_t>(std::ceil(share * count)) - 1];
  };
  out.tokens_per_s = 1e3 * batch * count / sum;
  out.median_ms = at(0.5);
  out.p95_ms = at(0.95);
  return out;
}

}  // namespace

int choose_batch(
    std::span<const BatchMeasurement> measured,
    const BatchRule& rule
) {
  if (measured.empty()) return 1;
  const BatchMeasurement& base = measured.front();
  int best = base.batch;
  double best_score = 0;
  for (const auto& m : measured.subspan(1)) {
    if (base.tokens_per_s <= 0 || base.tail() <= 0) break;
    const double gain = 100 * (m.tokens_per_s / base.tokens_per_s - 1);
    const double penalty = 100 * (m.tail() / base.tail() - 1);
    if (gain < rule.min_gain_pct || penalty > rule.max_p95_penalty_pct) {
      continue;
    }
    const double score = gain - 0.5 * std::max(penalty, 0.0);
    if (score > best_score) best = m.batch, best_score = score;
  }
  return best;
}

std::vector<BatchMeasurement> measure_batches(
    Engine& engine,
    const std::vector<std::int32_t>& prompt,
    const BatchRule& rule,
    int most,
    const std::function<bool()>& go_on
) {
  // Short enough to leave room for tokens in the shortest context.
  const auto room = static_cast<std::size_t>(std::max(engine.limit() / 2, 1));
  const auto kept = std::min({prompt.size(), kPrompt, room});
  const std::vector<std::int32_t> part(
      prompt.begin(), prompt.begin() + static_cast<std::ptrdiff_t>(kept)
  );
  std::vector<BatchMeasurement> out;
  for (const int size : rule.sizes) {
    if (size < 1 || (size > most && !out.empty())) continue;
    if (!go_on()) break;
    const auto measured = measure(engine, part, size, go_on);
    if (!measured) break;
    out.push_back(*measured);
  }
  return out;
}

std::string batch_report(
    std::span<const BatchMeasurement> measured,
    int chosen
) {
  std::vector<int> sizes;
  const BatchMeasurement* taken = nullptr;
  for (const auto& m : measured) {
    sizes.push_back(m.batch);
    if (m.batch == chosen) taken = &m;
  }
  if (taken == nullptr) return fmt::format("batch {}", chosen);
  const double base = measured.front().tokens_per_s;
  return fmt::format(
      "batch {} of {}: {:.0f} tokens/s, {:.1f}x batch {}; a step takes {:.1f} "
      "ms, p95 {:.2f}x that, against {:.2f}x",
      chosen, fmt::join(sizes, ", "), taken->tokens_per_s,
      base > 0 ? taken->tokens_per_s / base : 0.0, measured.front().batch,
      taken->median_ms, taken->tail(), measured.front().tail()
  );
}

}  // namespace hearth::infer
