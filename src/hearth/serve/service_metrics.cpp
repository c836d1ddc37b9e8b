// The text of /metrics.
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "hearth/base/memory.h"
#include "hearth/serve/service.h"

namespace hearth::serve {
namespace {

infer::EngineStats sum_of(const std::vector<ServedModel>& models) {
  infer::EngineStats sum;
  std::set<const infer::Engine*> seen;
  for (const ServedModel& model : models) {
    if (!seen.insert(model.engine.get()).second) continue;
    const infer::EngineStats s = model.engine->stats();
    sum.waiting += s.waiting;
    sum.running += s.running;
    sum.held += s.held;
    sum.requests += s.requests;
    sum.prompt_tokens += s.prompt_tokens;
    sum.cached_tokens += s.cached_tokens;
    sum.made_tokens += s.made_tokens;
    sum.steps += s.steps;
    sum.preempted += s.preempted;
    sum.drafted += s.drafted;
    sum.accepted += s.accepted;
    sum.pages_in_use += s.pages_in_use;
    sum.pool.pages += s.pool.pages;
    sum.pool.free_pages += s.pool.free_pages;
  }
  return sum;
}

// Lines of metrics, one after the other.
class MetricLines {
 public:
  template <class Value>
  void counter(const char* name, const char* help, const Value& value) {
    text += metric_text(name, "counter", help, static_cast<double>(value));
  }
  template <class Value>
  void gauge(const char* name, const char* help, const Value& value) {
    text += metric_text(name, "gauge", help, static_cast<double>(value));
  }
  std::string text;
};

void add_requests(const Metrics& m, MetricLines& out) {
  // Read in this order, so that none under way counts as less than nothing.
  const std::uint64_t done = m.done, failed = m.failed, cancelled = m.cancelled,
                      timed_out = m.timed_out;
  const std::uint64_t begun = m.begun;
  out.counter("hearth_requests_total", "Requests for text taken on.", begun);
  out.gauge(
      "hearth_requests_open", "Of these, under way.",
      begun - done - failed - cancelled - timed_out
  );
  out.counter("hearth_requests_done_total", "Of these, answered.", done);
  out.counter("hearth_requests_failed_total", "Of these, failed.", failed);
  out.counter(
      "hearth_requests_cancelled_total",
      "Of these, ended because the client left or the server stopped.",
      cancelled
  );
  out.counter(
      "hearth_requests_timed_out_total", "Of these, over --timeout.", timed_out
  );
  out.counter(
      "hearth_requests_rejected_total",
      "Requests not taken on because the queue was full.", m.rejected
  );
  out.counter(
      "hearth_keys_refused_total", "Requests with no key or a wrong one.",
      m.keys_refused
  );
}

void add_engine(const infer::EngineStats& s, MetricLines& out) {
  out.gauge(
      "hearth_sequences_waiting", "Choices of requests in the queue.", s.waiting
  );
  out.gauge("hearth_sequences_running", "Choices being written.", s.running);
  out.gauge(
      "hearth_sequences_held", "Choices whose client does not keep up.", s.held
  );
  out.counter("hearth_sequences_total", "Choices so far.", s.requests);
  out.counter(
      "hearth_sequences_preempted_total",
      "Choices put back into the queue for want of pages.", s.preempted
  );
  out.counter(
      "hearth_prompt_tokens_total", "Tokens of prompts.", s.prompt_tokens
  );
  out.counter(
      "hearth_cached_tokens_total",
      "Tokens of prompts that the prefix cache had.", s.cached_tokens
  );
  out.counter("hearth_made_tokens_total", "Tokens generated.", s.made_tokens);
  out.counter(
      "hearth_drafted_tokens_total", "Tokens guessed ahead.", s.drafted
  );
  out.counter(
      "hearth_accepted_tokens_total", "Of these, those that were right.",
      s.accepted
  );
  out.counter("hearth_engine_steps_total", "Steps of the model.", s.steps);
  out.gauge("hearth_kv_pages", "Pages for keys and values.", s.pool.pages);
  out.gauge(
      "hearth_kv_pages_used", "Of these, of requests under way.", s.pages_in_use
  );
  out.gauge(
      "hearth_kv_pages_cached", "Of these, kept for prompts that begin alike.",
      s.pool.pages - s.pool.free_pages - s.pages_in_use
  );
  out.gauge("hearth_kv_pages_free", "Of these, free.", s.pool.free_pages);
}

void add_workers(const HttpServer::Workers& w, MetricLines& out) {
  out.gauge(
      "hearth_workers_busy", "Workers that read requests, at work.",
      w.quick.busy + w.slow.busy
  );
  out.gauge(
      "hearth_workers_waiting", "Requests that wait for such a worker.",
      w.quick.waiting + w.slow.waiting
  );
  out.gauge(
      "hearth_workers_longest_run_seconds",
      "For how long one of them has been at one request.",
      std::max(w.quick.longest_run, w.slow.longest_run)
  );
  out.gauge(
      "hearth_workers_longest_wait_seconds",
      "For how long a request has waited for one.",
      std::max(w.quick.longest_wait, w.slow.longest_wait)
  );
}

}  // namespace

std::string Service::metrics_text() const {
  MetricLines out;
  out.text = fmt::format(
      "# HELP hearth_build_info What this server is.\n"
      "# TYPE hearth_build_info gauge\n"
      "hearth_build_info{{version=\"{}\"}} 1\n",
      options_.version
  );
  out.text += metrics_->answers_text();
  add_requests(*metrics_, out);
  add_engine(sum_of(models_), out);
  out.gauge(
      "hearth_memory_live_bytes",
      "Bytes of arrays: weights, keys and values, what a step needs.",
      memory_usage().total
  );
  out.text += process_metrics_text();
  out.text += metrics_->first_token.text(
      "hearth_first_token_seconds", "From request to first token."
  );
  out.text += metrics_->whole_request.text(
      "hearth_request_seconds", "From request to its end."
  );
  out.text += metrics_->inter_token.text(
      "hearth_inter_token_latency_seconds", "Between two tokens of one text."
  );
  out.text += metrics_->output_token.text(
      "hearth_time_per_output_token_seconds",
      "Of each text, the mean time for a token after the first."
  );
  if (options_.workers) add_workers(options_.workers(), out);
  if (options_.more_metrics) out.text += options_.more_metrics();
  return out.text;
}

}  // namespace hearth::serve
