#pragma once
// The flags of hearth serve, and what they mean for the parts of the server.
#include <string>
#include <utility>
#include <vector>

#include "hearth/cli/infer/engine_flags.h"
#include "hearth/cli/model/model_flags.h"
#include "hearth/infer/engine/engine.h"
#include "hearth/infer/engine/make_runner.h"
#include "hearth/serve/http/http_server.h"
#include "hearth/serve/service.h"

namespace hearth::cli {

struct ServeFlags {
  ModelFlags model;
  std::string host = "127.0.0.1", name, chat_template, kv = "auto",
              products = "auto", kv_memory, max_body = "8MiB",
              special_text = "plain", pooling = "auto";
  std::vector<std::string> key_files, origins, host_names, adapters;
  std::int64_t port = 8080, max_batch = 16, max_queue = 256, max_tokens = 4096,
               max_connections = 512, timeout_s = 600, drain_s = 30,
               per_key = -1;
  AheadFlags ahead;
  bool no_auth = false, batch_invariant = false, no_prefix_cache = false,
       strict_requests = false;

  void declare(Args& args);
  // Completes what parsing alone cannot know: --adapter FOLDER is the model's
  // own adapter.
  void settle();

  // Each checks its flags and throws UsageError.
  serve::AccessRules access() const;
  serve::HttpServerOptions http() const;
  infer::EngineOptions engine() const;
  infer::RunnerOptions runner() const;
  serve::RequestLimits limits() const;
  serve::SpecialText special() const;
  // How embeddings are made; text_path is the model's own side, which may say.
  infer::Pooling embedding(const std::string& text_path) const;
  std::chrono::seconds timeout() const;
  std::chrono::seconds drain() const;
  // Texts that each of these keys may have under way; 0: any number.
  std::size_t texts_per_key(const serve::ApiKeys& keys) const;
  // The scopes under which prompts are kept, the same from one process to the
  // next where prompts are kept on disk.
  std::shared_ptr<const serve::KeyScopes> scopes() const;
  // NAME=PATH of each --adapter that has a name.
  std::vector<std::pair<std::string, std::string>> named_adapters() const;
  // The name of the base model: --name, or the last part of its path.
  std::string model_name() const;
};

}  // namespace hearth::cli
