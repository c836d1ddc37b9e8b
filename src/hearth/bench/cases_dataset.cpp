// Reading data and making batches, each on one thread.
#include <chrono>
#include <filesystem>
#include <memory>

#include <unistd.h>

#include <fmt/format.h>

#include "hearth/base/atomic_file.h"
#include "hearth/base/clock.h"
#include "hearth/base/random.h"
#include "hearth/bench/cases.h"
#include "hearth/data/loader/loader.h"
#include "hearth/data/read/dataset_record.h"

namespace hearth::bench {
namespace {

namespace fs = std::filesystem;

// A cache of random tokens that goes away with its last user.
class RandomCache {
 public:
  RandomCache(std::uint64_t seed, std::uint64_t tokens)
      : folder_(
            fs::temp_directory_path() /
            fmt::format("hearth_bench_cache_{}_{}", ::getpid(), seed)
        ) {
    fs::create_directories(folder_);
    data::CacheManifest m;
    m.key = Hash128{}.hex();
    m.vocabulary = 50000;
    m.mask = "all";
    m.sources = {{"random", {}}};
    io::TokenShardWriter writer(
        (folder_ / "random.tok").string(), m.vocabulary, 0, {}
    );
    RandomStream random(RandomKey(seed).fold("bench.cache"));
    std::vector<std::int32_t> ids;
    while (writer.tokens() < tokens) {
      ids.resize(20 + random.below(600));
      for (auto& id : ids) id = static_cast<std::int32_t>(random.below(50000));
      writer.add(ids, {}, random.next_u64());
    }
    const auto info = writer.finish();
    m.shards = {
        {"random.tok", 0, data::Split::kTrain, info.documents, info.tokens,
         writer.checksum()}
    };
    write_file_atomically(
        (folder_ / data::kManifestName).string(), to_json_text(m.to_json())
    );
    cache_ = std::make_shared<data::TokenCache>(folder_.string());
  }
  ~RandomCache() { fs::remove_all(folder_); }
  std::shared_ptr<const data::TokenCache> cache() const { return cache_; }

 private:
  fs::path folder_;
  std::shared_ptr<const data::TokenCache> cache_;
};

BenchCase loader_case(
    const CaseContext& context,
    std::string name,
    data::Arrange arrange
) {
  constexpr int kBatches = 16;
  data::LoaderConfig config;
  config.arrange = arrange;
  config.tokens_per_batch = 16384;
  config.workers = 0;
  BenchCase c;
  c.name = std::move(name);
  c.unit = "tokens/s";
  c.work = static_cast<double>(config.tokens_per_batch) * kBatches;
  c.prepare = [config, seed = context.seed] {
    auto store = std::make_shared<RandomCache>(seed, std::uint64_t{8} << 20);
    auto loader = std::make_shared<data::Loader>(store->cache(), config);
    auto batch = std::make_shared<data::Batch>();
    return [store, loader, batch] {
      for (int i = 0; i < kBatches; ++i) loader->next(*batch);
    };
  };
  return c;
}

// A consumer that takes a million tokens a second, four batches ahead: the
// share it gets of that is one less its stall.
BenchCase demand_case(const CaseContext& context) {
  constexpr double kDemand = 1e6;
  constexpr int kBatches = 16;
  data::LoaderConfig config;
  config.tokens_per_batch = 16384;
  config.workers = 1;
  config.prefetch = 4;
  config.demand_tokens_per_second = kDemand;
  const double step = static_cast<double>(config.tokens_per_batch) / kDemand;
  BenchCase c;
  c.name = "loader: kept of a demand of 1M tokens/s";
  c.unit = "tokens/s";
  c.work = static_cast<double>(config.tokens_per_batch) * kBatches;
  c.peak = kDemand;
  c.prepare = [config, step, seed = context.seed] {
    auto store = std::make_shared<RandomCache>(seed, std::uint64_t{8} << 20);
    auto loader = std::make_shared<data::Loader>(store->cache(), config);
    auto batch = std::make_shared<data::Batch>();
    return [store, loader, batch, step] {
      for (int i = 0; i < kBatches; ++i) {
        loader->next(*batch);
        // Busy on its core, as a trainer is.
        const auto until = Clock::now() + std::chrono::duration<double>(step);
        while (Clock::now() < until) {
        }
      }
    };
  };
  return c;
}

std::vector<std::string> chat_lines(std::uint64_t seed) {
  RandomStream random(RandomKey(seed).fold("bench.jsonl"));
  std::vector<std::string> lines;
  for (int i = 0; i < 2000; ++i) {
    std::string text;
    for (std::uint64_t w = 0, n = 20 + random.below(200); w < n; ++w) {
      text += "word" + std::to_string(random.below(1000));
      text += random.below(12) == 0 ? "\\n" : " ";
    }
    lines.push_back(
        fmt::format(
            R"({{"id": {}, "meta": {{"source": "x", "score": [0.5, 1]}}, )"
            R"("text": "{}"}})",
            i, text
        )
    );
  }
  return lines;
}

BenchCase jsonl_case(const CaseContext& context) {
  auto lines =
      std::make_shared<std::vector<std::string>>(chat_lines(context.seed));
  BenchCase c;
  c.name = "jsonl: records of text";
  c.unit = "MB/s";
  for (const auto& line : *lines) c.work += static_cast<double>(line.size());
  c.prepare = [lines] {
    return [lines] {
      const data::ReadSettings settings;
      data::RecordParser parser(settings);
      data::Record record;
      for (const auto& line : *lines) {
        parser.parse(line, data::FileFormat::kJsonl, record);
      }
    };
  };
  if (!context.with_peers) return c;
  c.peer_name = "nlohmann json";
  c.prepare_peer = [lines] {
    return [lines] {
      for (const auto& line : *lines) {
        [[maybe_unused]] const Json record = Json::parse(line);
      }
    };
  };
  return c;
}

}  // namespace

std::vector<BenchCase> dataset_cases(const CaseContext& context) {
  std::vector<BenchCase> cases = tokenizer_cases(context);
  for (auto& c : std::vector<BenchCase>{
           jsonl_case(context),
           loader_case(
               context, "loader: packed 16 x 1024", data::Arrange::kPack
           ),
           loader_case(
               context, "loader: stream 16 x 1024", data::Arrange::kStream
           ),
           loader_case(context, "loader: padded buckets", data::Arrange::kPad),
           demand_case(context),
       }) {
    cases.push_back(std::move(c));
  }
  return cases;
}

}  // namespace hearth::bench
