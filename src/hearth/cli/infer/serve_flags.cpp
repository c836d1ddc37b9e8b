#include "hearth/cli/infer/serve_flags.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/base/units.h"
#include "hearth/infer/pooling_file.h"
#include "hearth/serve/http/listen_socket.h"

namespace hearth::cli {
namespace {

constexpr std::int64_t kLongest = 30LL * 24 * 3600;  // seconds

int checked(
    std::int64_t value,
    const char* flag,
    std::int64_t low,
    std::int64_t high
) {
  if (value >= low && value <= high) return static_cast<int>(value);
  throw UsageError(
      fmt::format("{} must be from {} to {}, got {}", flag, low, high, value)
  );
}

void declare_examples(Args& args) {
  args.example(
      "hearth serve model/",
      "the page at http://127.0.0.1:8080/ and the API under /v1, for this "
      "machine only"
  );
  args.example(
      "hearth serve model.gguf --port 9000 --adapter law=runs/law/adapter",
      "two models: 'model' and 'law'"
  );
  args.example(
      "hearth serve model/ --host 0.0.0.0 --api-key-file keys.txt",
      "for the network, with keys"
  );
  args.example(
      "hearth serve model/ --api-key-file keys.txt --per-key 8",
      "each key may have eight answers written or waiting at a time"
  );
}

}  // namespace

void ServeFlags::declare(Args& args) {
  model.declare(args, ModelFlags::Adapter::many);
  args.option("--port", port, "TCP port; 0 takes a free one");
  args.option(
      "--host", host,
      "Address to listen on; anything but loopback needs keys or --no-auth"
  );
  args.option(
      "--api-key-file", key_files,
      "File with keys, one a line, that requests must bring; may be repeated"
  );
  args.flag("--no-auth", no_auth, "Open to the network without keys");
  args.option(
      "--cors", origins,
      "Origin whose pages may ask, such as https://app.example; may be repeated"
  );
  args.option(
      "--allow-host", host_names,
      "Name in the Host header that is this server's, such as that of a proxy "
      "in front of it; may be repeated"
  );
  args.option(
      "--name", name, "What the model is called; default: its path's end"
  );
  args.option(
      "--adapter", adapters,
      "FOLDER: a PEFT adapter to put on the model; NAME=FOLDER: one served as "
      "a model of that name, may be repeated"
  );
  args.option(
      "--chat-template", chat_template, "Jinja file instead of the model's own"
  );
  args.choice(
      "--special-text", special_text, {"plain", "refuse", "allow"},
      "The text of a special token in a message is text, an error, or the token"
  );
  args.choice(
      "--pooling", pooling, {"auto", "mean", "last"},
      "An embedding is the mean of its tokens' states or the last one's; auto: "
      "what the model's 1_Pooling says, else the mean"
  );
  args.flag(
      "--strict-requests", strict_requests,
      "Refuse what changes nothing here, or would be put another way"
  );
  args.option("--max-batch", max_batch, "Answers written at the same time");
  args.option("--queue", max_queue, "Requests that may wait; more get 429");
  args.option(
      "--per-key", per_key,
      "Texts that one key, or one address where there are no keys, may have "
      "under way; 0: any number; default: half of --max-batch and --queue "
      "where there are several keys"
  );
  args.option("--max-tokens", max_tokens, "Tokens an answer may have at most");
  args.option("--max-body", max_body, "Bytes a request may have");
  args.option("--max-connections", max_connections, "Clients at the same time");
  args.option("--timeout", timeout_s, "Seconds an answer may take");
  args.option("--drain", drain_s, "Seconds that answers get after SIGTERM");
  args.choice(
      "--kv", kv, {"auto", "bf16", "fp16", "fp32", "int8"},
      "How keys and values are kept; auto: as it computes"
  );
  args.option(
      "--kv-memory", kv_memory,
      "Bytes for keys and values, such as 2GiB; default: eight contexts, at "
      "most a quarter of free memory"
  );
  args.choice(
      "--products", products, {"auto", "int8", "exact"},
      "Quantised weights are multiplied by int8 activations, or as they are; "
      "auto: prompts as they are, each step in int8"
  );
  args.flag(
      "--batch-invariant", batch_invariant,
      "Same seed, same text, whatever else is being answered; slower"
  );
  args.flag(
      "--no-prefix-cache", no_prefix_cache,
      "Forget each prompt after its answer"
  );
  ahead.declare(args);
  declare_examples(args);
}

serve::AccessRules ServeFlags::access() const {
  serve::AccessRules out;
  const std::string address = serve::address_of_host(host);
  const bool local = serve::is_loopback(address);
  if (!key_files.empty()) out.keys = serve::ApiKeys::load(key_files);
  if (no_auth && !key_files.empty()) {
    throw UsageError("--no-auth and --api-key-file exclude each other");
  }
  if (!local && out.keys.empty() && !no_auth) {
    throw UsageError(
        fmt::format(
            "--host {} lets other machines ask, so keys must be required", host
        ),
        "--api-key-file FILE requires them; --no-auth says that everybody may"
    );
  }
  out.hosts = local              ? serve::HostRule::loopback
              : out.keys.empty() ? serve::HostRule::addresses
                                 : serve::HostRule::any;
  out.host_names = host_names;
  if (!local) {
    for (const auto& own : serve::machine_names()) {
      out.host_names.push_back(own);
    }
  }
  for (const std::string& origin : origins) {
    const auto scheme = origin.find("://");
    const bool fits = scheme != origin.npos && scheme > 0 &&
                      origin.find('/', scheme + 3) == origin.npos &&
                      origin.size() > scheme + 3;
    if (!fits) {
      throw UsageError(
          fmt::format(
              "--cors must be an origin such as https://app.example, got '{}'",
              origin
          )
      );
    }
    out.cors_origins.push_back(origin);
  }
  return out;
}

serve::HttpServerOptions ServeFlags::http() const {
  // What the reader of requests takes at most.
  constexpr std::size_t kLeastBody = 1024, kMostBody = std::size_t{64} << 20;
  serve::HttpServerOptions out;
  out.host = serve::address_of_host(host);
  out.port = checked(port, "--port", 0, 65535);
  out.limits.max_body = parse_bytes(max_body, "--max-body");
  if (out.limits.max_body < kLeastBody || out.limits.max_body > kMostBody) {
    throw UsageError(
        fmt::format("--max-body must be from 1KiB to 64MiB, got '{}'", max_body)
    );
  }
  out.max_bodies = std::max(out.max_bodies, 4 * out.limits.max_body);
  out.max_connections = static_cast<std::size_t>(
      checked(max_connections, "--max-connections", 1, 60'000)
  );
  return out;
}

serve::SpecialText ServeFlags::special() const {
  return special_text == "refuse"  ? serve::SpecialText::refuse
         : special_text == "allow" ? serve::SpecialText::allow
                                   : serve::SpecialText::plain;
}

infer::Pooling ServeFlags::embedding(const std::string& text_path) const {
  return pooling == "mean"   ? infer::Pooling::mean
         : pooling == "last" ? infer::Pooling::last
                             : infer::pooling_of_model(text_path);
}

std::chrono::seconds ServeFlags::timeout() const {
  return std::chrono::seconds(checked(timeout_s, "--timeout", 1, kLongest));
}

std::chrono::seconds ServeFlags::drain() const {
  return std::chrono::seconds(checked(drain_s, "--drain", 0, kLongest));
}

std::size_t ServeFlags::texts_per_key(const serve::ApiKeys& keys) const {
  if (per_key != -1) {
    return static_cast<std::size_t>(
        checked(per_key, "--per-key", 0, 1'000'000)
    );
  }
  // With a single key there is nobody to keep room for.
  if (keys.size() < 2) return 0;
  return static_cast<std::size_t>(
      std::max<std::int64_t>((max_batch + max_queue) / 2, 1)
  );
}

std::shared_ptr<const serve::KeyScopes> ServeFlags::scopes() const {
  if (ahead.prefix_folder.empty()) return std::make_shared<serve::KeyScopes>();
  return std::make_shared<serve::KeyScopes>(ahead.prefix_folder);
}

infer::EngineOptions ServeFlags::engine() const {
  infer::EngineOptions out;
  out.max_batch = checked(max_batch, "--max-batch", 1, 1024);
  out.max_queue =
      static_cast<std::size_t>(checked(max_queue, "--queue", 0, 1'000'000));
  out.prefix_cache = !no_prefix_cache;
  ahead.apply(out);
  if (no_prefix_cache && !ahead.prefix_folder.empty()) {
    throw UsageError("give one of --prefix-dir and --no-prefix-cache");
  }
  out.batch_invariant = batch_invariant;
  return out;
}

infer::RunnerOptions ServeFlags::runner() const {
  infer::RunnerOptions out;
  out.kv = kv_type(kv);
  out.products = quant_products(products);
  if (!kv_memory.empty()) {
    out.kv_budget_bytes = parse_bytes(kv_memory, "--kv-memory");
  }
  for (const auto& [id, path] : named_adapters()) {
    out.adapters.push_back(path);
  }
  out.batch_invariant = batch_invariant;
  return out;
}

serve::RequestLimits ServeFlags::limits() const {
  serve::RequestLimits out;
  out.max_tokens = checked(max_tokens, "--max-tokens", 1, 1 << 24);
  out.strict = strict_requests;
  return out;
}

void ServeFlags::settle() {
  std::erase_if(adapters, [&](const std::string& word) {
    // A folder's own name may hold the sign.
    if (word.find('=') != word.npos && !std::filesystem::exists(word)) {
      return false;
    }
    if (!model.adapter.empty()) {
      throw UsageError(
          fmt::format(
              "one adapter can be the model's own, got '{}' and '{}'",
              model.adapter, word
          ),
          "--adapter NAME=FOLDER serves each as a model of its own"
      );
    }
    model.adapter = word;
    return true;
  });
  if (!model.adapter.empty() && !adapters.empty()) {
    throw UsageError(
        "--adapter FOLDER and --adapter NAME=FOLDER exclude each other",
        "an adapter with a name goes over the model alone"
    );
  }
}

std::vector<std::pair<std::string, std::string>> ServeFlags::
    named_adapters() const {
  std::vector<std::pair<std::string, std::string>> out;
  std::vector<std::string> names = {model_name()};
  for (const std::string& word : adapters) {
    const auto equals = word.find('=');
    if (equals == 0 || equals + 1 == word.size()) {
      throw UsageError(
          fmt::format("--adapter must be FOLDER or NAME=FOLDER, got '{}'", word)
      );
    }
    const std::string id = word.substr(0, equals);
    if (std::ranges::find(names, id) != names.end()) {
      throw UsageError(fmt::format("two models are called '{}'", id));
    }
    names.push_back(id);
    out.emplace_back(id, word.substr(equals + 1));
  }
  return out;
}

std::string ServeFlags::model_name() const {
  if (!name.empty()) return name;
  std::string path = model.model;
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  const std::filesystem::path last = std::filesystem::path(path).filename();
  const std::string text =
      last.extension() == ".gguf" ? last.stem().string() : last.string();
  return text.empty() ? "model" : text;
}

}  // namespace hearth::cli
