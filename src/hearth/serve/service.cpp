#include "hearth/serve/service.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/base/log.h"
#include "hearth/serve/random_id.h"
#include "hearth/serve/routes.h"

namespace hearth::serve {
namespace {

// The page runs its own scripts and talks to its own server, nothing else.
constexpr const char* kPagePolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'";

HttpAnswer json_answer(const Json& json) {
  return {200, {{"Content-Type", "application/json"}}, to_json_line(json)};
}

HttpAnswer page_answer(std::string_view path) {
  const PageFile file = page_file(path);
  return {
      200,
      {{"Content-Type", std::string(file.type)},
       {"Content-Security-Policy", kPagePolicy},
       {"X-Frame-Options", "DENY"},
       {"Referrer-Policy", "no-referrer"}},
      std::string(file.text)
  };
}

HttpAnswer effort_answer(EffortError::Reason reason) {
  switch (reason) {
    case EffortError::Reason::deadline:
      return error_answer(
          {503,
           "the request took too long to prepare: its template, schema or "
           "grammar is too much work now",
           {},
           "too_much_work"},
          1
      );
    case EffortError::Reason::cancelled:
      return error_answer(
          {503,
           "the server stopped before the answer was begun",
           {},
           "server_stopped"},
          1
      );
    case EffortError::Reason::too_large:
      break;
  }
  return error_answer(
      {400,
       "the request is too much work: its template, schema or grammar is too "
       "large",
       {},
       "too_much_work"}
  );
}

}  // namespace

Service::Service(ServiceOptions options, std::vector<ServedModel> models)
    : options_(std::move(options)),
      models_(std::move(models)),
      scopes_(
          options_.scopes ? options_.scopes : std::make_shared<KeyScopes>()
      ),
      shares_(options_.per_key) {}

HttpAnswer Service::fault_answer(const HttpFault& fault) {
  metrics_->count_answer("other", fault.status);
  log_debug("- - {} {}", fault.status, fault.what);
  return error_answer({fault.status, fault.what});
}

HttpHeaders Service::common_headers(const HttpRequest& request) const {
  HttpHeaders out = cors_headers(options_.access, request);
  out.emplace_back("X-Content-Type-Options", "nosniff");
  out.emplace_back("Cache-Control", "no-store");
  return out;
}

HttpAnswer Service::error(
    const std::exception& e,
    std::string_view route
) const {
  if (const auto* api = dynamic_cast<const ApiError*>(&e)) {
    return error_answer(*api, retry_after(api->status()));
  }
  if (const auto* spent = dynamic_cast<const EffortError*>(&e)) {
    return effort_answer(spent->reason());
  }
  if (dynamic_cast<const UsageError*>(&e) != nullptr) {
    return error_answer({400, plain_message(e.what())});
  }
  log_warning("[serve.Service] {}: {}", route, e.what());
  return error_answer({500, "the server failed; its log says why"});
}

// How long until there may be room: what waits now, at the speed so far.
int Service::retry_after(int status) const {
  constexpr double kMost = 120, kWhileDraining = 5;
  if (status == 503) return static_cast<int>(kWhileDraining);
  std::size_t waiting = 0, running = 0;
  for (const ServedModel& model : models_) {
    const auto stats = model.engine->stats();
    waiting = std::max(waiting, stats.waiting);
    running = std::max(running, stats.running);
  }
  const double turns =
      1 + static_cast<double>(waiting) /
              static_cast<double>(std::max<std::size_t>(running, 1));
  const double seconds = metrics_->whole_request.mean() * turns;
  return static_cast<int>(std::ceil(std::clamp(seconds, 1.0, kMost)));
}

void Service::finish(
    const HttpRequest& request,
    std::string_view route,
    HttpAnswer& answer
) {
  metrics_->count_answer(route, answer.status);
  if (answer.status == 405) {
    const bool posts = asks_model(find_route(route).route);
    answer.headers.emplace_back("Allow", posts ? "POST" : "GET, HEAD");
  }
  for (auto& header : common_headers(request)) {
    answer.headers.push_back(std::move(header));
  }
  log_debug("{} {} {}", request.method, route, answer.status);
}

std::optional<HttpAnswer> Service::gate(const HttpRequest& head) {
  std::string_view route = "other";
  HttpAnswer made;
  try {
    check_host(options_.access, head);
    // A preflight always has an origin: without one this is an ordinary
    // request.
    if (head.method == "OPTIONS" && head.header("Origin") != nullptr &&
        !options_.access.cors_origins.empty()) {
      made = preflight(head);
    } else {
      check_origin(options_.access, head);
      const RouteMatch match = find_route(head.path);
      route = match.name;
      check_method(match.route, head.method);
      auto answered = answer(head, match);
      if (!answered) return {};
      made = *std::move(answered);
    }
  } catch (const std::exception& e) {
    made = error(e, route);
  }
  if (made.status == 401) note_refused_key(head);
  finish(head, route, made);
  return made;
}

// An attempt with a wrong key is logged, but at most once a minute.
void Service::note_refused_key(const HttpRequest& head) {
  constexpr auto kBetween = std::chrono::minutes(1);
  ++metrics_->keys_refused;
  if (head.header("Authorization") == nullptr) return;
  ++keys_unnoted_;
  const auto now = Clock::now();
  if (key_noted_ != Clock::time_point{} && now - key_noted_ < kBetween) return;
  key_noted_ = now;
  log_warning(
      "a key that is not known here was given ({} since the last note)",
      std::exchange(keys_unnoted_, 0)
  );
}

HttpAnswer Service::preflight(const HttpRequest& request) const {
  const HttpHeaders allowed = cors_headers(options_.access, request);
  if (allowed.empty()) throw ApiError(403, "this origin may not ask here");
  // Clients send headers of their own (x-stainless-…) that mean nothing here:
  // an origin that may ask may send them.
  const std::string* asked = request.header("Access-Control-Request-Headers");
  return {
      204,
      {{"Access-Control-Allow-Methods", "GET, POST"},
       {"Access-Control-Allow-Headers",
        asked == nullptr ? "Authorization, Content-Type" : *asked},
       {"Access-Control-Max-Age", "600"}},
      {}
  };
}

// Returns nothing for a request to a model that may go on.
std::optional<HttpAnswer> Service::answer(
    const HttpRequest& head,
    const RouteMatch& match
) {
  if (match.route == Route::page) return page_answer(head.path);
  if (match.route == Route::health) return health();
  check_key(options_.access, head);
  switch (match.route) {
    case Route::metrics:
      return HttpAnswer{
          200,
          {{"Content-Type", "text/plain; version=0.0.4; charset=utf-8"}},
          metrics_text()
      };
    case Route::models:
      return json_answer(models_json());
    case Route::model:
      return json_answer(model_json(model_named(match.rest)));
    default:
      break;
  }
  check_encoding(head);
  check_json_type(head);
  if (draining_) throw ApiError(503, "the server is shutting down");
  return {};
}

void Service::generate(
    const HttpRequest& request,
    const Reply& reply,
    const RouteMatch& match,
    Effort& effort
) {
  if (draining_) throw ApiError(503, "the server is shutting down");
  // A client may leave while its request waits for a worker.
  effort.look();
  if (match.route == Route::embeddings) {
    return embed(request, reply, match, effort);
  }
  auto share = shares_.take(owner(request), 1);
  JobPlan plan;
  const ServedModel* model = nullptr;
  bool seeded = false;
  effort.spend(request.body.size());
  const auto ready = [&](GenerationRequest& asked) {
    model = &model_named(asked.model);
    asked.effort = &effort;
    seeded = asked.seed.has_value();
  };
  if (match.route == Route::chat) {
    auto asked = parse_chat_request(request.body, options_.limits);
    ready(asked);
    plan = plan_chat(*model, asked);
  } else if (match.route == Route::responses) {
    auto asked = parse_response_request(request.body, options_.limits);
    ready(asked);
    plan = plan_response(*model, asked);
  } else {
    auto asked = parse_completion_request(request.body, options_.limits);
    ready(asked);
    plan = plan_completion(*model, asked);
  }
  shares_.resize(*share, plan.requests.size());
  settle(request, *model, seeded, plan);
  JobHost host = host_of(*model, request, match, std::move(share));
  for (auto& header : plan.headers) host.headers.push_back(std::move(header));
  const auto job =
      std::make_shared<GenerationJob>(std::move(host), std::move(plan), reply);
  job->start(&effort);
  keep_track(job);
}

JobHost Service::host_of(
    const ServedModel& model,
    const HttpRequest& request,
    const RouteMatch& match,
    KeyShares::SharePtr share
) const {
  return {
      .engine = model.engine.get(),
      .tokenizer = model.text->tokenizer(),
      .metrics = metrics_,
      .route = match.name,
      .headers = common_headers(request),
      .timeout = options_.timeout,
      .share = std::move(share)
  };
}

void Service::embed(
    const HttpRequest& request,
    const Reply& reply,
    const RouteMatch& match,
    Effort& effort
) {
  auto share = shares_.take(owner(request), 1);
  effort.spend(request.body.size());
  const auto asked = parse_embedding_request(request.body, options_.limits);
  const ServedModel& model = model_named(asked.model);
  EmbeddingPlan plan = plan_embeddings(model, asked, effort);
  plan.at_once = std::min(plan.requests.size(), kTextsAtOnce);
  if (options_.per_key > 0) {
    plan.at_once = std::min(plan.at_once, options_.per_key);
  }
  shares_.resize(*share, plan.at_once);
  name_asker(request, plan.requests);
  const auto job = std::make_shared<EmbeddingJob>(
      host_of(model, request, match, std::move(share)), std::move(plan), reply
  );
  job->start();
  keep_track(job);
}

std::uint64_t Service::next_seed() {
  if (!options_.seed) return random_number();
  return mixed_seed(*options_.seed, seeds_drawn_++);
}

void Service::keep_track(const std::shared_ptr<RunningJob>& job) {
  const std::lock_guard lock(jobs_mutex_);
  std::erase_if(jobs_, [](const auto& j) { return j.expired(); });
  jobs_.push_back(job);
}

void Service::cut_off() {
  const std::lock_guard lock(jobs_mutex_);
  cut_off_ = true;
  for (const auto& weak : call_offs_) {
    if (const auto flag = weak.lock()) *flag = true;
  }
  for (const auto& weak : jobs_) {
    if (const auto job = weak.lock()) job->cut_off();
  }
}

const ServedModel& Service::model_named(const std::string& id) const {
  for (const ServedModel& model : models_) {
    if (model.id == id) return model;
  }
  std::vector<std::string> known;
  for (const ServedModel& model : models_) known.push_back(model.id);
  throw ApiError(
      404,
      fmt::format(
          "there is no model {} here; there is {}", shown(Json(id)),
          fmt::join(known, ", ")
      ),
      "model", "model_not_found"
  );
}

Json Service::model_json(const ServedModel& model) const {
  return {
      {"id", model.id},
      {"object", "model"},
      {"created", model.created},
      {"owned_by", "hearth"},
      {"context_length", model.engine->limit()},
      {"max_tokens", options_.limits.max_tokens},
      {"embedding_length", model.engine->width()},
      {"chat", model.text->chats()}
  };
}

Json Service::models_json() const {
  Json list = Json::array();
  for (const ServedModel& model : models_) list.push_back(model_json(model));
  return {{"object", "list"}, {"data", std::move(list)}};
}

}  // namespace hearth::serve
