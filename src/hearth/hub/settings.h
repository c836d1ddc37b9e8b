#pragma once
// Which hub, which cache folder, which token: from the environment, by the
// rules of Hugging Face's own tools, so that both see the same files.
#include <optional>
#include <string>

#include "hearth/net/url.h"

namespace hearth::hub {

struct Settings {
  net::Url endpoint;
  std::string cache;  // holds models--ORG--NAME folders
  // Sent to the endpoint and to nobody else, and never shown.
  std::string token;
  bool offline = false;
  // Plain http to something other than this machine, said explicitly.
  bool allow_http = false;
};

// HF_ENDPOINT, HF_HUB_CACHE, HF_HOME, XDG_CACHE_HOME, HF_TOKEN, HF_TOKEN_PATH,
// HF_HUB_DISABLE_IMPLICIT_TOKEN, HF_HUB_OFFLINE. Throws UsageError for an
// endpoint that is no address and for a token that is no word.
Settings settings_from_environment();

// Throws UsageError when the endpoint is plain http to another machine and
// that was not allowed.
void check_endpoint(const Settings& settings);

// "~" and $VARIABLE in a path, as a shell has them.
std::string expand_path(const std::string& path);

}  // namespace hearth::hub
