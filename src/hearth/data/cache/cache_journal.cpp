#include "hearth/data/cache/cache_impl.h"
#include "hearth/data/cache/cache_journal_impl.h"

namespace hearth::data {

void Journal::next_source() {
  ++source;
  position = {};
  taken = 0;
  pairs = -1;
}

Json Journal::to_json() const {
  Json json = {
      {"key", key},
      {"source", source},
      {"file", position.file},
      {"offset", position.at.offset},
      {"line", position.at.line},
      {"taken", taken},
      {"pairs", pairs},
      {"shards", Json::array()},
      {"report", report.to_json()}
  };
  for (const auto& s : shards) json["shards"].push_back(shard_to_json(s));
  return json;
}

Journal Journal::from_json(const Json& json) {
  Journal j;
  j.key = json.at("key").get<std::string>();
  j.source = json.at("source").get<std::size_t>();
  j.position.file = json.at("file").get<std::size_t>();
  j.position.at.offset = json.at("offset").get<std::uint64_t>();
  j.position.at.line = json.at("line").get<std::uint64_t>();
  j.taken = json.at("taken").get<std::uint64_t>();
  j.pairs = json.at("pairs").get<int>();
  for (const auto& s : json.at("shards")) {
    j.shards.push_back(shard_from_json(s));
  }
  j.report = CacheReport::from_json(json.at("report"));
  return j;
}

}  // namespace hearth::data
