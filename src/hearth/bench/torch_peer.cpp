#include "hearth/bench/torch_peer.h"

#include <filesystem>
#include <regex>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/base/progress.h"
#include "hearth/base/thread_pool.h"
#include "hearth/bench/python_peer.h"

namespace hearth::bench {
namespace {

constexpr const char* kScript = "tools/pytorch_peer.py";
constexpr const char* kSetUp =
    "./dev test --peers installs what tools/peers.txt lists, for development";

std::vector<std::string> command(
    const std::string& work,
    const TorchVariant& v
) {
  std::vector<std::string> words = {"env"};
  if (v.tuned) {
    // glibc keeps its memory instead of giving it back and asking again.
    words.insert(
        words.end(), {"MALLOC_MMAP_MAX_=0", "MALLOC_TRIM_THRESHOLD_=8589934592",
                      "MALLOC_TOP_PAD_=67108864"}
    );
  }
  words.insert(
      words.end(), {"sh", "tools/peers_python.sh", kScript, "--work", work,
                    "--precision", v.bf16 ? "bf16" : "fp32", "--threads",
                    std::to_string(shared_pool().size()), "--warm-up", "2"}
  );
  if (v.compile) words.emplace_back("--compile");
  return words;
}

}  // namespace

std::vector<TorchVariant> torch_variants(const std::string& regex) {
  std::regex wanted;
  try {
    wanted = std::regex(regex);
  } catch (const std::regex_error& e) {
    throw UsageError(
        fmt::format(
            "--peer-variants must be a regular expression, got '{}': {}", regex,
            e.what()
        )
    );
  }
  std::vector<TorchVariant> found;
  for (const bool bf16 : {false, true}) {
    for (const bool compile : {false, true}) {
      for (const bool tuned : {false, true}) {
        const auto name = fmt::format(
            "{}-{}-{}", bf16 ? "bf16" : "fp32", compile ? "compile" : "eager",
            tuned ? "tuned" : "plain"
        );
        if (std::regex_search(name, wanted)) {
          found.push_back({name, bf16, compile, tuned});
        }
      }
    }
  }
  if (found.empty()) {
    throw UsageError(
        fmt::format(
            "--peer-variants '{}' finds none of fp32|bf16-eager|compile-"
            "plain|tuned",
            regex
        )
    );
  }
  return found;
}

Timed torch_peer(const std::string& work, const TorchVariant& variant) {
  if (!std::filesystem::exists(kScript)) {
    throw Error(
        fmt::format("the rival's script {} is not here", kScript),
        "run hearth bench train --peer in the source tree"
    );
  }
  Progress progress(
      {.title = fmt::format("starting PyTorch {}", variant.name),
       .unit = "",
       .total = 0}
  );
  progress.update(0, variant.compile ? "compiling takes a minute" : "");
  std::shared_ptr<PythonPeer> peer =
      PythonPeer::start_program(command(work, variant));
  progress.finish();
  if (!peer) throw Error("PyTorch could not be started", kSetUp);
  const Json about = parse_json(peer->name(), "pytorch_peer.py");
  if (about.contains("absent")) {
    throw Error(
        fmt::format(
            "the rival cannot run: {}", about["absent"].get<std::string>()
        ),
        kSetUp
    );
  }
  auto peak = std::make_shared<double>(0);
  Timed timed([peer, peak] {
    const Json answer = parse_json(peer->ask("1"), "pytorch_peer.py");
    *peak = answer.at("peak_mib").get<double>();
  });
  timed.rest = kOpenMpRest;
  timed.after = [peer, peak, about, variant](Row& row) {
    row.peer_peak_mib = *peak;
    row.peer = fmt::format(
        "PyTorch {} {} ({})", about.at("torch").get<std::string>(),
        variant.name, about.value("isa", "isa not known")
    );
  };
  return timed;
}

}  // namespace hearth::bench
