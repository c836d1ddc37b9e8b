// hearth serve: OpenAI's API and a page to chat with, over one model.
#include <chrono>
#include <cstdio>
#include <thread>

#include <fmt/format.h>

#include "hearth/base/clock.h"
#include "hearth/base/error.h"
#include "hearth/base/units.h"
#include "hearth/cli/infer/serve_flags.h"
#include "hearth/cli/interrupt.h"
#include "hearth/cli/model/hub_model.h"
#include "hearth/cli/version.h"
#include "hearth/infer/engine/kv_layout.h"
#include "hearth/serve/http/file_limit.h"
#include "hearth/serve/serving.h"

namespace hearth::cli {
namespace {

using std::chrono::milliseconds;

// The text side is read here, the weights on the engine's thread, which is the
// one that uses them.
std::shared_ptr<serve::ServedText> text_side(
    const Context& context,
    const ServeFlags& flags
) {
  infer::TextModel model = flags.model.describe(context);
  model.need_tokenizer();
  if (!flags.chat_template.empty()) {
    model.templates =
        text::ChatTemplates::load(flags.chat_template, {}, model.text_path);
  }
  return std::make_shared<serve::ServedText>(
      model.tokenizer, std::move(model.templates), model.stop_ids,
      flags.special()
  );
}

// Both live as long as the engine that runs them.
struct Models {
  infer::TextModel model, draft;
};

std::shared_ptr<infer::Engine> start_engine(
    const Context& context,
    const ServeFlags& flags,
    const std::shared_ptr<const text::Tokenizer>& tokenizer,
    Models& models
) {
  double load_ms = 0;
  infer::EngineOptions options = flags.engine();
  infer::RunnerOptions runner = flags.runner();
  infer::check_kv_budget(runner.kv_budget_bytes, "--kv-memory");
  if (!flags.ahead.draft.empty()) {
    const DraftPlan draft =
        plan_draft(context, flags.model, flags.ahead.draft, runner);
    options.make_draft = [&, draft] {
      double draft_ms = 0;
      models.draft = draft.model.load(context, &draft_ms);
      load_ms += draft_ms;
      return infer::make_runner(models.draft.model, draft.runner);
    };
  }
  const auto engine = std::make_shared<infer::Engine>(
      [&] {
        models.model = flags.model.load(context, &load_ms);
        return infer::make_runner(models.model.model, runner);
      },
      tokenizer, options
  );
  const infer::KvPool pool = engine->stats().pool;
  context.note(
      fmt::format(
          "loaded in {:.2f} s; keys and values: {} pages of {} tokens, {}",
          load_ms / 1e3, pool.pages, pool.page_tokens,
          format_bytes(static_cast<std::size_t>(pool.pages) * pool.page_bytes)
      )
  );
  return engine;
}

std::vector<serve::ServedModel> served_models(
    const ServeFlags& flags,
    const std::shared_ptr<infer::Engine>& engine,
    const std::shared_ptr<const serve::ServedText>& text,
    infer::Pooling pooling
) {
  const auto seconds = static_cast<std::int64_t>(unix_seconds());
  std::vector<serve::ServedModel> out;
  out.push_back({flags.model_name(), engine, -1, text, seconds, pooling});
  int index = 0;
  for (const auto& [id, path] : flags.named_adapters()) {
    out.push_back({id, engine, index++, text, seconds, pooling});
  }
  return out;
}

std::string http_metrics(const serve::HttpCounters& c) {
  const auto one = [](const char* name, const char* type, const char* help,
                      auto value) {
    return serve::metric_text(name, type, help, static_cast<double>(value));
  };
  return one("hearth_http_connections_open", "gauge", "Clients connected.",
             c.open.load()) +
         one("hearth_http_connections_total", "counter", "Clients so far.",
             c.accepted.load()) +
         one("hearth_http_connections_refused_total", "counter",
             "Clients turned away: too many at once.", c.refused.load()) +
         one("hearth_http_connections_dropped_total", "counter",
             "Idle connections closed to make room.", c.dropped.load()) +
         one("hearth_http_faults_total", "counter",
             "Requests that were no HTTP, too large, too slow, or for which "
             "there was no room.",
             c.faults.load()) +
         one("hearth_http_requests_late_total", "counter",
             "Of these, too slow to arrive.", c.timed_out.load()) +
         one("hearth_http_heads_dropped_total", "counter",
             "Clients let go because their key or address began too many "
             "requests without ending them, or others needed the place.",
             c.partial.load()) +
         one("hearth_http_clients_left_total", "counter",
             "Clients that left before their answer ended.", c.left.load()) +
         one("hearth_http_clients_slow_total", "counter",
             "Clients let go because they did not read.", c.too_slow.load()) +
         one("hearth_http_sent_bytes_total", "counter", "Bytes sent.",
             c.bytes_out.load());
}

void announce(
    const Context& context,
    const ServeFlags& flags,
    int port,
    const std::vector<serve::ServedModel>& models,
    bool keys
) {
  const bool v6 = flags.host.find(':') != std::string::npos;
  const std::string url = fmt::format(
      "http://{}:{}", v6 ? "[" + flags.host + "]" : flags.host, port
  );
  std::vector<std::string> ids;
  for (const auto& model : models) ids.push_back(model.id);
  if (context.common.json) {
    context.json(
        "hearth.serve/1",
        {{"url", url}, {"port", port}, {"models", ids}, {"keys", keys}}
    );
  } else {
    context.print(
        fmt::format(
            "serving {} at {}/ (API: {}/v1{})\n", fmt::join(ids, ", "), url,
            url, keys ? ", with a key" : ""
        )
    );
  }
  std::fflush(stdout);
  context.note("Ctrl-C or SIGTERM ends it; answers under way are finished");
}

std::size_t connections(const Context& context, std::size_t wanted) {
  const std::size_t fit = serve::connections_that_fit(wanted);
  if (fit < wanted) {
    context.note(
        fmt::format(
            "{} clients at the same time: the system's limit of open files "
            "(ulimit -n) leaves no room for {}",
            fit, wanted
        )
    );
  }
  return fit;
}

// Answers under way get their time; those that are not whole by then are told.
void stop(
    const Context& context,
    const ServeFlags& flags,
    serve::Service& service,
    serve::HttpServer& server
) {
  constexpr auto kToTell = std::chrono::seconds(2);
  service.drain();
  const std::size_t cut = server.drain(flags.drain());
  if (cut > 0) service.cut_off();
  server.stop(kToTell);
  if (cut > 0) {
    throw Error(
        fmt::format(
            "{} answer{} not whole after {} s and {} cut off", cut,
            cut == 1 ? " was" : "s were", flags.drain_s,
            cut == 1 ? "was" : "were"
        ),
        "--drain gives answers more time"
    );
  }
  context.note("every answer was finished");
}

}  // namespace

void cmd_serve(Context& context, const std::vector<std::string>& words) {
  ServeFlags flags;
  Args args(
      "serve",
      "Serves a model: an OpenAI-compatible API and a page to chat with.",
      context.common
  );
  flags.declare(args);
  if (!context.parse(args, words)) return;
  flags.settle();
  flags.model.adapter = resolve_model(context, flags.model.adapter);

  serve::ServiceOptions options;
  options.access = flags.access();
  options.limits = flags.limits();
  options.timeout = flags.timeout();
  options.version = HEARTH_VERSION;
  options.per_key = flags.texts_per_key(options.access.keys);
  if (!options.access.keys.empty()) options.scopes = flags.scopes();
  if (context.common.seed_given) options.seed = context.common.seed;
  flags.drain();
  // Outlives the engine, which the service holds.
  Models loaded;
  std::unique_ptr<serve::Service> service;
  serve::HttpServerOptions http = flags.http();
  http.max_connections = connections(context, http.max_connections);
  const auto text = text_side(context, flags);
  const auto pooling = flags.embedding(flags.model.model);
  const InterruptGuard guard;

  // The port is taken before the model is read, so that an error about it costs
  // no wait.
  const auto server =
      serve::make_server(http, [&]() -> serve::Service& { return *service; });
  const auto engine = start_engine(context, flags, text->tokenizer(), loaded);
  const auto models = served_models(flags, engine, text, pooling);
  const bool keys = !options.access.keys.empty();
  options.workers = [&] { return server->workers(); };
  options.more_metrics = [&] { return http_metrics(server->counters()); };
  service = std::make_unique<serve::Service>(std::move(options), models);
  server->start();
  announce(context, flags, server->port(), models, keys);

  while (!InterruptGuard::interrupted()) {
    std::this_thread::sleep_for(milliseconds(50));
  }
  stop(context, flags, *service, *server);
}

}  // namespace hearth::cli
