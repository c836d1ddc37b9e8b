// What the hub says no with.

#include <fmt/format.h>

#include "hearth/base/clock.h"
#include "hearth/base/error.h"
#include "hearth/base/quoted.h"
#include "hearth/hub/hub_client.h"

namespace hearth::hub {
namespace {

bool may_pass(int status) {
  return status == 408 || status == 429 || status == 500 || status == 502 ||
         status == 503 || status == 504;
}

constexpr const char* kTokenHint =
    "set HF_TOKEN, or put a token in the file HF_TOKEN_PATH names; the model's "
    "page says whether its terms must be accepted first";

}  // namespace

void throw_status(const net::HttpHead& head, const std::string& model) {
  const std::string_view code = head.find("x-error-code").value_or("");
  if (may_pass(head.status)) {
    const auto after = head.find("retry-after");
    throw net::NetworkError(
        fmt::format(
            "the hub answered {}{}", head.status,
            head.status == 429 ? " (too many requests)" : " (its own trouble)"
        ),
        after ? parse_retry_after(*after, unix_seconds()) : std::nullopt
    );
  }
  if (head.status == 416) {
    throw RangeRefused(
        fmt::format("{}: the hub answered 416: the file ends before", model)
    );
  }
  if (code == "RevisionNotFound") {
    throw NotThere(fmt::format("{}: the hub has no such revision", model));
  }
  if (head.status == 401) {
    // The hub does not tell a private model from one that is not there.
    throw UsageError(
        fmt::format(
            "{}: the hub answered 401: there is no such model, or it wants a "
            "token that may read it",
            model
        ),
        kTokenHint
    );
  }
  if (head.status == 403) {
    throw UsageError(
        fmt::format(
            "{}: the hub answered 403: your token may not read this model{}",
            model, code == "GatedRepo" ? ", which is gated" : ""
        ),
        kTokenHint
    );
  }
  if (head.status == 404 || head.status == 410) {
    throw NotThere(
        fmt::format(
            "{}: the hub answered {}: {}", model, head.status,
            code == "EntryNotFound" ? "a file it listed is not there"
                                    : "there is no such model or revision"
        )
    );
  }
  throw Error(fmt::format("{}: the hub answered {}", model, head.status));
}

}  // namespace hearth::hub
