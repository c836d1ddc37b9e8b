#include "hearth/bench/llama_peer.h"

#include <filesystem>
#include <sstream>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/base/thread_pool.h"
#include "hearth/bench/python_peer.h"
#include "hearth/kernels/table.h"

namespace hearth::bench {
namespace {

constexpr const char* kSetUp =
    "tools/build_llamacpp.sh builds it in the source tree, for development";

// Starts one of the drivers; what it says of itself comes with it.
struct Started {
  std::shared_ptr<PythonPeer> peer;
  Json about;
};
Started start(const char* driver, std::vector<std::string> arguments) {
  std::string program = std::string(".deps/llamacpp/") + driver;
  // Against a table of ours without tiles goes one of theirs without.
  const std::string plain = std::string(".deps/llamacpp/without-amx/") + driver;
  if (kernels::best().isa != std::string_view("amx") &&
      std::filesystem::exists(plain)) {
    program = plain;
  }
  if (!std::filesystem::exists(program)) {
    throw Error(fmt::format("the rival {} is not here", program), kSetUp);
  }
  arguments.insert(arguments.begin(), program);
  const std::shared_ptr<PythonPeer> peer = PythonPeer::start_program(arguments);
  if (!peer) throw Error("llama.cpp could not be started", kSetUp);
  Json about = parse_json(peer->name(), driver);
  if (about.contains("absent")) {
    throw Error(about["absent"].get<std::string>());
  }
  return {peer, std::move(about)};
}

void order(PythonPeer& peer, const std::string& line) {
  if (peer.ask(line) == "done") return;
  throw Error(fmt::format("[bench.llama_peer] '{}' must work", line));
}

// What "AVX512 = 1 | AVX512_BF16 = 1 | ..." has, in short.
std::string short_isa(const std::string& text) {
  std::string out;
  std::istringstream words(text);
  std::string name, value;
  for (std::string word; words >> word;) {
    if (word == "=") {
      words >> value;
      const bool vector = name.starts_with("AVX") || name.starts_with("AMX") ||
                          name.starts_with("NEON");
      if (value == "1" && vector) out += (out.empty() ? "" : " ") + name;
    } else {
      name = word;
    }
  }
  return out.empty() ? "isa not known" : out;
}

}  // namespace

Timed llama_peer(const std::string& model, const LlamaWork& work) {
  if (!model.ends_with(".gguf")) {
    throw Error("llama.cpp reads GGUF files alone, got " + model);
  }
  // Its fused attention is the faster one for prompts and short texts, the
  // plain one by far for long texts: each row has the better.
  constexpr int kLong = 1024;
  const char* attention = work.depth >= kLong ? "plain" : "flash";
  const auto [peer, about] = start(
      "llama_peer", {model, std::to_string(shared_pool().size()), attention}
  );
  if (work.depth > 0) {
    order(*peer, fmt::format("fill {} {}", work.depth, work.batch));
  }
  Timed timed;
  timed.rest = kOpenMpRest;
  if (work.prompt > 0) {
    timed.before = [peer = peer] { order(*peer, "clear"); };
    timed.run = [peer = peer, work] {
      order(*peer, fmt::format("prefill {}", work.prompt));
    };
  } else {
    timed.before = [peer = peer, work] {
      order(*peer, fmt::format("rewind {} {}", work.depth, work.batch));
    };
    timed.run = [peer = peer, work] {
      order(*peer, fmt::format("decode {} {}", work.steps, work.batch));
    };
  }
  timed.after = [about = about, attention](Row& row) {
    row.peer = fmt::format(
        "{} ({}, {} attention)", about.at("name").get<std::string>(),
        short_isa(about.at("isa").get<std::string>()), attention
    );
  };
  return timed;
}

Timed llama_product(const std::string& type, long rows, std::size_t copies) {
  const auto [peer, about] = start(
      "llama_product", {type, std::to_string(rows), std::to_string(copies),
                        std::to_string(shared_pool().size())}
  );
  Timed timed([peer = peer] { order(*peer, "run"); });
  timed.before = timed.run;  // so that its threads are awake
  timed.rest = kOpenMpRest;
  timed.after = [name = about.at("name").get<std::string>()](Row& row) {
    row.peer = name;
  };
  return timed;
}

}  // namespace hearth::bench
