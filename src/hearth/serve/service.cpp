#include "hearth/serve/service.h"

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/base/log.h"
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

}  // namespace

Service::Service(ServiceOptions options, std::vector<ServedModel> models)
    : options_(std::move(options)), models_(std::move(models)) {}

HttpAnswer Service::fault_answer(const HttpFault& fault) {
  return error_answer({fault.status, fault.what});
}

HttpHeaders Service::common_headers(const HttpRequest& request) const {
  HttpHeaders out = cors_headers(options_.access, request);
  out.emplace_back("X-Content-Type-Options", "nosniff");
  out.emplace_back("Cache-Control", "no-store");
  return out;
}

void Service::handle(
    const HttpRequest& request,
    const std::shared_ptr<HttpReply>& reply
) {
  std::string_view route = "other";
  HttpAnswer made;
  try {
    check_host(options_.access, request);
    if (request.method == "OPTIONS" && !options_.access.cors_origins.empty()) {
      made = preflight(request);
    } else {
      check_origin(options_.access, request);
      const RouteMatch match = match_route(request.method, request.path);
      route = match.name;
      made = answer(request, reply);
    }
  } catch (const ApiError& e) {
    made = error_answer(e);
    if (e.status() == 405) {
      const bool get = std::string_view(e.what()).ends_with("GET requests");
      made.headers.emplace_back("Allow", get ? "GET, HEAD" : "POST");
    }
  } catch (const UsageError& e) {
    made = error_answer({400, e.what()});
  } catch (const std::exception& e) {
    log_warning("[serve.Service] {}: {}", route, e.what());
    made = error_answer({500, "the server failed; its log says why"});
  }
  if (made.status == 0) return;  // a job has the reply now, and counts it
  metrics_->count_answer(route, made.status);
  for (auto& header : common_headers(request)) {
    made.headers.push_back(std::move(header));
  }
  reply->send(made);
}

HttpAnswer Service::preflight(const HttpRequest& request) const {
  const HttpHeaders allowed = cors_headers(options_.access, request);
  if (allowed.empty()) throw ApiError(403, "this origin may not ask here");
  return {
      204,
      {{"Access-Control-Allow-Methods", "GET, POST"},
       {"Access-Control-Allow-Headers", "Authorization, Content-Type"},
       {"Access-Control-Max-Age", "600"}},
      {}
  };
}

// A status of 0 means that a job answers later.
HttpAnswer Service::answer(const HttpRequest& request, const Reply& reply) {
  const RouteMatch match = match_route(request.method, request.path);
  if (match.route == Route::page) return page_answer(request.path);
  if (match.route == Route::health) return health();
  check_key(options_.access, request);
  switch (match.route) {
    case Route::metrics:
      return {
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
  check_json_type(request);
  generate(request, reply, match);
  return {.status = 0};
}

void Service::generate(
    const HttpRequest& request,
    const Reply& reply,
    const RouteMatch& match
) {
  const bool chat = match.route == Route::chat;
  if (draining_) throw ApiError(503, "the server is shutting down");
  JobPlan plan;
  const ServedModel* model = nullptr;
  if (chat) {
    const auto asked = parse_chat_request(request.body, options_.limits);
    model = &model_named(asked.model);
    plan = plan_chat(*model, asked);
  } else {
    const auto asked = parse_completion_request(request.body, options_.limits);
    model = &model_named(asked.model);
    plan = plan_completion(*model, asked);
  }
  for (auto& one : plan.requests) {
    one.max_tokens = std::min(one.max_tokens, options_.limits.max_tokens);
  }
  JobHost host{
      .engine = model->engine.get(),
      .tokenizer = model->text->tokenizer,
      .metrics = metrics_,
      .route = match.name,
      .headers = common_headers(request),
      .timeout = options_.timeout
  };
  std::make_shared<GenerationJob>(std::move(host), std::move(plan), reply)
      ->start();
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
      {"chat", model.text->templates.has_value()}
  };
}

Json Service::models_json() const {
  Json list = Json::array();
  for (const ServedModel& model : models_) list.push_back(model_json(model));
  return {{"object", "list"}, {"data", std::move(list)}};
}

HttpAnswer Service::health() const {
  HttpAnswer out = json_answer({{"status", draining_ ? "draining" : "ok"}});
  if (draining_) out.status = 503;
  return out;
}

}  // namespace hearth::serve
