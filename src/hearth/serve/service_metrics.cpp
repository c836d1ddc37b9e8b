#include <set>

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
    sum.requests += s.requests;
    sum.failed += s.failed;
    sum.prompt_tokens += s.prompt_tokens;
    sum.cached_tokens += s.cached_tokens;
    sum.made_tokens += s.made_tokens;
    sum.steps += s.steps;
    sum.pool.pages += s.pool.pages;
    sum.pool.free_pages += s.pool.free_pages;
    sum.pool.page_bytes = s.pool.page_bytes;
  }
  return sum;
}

}  // namespace

std::string Service::metrics_text() const {
  std::string out = metrics_->answers_text();
  const auto add = [&](const char* name, const char* type, const char* help,
                       double value) {
    out += metric_text(name, type, help, value);
  };
  const auto number = [](auto value) { return static_cast<double>(value); };
  const infer::EngineStats s = sum_of(models_);
  add("hearth_requests_waiting", "gauge", "Requests in the queue.",
      number(s.waiting));
  add("hearth_requests_running", "gauge", "Requests being answered.",
      number(s.running));
  add("hearth_requests_total", "counter", "Requests the engine took.",
      number(s.requests));
  add("hearth_requests_failed_total", "counter", "Requests that failed.",
      number(s.failed));
  add("hearth_requests_rejected_total", "counter",
      "Requests refused because the queue was full.",
      number(metrics_->rejected.load()));
  add("hearth_requests_cancelled_total", "counter",
      "Requests whose client left.", number(metrics_->cancelled.load()));
  add("hearth_prompt_tokens_total", "counter", "Tokens of prompts.",
      number(s.prompt_tokens));
  add("hearth_cached_tokens_total", "counter",
      "Tokens of prompts that the prefix cache had.", number(s.cached_tokens));
  add("hearth_made_tokens_total", "counter", "Tokens generated.",
      number(s.made_tokens));
  add("hearth_engine_steps_total", "counter", "Steps of the model.",
      number(s.steps));
  add("hearth_kv_pages", "gauge", "Pages for keys and values.",
      number(s.pool.pages));
  add("hearth_kv_pages_free", "gauge", "Of these, free.",
      number(s.pool.free_pages));
  const MemoryUsage memory = memory_usage();
  add("hearth_memory_live_bytes", "gauge",
      "Bytes of arrays: weights, keys and values, what a step needs.",
      number(memory.total));
  add("process_resident_memory_bytes", "gauge", "Memory of the process.",
      number(resident_bytes()));
  out += metrics_->first_token.text(
      "hearth_first_token_seconds", "From request to first token."
  );
  out += metrics_->whole_request.text(
      "hearth_request_seconds", "From request to its end."
  );
  if (options_.more_metrics) out += options_.more_metrics();
  return out;
}

}  // namespace hearth::serve
