// A loader's position as JSON, and what it must agree with.
#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/data/loader_state_impl.h"

namespace hearth::data {
namespace {

constexpr const char* kSchema = "hearth.loader/1";

}  // namespace

std::string loader_fingerprint(const TokenCache& cache, const LoaderConfig& c) {
  ContentHash hash;
  hash.field(cache.manifest().key);
  hash.field(static_cast<std::uint64_t>(c.split))
      .field(static_cast<std::uint64_t>(c.arrange))
      .field(static_cast<std::uint64_t>(c.overlong));
  hash.field(c.shapes.size());
  for (const auto& s : c.shapes) {
    hash.field(s.length);
    hash.bytes(&s.probability, sizeof s.probability);
  }
  hash.field(c.guarantee).field(c.tokens_per_batch).field(c.window);
  for (const auto b : c.buckets) hash.field(b);
  for (const auto w : c.weights) hash.bytes(&w, sizeof w);
  hash.field(std::uint64_t{c.cross_documents})
      .field(std::uint64_t{c.shuffle})
      .field(c.seed)
      .field(std::uint64_t{c.drop_last});
  return hash.digest().hex();
}

Json position_to_json(const PlanPosition& p, const std::string& fingerprint) {
  Json json = {
      {"schema", kSchema},
      {"fingerprint", fingerprint},
      {"step", p.step},
      {"epoch", p.epoch},
      {"index", p.index},
      {"offset", p.offset},
      {"emitted", p.emitted},
      {"truncated", p.counts.truncated},
      {"split", p.counts.split},
      {"dropped", p.counts.dropped},
      {"untrained", p.counts.untrained},
      {"carried", Json::array()}
  };
  for (const auto& c : p.carried) {
    json["carried"].push_back({c.source, c.document, c.begin, c.length});
  }
  return json;
}

PlanPosition position_from_json(
    const Json& json,
    const std::string& fingerprint,
    const TokenCache& cache,
    const LoaderConfig& config
) {
  PlanPosition p;
  try {
    if (json.at("schema").get<std::string>() != kSchema ||
        json.at("fingerprint").get<std::string>() != fingerprint) {
      throw UsageError(
          "[data.loader] the saved position is of other data or another config"
      );
    }
    p.step = json.at("step").get<std::uint64_t>();
    p.epoch = json.at("epoch").get<std::uint64_t>();
    p.index = json.at("index").get<std::uint64_t>();
    p.offset = json.at("offset").get<std::uint32_t>();
    p.emitted = json.at("emitted").get<std::uint64_t>();
    p.counts.truncated = json.at("truncated").get<std::uint64_t>();
    p.counts.split = json.at("split").get<std::uint64_t>();
    p.counts.dropped = json.at("dropped").get<std::uint64_t>();
    p.counts.untrained = json.at("untrained").get<std::uint64_t>();
    const auto& sets = cache.sets(config.split);
    for (const auto& c : json.at("carried")) {
      const DocumentPart piece{
          c.at(0).get<std::uint32_t>(), c.at(2).get<std::uint32_t>(),
          c.at(3).get<std::uint32_t>(), c.at(1).get<std::uint64_t>()
      };
      if (piece.source >= sets.size() || piece.length == 0 ||
          piece.begin + std::uint64_t{piece.length} >=
              sets[piece.source].length(piece.document)) {
        throw UsageError("[data.loader] the saved position is broken");
      }
      p.carried.push_back(piece);
    }
  } catch (const Json::exception& e) {
    throw FormatError(
        fmt::format("[data.loader] not a loader's position: {}", e.what())
    );
  }
  return p;
}

}  // namespace hearth::data
