// A request for text on a worker: how much work it may be, who calls it off,
// and whose it is.
#include "hearth/base/hash.h"
#include "hearth/serve/random_id.h"
#include "hearth/serve/service.h"

namespace hearth::serve {

void Service::handle_quick(const HttpRequest& request, const Reply& reply) {
  Effort effort(options_.quick_effort);
  effort.until(Clock::now() + options_.quick_time);
  attempt(request, reply, effort, true);
}

void Service::handle(const HttpRequest& request, const Reply& reply) {
  Effort effort;
  effort.until(Clock::now() + options_.prepare_time);
  attempt(request, reply, effort, false);
}

void Service::attempt(
    const HttpRequest& request,
    const Reply& reply,
    Effort& effort,
    bool quick
) {
  const RouteMatch match = find_route(request.path);
  const CallOff called_off = call_off_flag(reply);
  effort.unless(called_off);
  try {
    generate(request, reply, match, effort);
  } catch (const std::exception& e) {
    const auto* spent = dynamic_cast<const EffortError*>(&e);
    if (quick && spent != nullptr && !*called_off) throw TakesLong();
    HttpAnswer made = error(e, match.name);
    finish(request, match.name, made);
    reply->send(made);
  }
}

// What all requests have of their server. Their seeds are drawn last, so that
// what is begun twice draws once.
void Service::settle(
    const HttpRequest& request,
    const ServedModel& model,
    bool seeded,
    JobPlan& plan
) {
  const std::uint64_t seed = seeded ? 0 : next_seed();
  for (std::size_t i = 0; i < plan.requests.size(); ++i) {
    infer::Request& one = plan.requests[i];
    one.max_tokens = std::min(one.max_tokens, options_.limits.max_tokens);
    if (seeded) continue;
    const auto choice = i % static_cast<std::size_t>(plan.choices_per_prompt);
    one.sampling.seed = mixed_seed(seed, choice);
  }
  name_asker(request, plan.requests);
  check_log_probs(plan, model.engine->limit());
}

void Service::name_asker(
    const HttpRequest& request,
    std::span<infer::Request> requests
) const {
  const Hash128 scope = scope_of(request);
  const std::uint64_t asker = hash64(owner(request));
  for (infer::Request& one : requests) one.scope = scope, one.asker = asker;
}

Service::CallOff Service::call_off_flag(const Reply& reply) {
  auto flag = std::make_shared<std::atomic<bool>>(false);
  {
    const std::lock_guard lock(jobs_mutex_);
    std::erase_if(call_offs_, [](const auto& f) { return f.expired(); });
    call_offs_.push_back(flag);
    *flag = cut_off_;
  }
  reply->on_gone([flag] { *flag = true; });
  return flag;
}

Hash128 Service::scope_of(const HttpRequest& request) const {
  const std::string* given = request.header("Authorization");
  if (options_.access.keys.empty() || given == nullptr) return {};
  return scopes_->of(ApiKeys::key_in_header(*given));
}

std::string Service::owner(const HttpRequest& request) const {
  const Hash128 scope = scope_of(request);
  return scope == Hash128{} ? request.peer : scope.hex();
}

}  // namespace hearth::serve
