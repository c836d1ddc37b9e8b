// Prompts and decoding of whole models, by the runner that serves them, against
// llama.cpp on the same files. The share of peak of decoding is that of the
// bytes it must read, weights once a step and keys and values, at the measured
// read bandwidth; a prompt's is by its arithmetic, two operations a weight.
#include <filesystem>
#include <numeric>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/base/random.h"
#include "hearth/bench/cases.h"
#include "hearth/bench/llama_peer.h"
#include "hearth/infer/engine/make_runner.h"
#include "hearth/models/load.h"

namespace hearth::bench {
namespace {

namespace fs = std::filesystem;

struct Work {
  const char* name;
  int prompt;  // tokens of a timed prompt; 0: decoding
  int batch, depth;
  infer::KvType kv = infer::KvType::automatic;
  bool on_gpu = false;  // alone
};
constexpr Work kWorks[] = {
    {"prefill 512", 512, 1, 0},
    {"decode 1", 0, 1, 0},
    {"decode 8", 0, 8, 0},
    {"decode 1 at 4k", 0, 1, 4096},
    {"decode 1 at 4k, int8 keys", 0, 1, 4096, infer::KvType::int8},
    {"decode 1 at 512", 0, 1, 512, infer::KvType::automatic, true},
    {"decode 8 at 512", 0, 8, 512, infer::KvType::automatic, true},
    {"decode 64 at 512", 0, 64, 512, infer::KvType::automatic, true},
    {"decode 1 at 4000", 0, 1, 4000, infer::KvType::automatic, true},
};
constexpr int kSteps = 32;  // of a timed run of decoding

// A model and its runner, kept while cases of the same file follow.
struct Loaded {
  std::string path;
  models::LoadedModel model;
  infer::KvType kv = infer::KvType::automatic;
  std::unique_ptr<infer::Runner> runner;
  double base_rate = 0;  // of decoding one sequence from nothing

  explicit Loaded(const std::string& file)
      : path(file), model(models::load_model(file)) {}
  void keep_as(infer::KvType type) {
    if (runner && kv == type) return;
    runner.reset();
    kv = type;
    runner = infer::make_runner(model, {.kv = type});
  }
  // Parameters that a token is multiplied with.
  double active_parameters() const {
    const auto& decoder = *model.decoder;
    const auto all = static_cast<double>(decoder.parameters().count());
    const auto table = static_cast<double>(decoder.embedding().elements());
    return decoder.config().tie ? all : all - table;
  }
  std::size_t weight_bytes() const {
    std::size_t bytes = 0;
    const auto& decoder = *model.decoder;
    for (const nn::Weight* p : decoder.parameters().all()) {
      const bool gathered = p == &decoder.embedding() && !decoder.config().tie;
      if (!p->matrix || gathered) continue;
      bytes += p->quantized() ? p->quantized()->nbytes()
               : p->packed()  ? p->packed()->bytes()
                              : p->value().nbytes();
    }
    return bytes;
  }
};

using Shelf = std::shared_ptr<std::shared_ptr<Loaded>>;

std::shared_ptr<Loaded> take(
    const Shelf& shelf,
    const std::string& path,
    infer::KvType kv
) {
  if (!*shelf || (*shelf)->path != path) {
    shelf->reset();
    *shelf = std::make_shared<Loaded>(path);
  }
  (*shelf)->keep_as(kv);
  return *shelf;
}

class Decoding {
 public:
  Decoding(std::shared_ptr<Loaded> loaded, const Work& work, std::uint64_t seed)
      : loaded_(std::move(loaded)), work_(work) {
    RandomStream rng{RandomKey(seed)};
    infer::Runner& runner = *loaded_->runner;
    const int tokens = std::max({work.prompt, work.depth, kSteps * work.batch});
    const auto vocab = static_cast<std::uint64_t>(runner.vocabulary());
    for (int i = 0; i < tokens; ++i) {
      ids_.push_back(static_cast<std::int32_t>(rng.below(vocab)));
    }
    for (int i = 0; i < work.batch; ++i) sequences_.push_back(runner.open());
    const std::span<const std::int32_t> all(ids_);
    for (const auto id : sequences_) {
      if (work.depth == 0) continue;
      runner.step(
          {{{id, all.first(static_cast<std::size_t>(work.depth)),
             infer::LogitsOf::none}}}
      );
    }
  }
  ~Decoding() {
    for (const auto id : sequences_) loaded_->runner->close(id);
  }
  Decoding(const Decoding&) = delete;
  Decoding& operator=(const Decoding&) = delete;

  void rewind() {
    for (const auto id : sequences_) {
      loaded_->runner->truncate(id, work_.depth);
    }
  }
  void operator()() {
    infer::Runner& runner = *loaded_->runner;
    const std::span<const std::int32_t> all(ids_);
    if (work_.prompt > 0) {
      runner.step(
          {{{sequences_[0], all.first(static_cast<std::size_t>(work_.prompt)),
             infer::LogitsOf::last}}}
      );
      return;
    }
    if (runner.chooses()) return ahead(runner);
    std::vector<infer::RunnerPart> parts(sequences_.size());
    for (std::size_t t = 0; t < kSteps; ++t) {
      for (std::size_t s = 0; s < parts.size(); ++s) {
        parts[s] = {
            sequences_[s], all.subspan(t * parts.size() + s, 1),
            infer::LogitsOf::last
        };
      }
      runner.step(parts);
    }
  }
  // As an engine does where the runner chooses: a step is sent before the
  // tokens of the last are read.
  void ahead(infer::Runner& runner) {
    std::vector<infer::DrawnRow> rows;
    for (std::size_t s = 0; s < sequences_.size(); ++s) {
      rows.push_back({sequences_[s], ids_[s], {}});
    }
    for (int t = 0; t < kSteps; ++t) {
      runner.send(rows);
      if (t > 0) runner.receive();
      for (auto& row : rows) row.id.reset();
    }
    runner.receive();
  }
  // Bytes of a step, half of a run's new keys and values among them.
  double step_bytes() const {
    const auto pool = loaded_->runner->pool();
    const double token =
        static_cast<double>(pool.page_bytes) / pool.page_tokens;
    const double keys = work_.depth + kSteps / 2.0;
    return static_cast<double>(loaded_->weight_bytes()) +
           work_.batch * keys * token;
  }

 private:
  std::shared_ptr<Loaded> loaded_;
  Work work_;
  std::vector<std::int32_t> ids_;
  std::vector<infer::SequenceId> sequences_;
};

// The rate at the processor's peak; 0 where that is not known, or something
// else does the work.
double best_rate(
    const CaseContext& context,
    const Work& work,
    const Loaded& loaded,
    const Decoding& decoding
) {
  if (!ops::on_cpu({})) return 0;
  if (work.prompt > 0) {
    return context.gops("bf16") * 1e9 / (2 * loaded.active_parameters());
  }
  return context.read_gb_s() * 1e9 * work.batch / decoding.step_bytes();
}

BenchCase case_of(
    const std::string& path,
    const Work& work,
    const CaseContext& context,
    const Shelf& shelf
) {
  BenchCase c;
  c.name = fmt::format("{} {}", fs::path(path).stem().string(), work.name);
  c.work = work.prompt > 0 ? work.prompt : double(kSteps) * work.batch;
  c.unit = "tokens/s";
  c.isa = device_isa();
  c.repeats = 5;
  c.prepare = [=]() -> Timed {
    auto loaded = take(shelf, path, work.kv);
    auto run = std::make_shared<Decoding>(loaded, work, context.seed);
    Timed timed([run] { (*run)(); }, [run] { run->rewind(); });
    timed.after = [=](Row& row) {
      const double peak = best_rate(context, work, *loaded, *run);
      if (peak > 0) {
        row.share_of_peak = row.rate / peak;
        row.best_share_of_peak = row.best_rate / peak;
      }
      if (work.prompt > 0) return;
      if (work.batch == 1 && work.depth == 0) loaded->base_rate = row.best_rate;
      if (loaded->base_rate > 0) {
        row.of_one = row.best_rate / loaded->base_rate;
      }
    };
    return timed;
  };
  if (!context.with_peers) return c;
  c.peer_name = "llama.cpp";
  c.prepare_peer = [path, work] {
    return llama_peer(
        path,
        {work.prompt, work.prompt > 0 ? 0 : kSteps, work.batch, work.depth}
    );
  };
  return c;
}

}  // namespace

static std::vector<std::string> bench_models() {
  const fs::path folder = ".deps/bench";
  std::vector<std::string> found;
  for (const char* name : {"smollm2", "qwen05"}) {
    for (const char* type : {"bf16", "q8_0", "q4_0"}) {
      const auto path = folder / fmt::format("{}-{}.gguf", name, type);
      if (fs::exists(path)) found.push_back(path.string());
    }
  }
  return found;
}

std::vector<BenchCase> infer_cases(const CaseContext& context) {
  const auto shelf = std::make_shared<std::shared_ptr<Loaded>>();
  std::vector<BenchCase> cases;
  const auto paths = context.models.empty() ? bench_models() : context.models;
  for (const auto& path : paths) {
    for (const Work& work : kWorks) {
      if (work.on_gpu && ops::on_cpu({})) continue;
      cases.push_back(case_of(path, work, context, shelf));
    }
  }
  return cases;
}

}  // namespace hearth::bench
