#include "hearth/bench/llama_peer.h"

#include <filesystem>
#include <sstream>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/base/thread_pool.h"
#include "hearth/bench/python_peer.h"

namespace hearth::bench {
namespace {

constexpr const char* kProgram = ".deps/llamacpp/llama_peer";
constexpr const char* kSetUp =
    "tools/build_llamacpp.sh builds it in the source tree, for development";

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
  if (!std::filesystem::exists(kProgram)) {
    throw Error(fmt::format("the rival {} is not here", kProgram), kSetUp);
  }
  if (!model.ends_with(".gguf")) {
    throw Error("llama.cpp reads GGUF files alone, got " + model);
  }
  // Its fused attention is the faster one for prompts and short texts, the
  // plain one by far for long texts: each row has the better.
  constexpr int kLong = 1024;
  const char* attention = work.depth >= kLong ? "plain" : "flash";
  const std::shared_ptr<PythonPeer> peer = PythonPeer::start_program(
      {kProgram, model, std::to_string(shared_pool().size()), attention}
  );
  if (!peer) throw Error("llama.cpp could not be started", kSetUp);
  const Json about = parse_json(peer->name(), "llama_peer");
  if (about.contains("absent")) {
    throw Error(about["absent"].get<std::string>());
  }
  if (work.depth > 0) {
    order(*peer, fmt::format("fill {} {}", work.depth, work.batch));
  }
  Timed timed;
  if (work.prompt > 0) {
    timed.before = [peer] { order(*peer, "clear"); };
    timed.run = [peer, work] {
      order(*peer, fmt::format("prefill {}", work.prompt));
    };
  } else {
    timed.before = [peer, work] {
      order(*peer, fmt::format("rewind {} {}", work.depth, work.batch));
    };
    timed.run = [peer, work] {
      order(*peer, fmt::format("decode {} {}", work.steps, work.batch));
    };
  }
  timed.after = [about, attention](Row& row) {
    row.peer = fmt::format(
        "{} ({}, {} attention)", about.at("name").get<std::string>(),
        short_isa(about.at("isa").get<std::string>()), attention
    );
  };
  return timed;
}

}  // namespace hearth::bench
