// What /health says: a server that takes requests and cannot get to them is not
// well, whatever its loop answers.
#include <algorithm>
#include <span>

#include "hearth/serve/service.h"

namespace hearth::serve {
namespace {

double seconds(std::chrono::milliseconds time) {
  return std::chrono::duration<double>(time).count();
}

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

bool past(const HttpServer::Workers& workers, double limit) {
  return workers.quick.longest_run > limit ||
         workers.quick.longest_wait > limit || workers.slow.longest_run > limit;
}

}  // namespace

// The longest time for which a request has had no turn of a model: none of its
// prompt was read, though all take turns.
double longest_turn_wait(std::span<const ServedModel> models) {
  double out = 0;
  for (const ServedModel& model : models) {
    const auto since = model.engine->stats().waits_since;
    if (!since) continue;
    const auto now = std::chrono::steady_clock::now();
    out = std::max(out, std::chrono::duration<double>(now - *since).count());
  }
  return out;
}

// late: requests wait longer than they should, and are answered. stuck: one
// has held a worker, or waited for a quick one, for longer than any may.
HttpAnswer Service::health() const {
  Json body = {{"status", "ok"}};
  int status = 200;
  const auto workers =
      options_.workers ? options_.workers() : HttpServer::Workers{};
  const bool stuck = past(workers, seconds(options_.stuck_after));
  const double turn_wait = longest_turn_wait(models_);
  const bool waits = turn_wait > seconds(options_.late_after);
  const bool late = waits || past(workers, seconds(options_.late_after)) ||
                    workers.slow.longest_wait > seconds(options_.late_after);
  if (stuck || draining_) status = 503;
  if (stuck || late) {
    body["status"] = stuck ? "stuck" : "late";
    body["workers"] = {
        {"quick", pool_json(workers.quick)}, {"slow", pool_json(workers.slow)}
    };
  }
  if (waits) body["turns"] = {{"longest_wait_s", tenths(turn_wait)}};
  if (draining_) body["status"] = "draining";
  return {status, {{"Content-Type", "application/json"}}, to_json_line(body)};
}

}  // namespace hearth::serve
