#pragma once
// The routes: from a request of HTTP to an answer or a running job.
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "hearth/base/effort.h"
#include "hearth/serve/access.h"
#include "hearth/serve/generation_job.h"
#include "hearth/serve/http/http_server.h"
#include "hearth/serve/key_scopes.h"
#include "hearth/serve/key_shares.h"
#include "hearth/serve/routes.h"
#include "hearth/serve/served_model.h"

namespace hearth::serve {

struct ServiceOptions {
  AccessRules access;
  RequestLimits limits;
  std::chrono::milliseconds timeout{600'000};
  // How long a request may take to become tokens and a grammar: on the quick
  // workers, which answer most, and on the slow ones.
  std::chrono::milliseconds quick_time{50}, prepare_time{5'000};
  std::uint64_t quick_effort = 4'000'000;  // the same in units of Effort
  // What each key's prompts are kept under; none: names of this process.
  std::shared_ptr<const KeyScopes> scopes;
  // Texts that one key, or one address where there are no keys, may have under
  // way; 0: any number.
  std::size_t per_key = 0;
  // What carries the service, and when /health says that it is late or stuck.
  std::function<HttpServer::Workers()> workers;
  std::chrono::milliseconds late_after{2'000}, stuck_after{30'000};
  std::string version;
  // Requests without a seed draw theirs from this one, in the order they come;
  // without it they are unforeseeable.
  std::optional<std::uint64_t> seed;
  // More lines for /metrics, about the HTTP server below the service.
  std::function<std::string()> more_metrics;
};

// What /health looks at: the workers that read requests, quick and slow, and
// the threads that look for the next tokens of grammars.
struct WorkerPools {
  WorkerQueue::State quick, slow, grammars;
};
enum class Condition : unsigned char { ok, late, stuck };
// Limits in seconds.
Condition condition_of(
    const WorkerPools& pools,
    double late_after,
    double stuck_after
);

class Service {
 public:
  // The first model is the one that the page talks to.
  Service(ServiceOptions options, std::vector<ServedModel> models);

  // Implements HttpServerOptions::gate. Answers everything that is not for a
  // model, and refuses requests whose head shows that they may not be made.
  std::optional<HttpAnswer> gate(const HttpRequest& head);
  // HttpHandlers, for what the gate let pass: answer at once, or hand the reply
  // to a job. The quick one throws TakesLong for what is more than a little
  // work; nothing has then been done.
  void handle_quick(
      const HttpRequest& request,
      const std::shared_ptr<HttpReply>& reply
  );
  void handle(
      const HttpRequest& request,
      const std::shared_ptr<HttpReply>& reply
  );
  // Implements HttpServerOptions::owner: the scope of the key, or the address.
  std::string owner(const HttpRequest& request) const;
  // What cannot be read as HTTP, in the API's form.
  HttpAnswer fault_answer(const HttpFault& fault);

  // From now on requests for text are answered with 503.
  void drain() { draining_ = true; }
  // Ends the answers under way, and the work on requests that have none yet,
  // each with an error that says so.
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
  using CallOff = std::shared_ptr<std::atomic<bool>>;
  void attempt(
      const HttpRequest& request,
      const Reply& reply,
      Effort& effort,
      bool quick
  );
  // A flag that is set when the client leaves or the server stops.
  CallOff call_off_flag(const Reply& reply);
  void generate(
      const HttpRequest& request,
      const Reply& reply,
      const RouteMatch& match,
      Effort& effort
  );
  // Without keys there is one scope.
  Hash128 scope_of(const HttpRequest& request) const;
  // Whose prompts they are, and who takes turns with others.
  void name_asker(
      const HttpRequest& request,
      std::span<infer::Request> requests
  ) const;
  void settle(
      const HttpRequest& request,
      const ServedModel& model,
      bool seeded,
      JobPlan& plan
  );
  void embed(
      const HttpRequest& request,
      const Reply& reply,
      const RouteMatch& match,
      Effort& effort
  );
  JobHost host_of(
      const ServedModel& model,
      const HttpRequest& request,
      const RouteMatch& match,
      KeyShares::SharePtr share
  ) const;
  void keep_track(const std::shared_ptr<RunningJob>& job);
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
  const std::shared_ptr<const KeyScopes> scopes_;
  const std::shared_ptr<Metrics> metrics_ = std::make_shared<Metrics>();
  KeyShares shares_;
  std::atomic<bool> draining_{false};
  std::atomic<std::uint64_t> seeds_drawn_{0};
  std::mutex jobs_mutex_;
  std::vector<std::weak_ptr<RunningJob>> jobs_;
  std::vector<std::weak_ptr<std::atomic<bool>>> call_offs_;
  bool cut_off_ = false;  // what comes from now on is called off at once
  // About wrong keys: when the last note was written, and how many came since.
  Clock::time_point key_noted_{};
  std::uint64_t keys_unnoted_ = 0;
};

}  // namespace hearth::serve
