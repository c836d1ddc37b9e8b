#include "hearth/cli/model/hub_model.h"

#include <filesystem>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/cli/inputs.h"
#include "hearth/cli/interrupt.h"
#include "hearth/cli/model/pull_progress.h"
#include "hearth/hub/cached_model.h"
#include "hearth/net/network_error.h"

namespace hearth::cli {
namespace {

// ORG/NAME where no such path is: most likely a hub's model without its hf:.
bool is_bare_hub_name(const std::string& model) {
  namespace fs = std::filesystem;
  const std::string run = model.substr(0, model.rfind('@'));
  if (model.empty() || fs::exists(model) || fs::exists(run)) return false;
  try {
    hub::parse_hub_reference("hf:" + model);
    return true;
  } catch (const UsageError&) {
    return false;
  }
}

}  // namespace

void check_model_path(const std::string& model) {
  if (hub::is_hub_reference(model)) return;
  require_in_reach(model, "model");
  if (!is_bare_hub_name(model)) return;
  throw UsageError(
      fmt::format("{}: there is no such model folder or .gguf file", model),
      fmt::format("if it is a model of the hub, say hf:{}", model)
  );
}

std::string resolve_model(const Context& context, const std::string& model) {
  if (!hub::is_hub_reference(model)) return model;
  const hub::RepoName repo = hub::parse_hub_reference(model);
  const hub::Settings settings = hub::settings_from_environment();
  const auto found = hub::find_cached_model(settings.cache, repo);
  if (found.whole()) return found.path;
  if (settings.offline) {
    // Token ids, or another tokenizer, will do.
    if (found.has_model()) return found.path;
    throw UsageError(
        fmt::format(
            "hf:{} is not in the cache ({} is missing), and HF_HUB_OFFLINE "
            "keeps it from being fetched",
            repo.text(), found.missing
        ),
        fmt::format("hearth pull {} where there is a network", repo.text())
    );
  }
  context.note(
      found.has_model()
          ? fmt::format(
                "hf:{} is in the cache without {}: fetching it", repo.text(),
                found.missing
            )
          : fmt::format("hf:{} is not in the cache: fetching it", repo.text())
  );
  const InterruptGuard guard;
  PullProgress progress(context, repo.text());
  try {
    hub::pull(settings, repo, {}, progress);
  } catch (const net::NetworkError& e) {
    if (!found.has_model()) throw;
    context.note(
        fmt::format("going on without {}: {}", found.missing, e.what())
    );
    return found.path;
  }
  progress.done();
  const auto pulled = hub::find_cached_model(settings.cache, repo);
  if (pulled.has_model()) return pulled.path;
  throw UsageError(
      fmt::format(
          "hf:{} is no whole model: {} is missing", repo.text(), pulled.missing
      )
  );
}

}  // namespace hearth::cli
