#include "hearth/cli/hub_model.h"

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/cli/interrupt.h"
#include "hearth/cli/pull_progress.h"
#include "hearth/hub/cached_model.h"

namespace hearth::cli {

std::string resolve_model(const Context& context, const std::string& model) {
  if (!hub::is_hub_reference(model)) return model;
  const hub::RepoName repo = hub::parse_hub_reference(model);
  const hub::Settings settings = hub::settings_from_environment();
  const auto found = hub::find_cached_model(settings.cache, repo);
  if (found.whole()) return found.path;
  if (settings.offline) {
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
      fmt::format("hf:{} is not in the cache: fetching it", repo.text())
  );
  const InterruptGuard guard;
  PullProgress progress(context, repo.text());
  hub::pull(settings, repo, {}, progress);
  progress.done();
  const auto pulled = hub::find_cached_model(settings.cache, repo);
  if (pulled.whole()) return pulled.path;
  throw UsageError(
      fmt::format(
          "hf:{} is no whole model: {} is missing", repo.text(), pulled.missing
      )
  );
}

}  // namespace hearth::cli
