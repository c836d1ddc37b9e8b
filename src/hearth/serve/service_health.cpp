// What /health says: a server that takes requests and cannot get to them is not
// well, whatever its loop answers.
#include <algorithm>
#include <span>

#include "hearth/base/clock.h"
#include "hearth/serve/service.h"

namespace hearth::serve {
namespace {

// Tenths are enough, and tell nobody more than they need.
double tenths(double value) {
  return static_cast<double>(static_cast<long>(value * 10)) / 10;
}

Json pool_json(const WorkerQueue::State& state) {
  return {
      {"threads", state.threads},
      {"busy", state.busy},
      {"waiting", state.waiting},
      {"longest_run_s", tenths(state.longest_run)},
      {"longest_wait_s", tenths(state.longest_wait)}
  };
}

bool any_runs_past(const WorkerPools& pools, double limit) {
  return pools.quick.longest_run > limit || pools.slow.longest_run > limit ||
         pools.grammars.longest_run > limit;
}

}  // namespace

// The longest time for which a request has had no turn of a model: none of its
// prompt was read, though all take turns.
double longest_turn_wait(std::span<const ServedModel> models) {
  double out = 0;
  for (const ServedModel& model : models) {
    const auto since = model.engine->stats().waits_since;
    if (!since) continue;
    out = std::max(out, seconds_since(*since));
  }
  return out;
}

// Those that look for the next tokens of grammars, of all models: their
// numbers added, and the longest times of any.
WorkerQueue::State grammar_threads(std::span<const ServedModel> models) {
  WorkerQueue::State out;
  for (const ServedModel& model : models) {
    const WorkerQueue::State one = model.engine->stats().grammars;
    out.threads += one.threads;
    out.busy += one.busy;
    out.waiting += one.waiting;
    out.longest_run = std::max(out.longest_run, one.longest_run);
    out.longest_wait = std::max(out.longest_wait, one.longest_wait);
  }
  return out;
}

// Only a quick worker has nothing to wait for but work that is quick.
Condition condition_of(
    const WorkerPools& pools,
    double late_after,
    double stuck_after
) {
  if (any_runs_past(pools, stuck_after) ||
      pools.quick.longest_wait > stuck_after) {
    return Condition::stuck;
  }
  const bool waits = pools.quick.longest_wait > late_after ||
                     pools.slow.longest_wait > late_after ||
                     pools.grammars.longest_wait > late_after;
  return waits || any_runs_past(pools, late_after) ? Condition::late
                                                   : Condition::ok;
}

// late: requests wait longer than they should, and are answered. stuck: one
// has held a worker, or waited for a quick one, for longer than any may.
HttpAnswer Service::health() const {
  Json body = {{"status", "ok"}};
  int status = 200;
  const auto workers =
      options_.workers ? options_.workers() : HttpServer::Workers{};
  const WorkerPools pools{
      workers.quick, workers.slow, grammar_threads(models_)
  };
  const double late_after = to_seconds(options_.late_after);
  const Condition condition =
      condition_of(pools, late_after, to_seconds(options_.stuck_after));
  const bool stuck = condition == Condition::stuck;
  const double turn_wait = longest_turn_wait(models_);
  const bool waits = turn_wait > late_after;
  if (stuck || draining_) status = 503;
  if (waits || condition != Condition::ok) {
    body["status"] = stuck ? "stuck" : "late";
    body["workers"] = {
        {"quick", pool_json(pools.quick)},
        {"slow", pool_json(pools.slow)},
        {"grammars", pool_json(pools.grammars)}
    };
  }
  if (waits) body["turns"] = {{"longest_wait_s", tenths(turn_wait)}};
  if (draining_) body["status"] = "draining";
  return {status, {{"Content-Type", "application/json"}}, to_json_line(body)};
}

}  // namespace hearth::serve
