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
  // Requests without a seed draw theirs from this one, in the order they come;
  // without it they are unforeseeable.
  std::optional<std::uint64_t> seed;
  // More lines for /metrics, about what carries the service.
  std::function<std::string()> more_metrics;
};

class Service {
 public:
  // The first model is the one that the page talks to.
  Service(ServiceOptions options, std::vector<ServedModel> models);

  // As HttpServerOptions has it. Answers whatever is no request for text, and
  // those too whose head says that they may not be.
  std::optional<HttpAnswer> gate(const HttpRequest& head);
  // An HttpHandler, for what the gate let pass: answers at once, or hands the
  // reply to a job.
  void handle(
      const HttpRequest& request,
      const std::shared_ptr<HttpReply>& reply
  );
  // What cannot be read as HTTP, in the API's form.
  HttpAnswer fault_answer(const HttpFault& fault);

  // From now on requests for text are answered with 503.
  void drain() { draining_ = true; }
  // Ends the answers under way, each with an error that says so.
  void cut_off();

  std::string metrics_text() const;

 private:
  using Reply = std::shared_ptr<HttpReply>;
  std::optional<HttpAnswer> answer(
      const HttpRequest& head,
      const RouteMatch& match
  );
  HttpAnswer preflight(const HttpRequest& request) const;
  HttpAnswer error(const std::exception& e, std::string_view route) const;
  void finish(
      const HttpRequest& request,
      std::string_view route,
      HttpAnswer& answer
  );
  void generate(
      const HttpRequest& request,
      const Reply& reply,
      const RouteMatch& match
  );
  void keep_track(const std::shared_ptr<GenerationJob>& job);
  void note_refused_key(const HttpRequest& head);
  int retry_after(int status) const;
  std::uint64_t next_seed();
  const ServedModel& model_named(const std::string& id) const;
  Json models_json() const;
  Json model_json(const ServedModel& model) const;
  HttpAnswer health() const;
  HttpHeaders common_headers(const HttpRequest& request) const;

  const ServiceOptions options_;
  const std::vector<ServedModel> models_;
  const std::shared_ptr<Metrics> metrics_ = std::make_shared<Metrics>();
  std::atomic<bool> draining_{false};
  std::atomic<std::uint64_t> seeds_drawn_{0};
  std::mutex jobs_mutex_;
  std::vector<std::weak_ptr<GenerationJob>> jobs_;
  // Of wrong keys: when the last note was written, and how many came since.
  Clock::time_point key_noted_{};
  std::uint64_t keys_unnoted_ = 0;
};

}  // namespace hearth::serve
