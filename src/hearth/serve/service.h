#pragma once
// The routes: from a request of HTTP to an answer or a running job.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "hearth/serve/access.h"
#include "hearth/serve/generation_job.h"
#include "hearth/serve/http_server.h"
#include "hearth/serve/routes.h"
#include "hearth/serve/served_model.h"

namespace hearth::serve {

struct ServiceOptions {
  AccessRules access;
  RequestLimits limits;
  std::chrono::milliseconds timeout{600'000};
  std::string version;
  // More lines for /metrics, about what carries the service.
  std::function<std::string()> more_metrics;
};

class Service {
 public:
  // The first model is the one that the page talks to.
  Service(ServiceOptions options, std::vector<ServedModel> models);

  // An HttpHandler. Answers at once, or hands the reply to a job.
  void handle(
      const HttpRequest& request,
      const std::shared_ptr<HttpReply>& reply
  );

  // From now on requests for text are answered with 503.
  void drain() { draining_ = true; }

  // What cannot be read as HTTP, in the API's form.
  static HttpAnswer fault_answer(const HttpFault& fault);

  std::string metrics_text() const;

 private:
  using Reply = std::shared_ptr<HttpReply>;
  HttpAnswer answer(const HttpRequest& request, const Reply& reply);
  HttpAnswer preflight(const HttpRequest& request) const;
  void generate(
      const HttpRequest& request,
      const Reply& reply,
      const RouteMatch& match
  );
  const ServedModel& model_named(const std::string& id) const;
  Json models_json() const;
  Json model_json(const ServedModel& model) const;
  HttpAnswer health() const;
  HttpHeaders common_headers(const HttpRequest& request) const;

  const ServiceOptions options_;
  const std::vector<ServedModel> models_;
  const std::shared_ptr<Metrics> metrics_ = std::make_shared<Metrics>();
  std::atomic<bool> draining_{false};
};

}  // namespace hearth::serve
