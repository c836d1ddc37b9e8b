// The manifest of a cache, to JSON and from it.
#include <algorithm>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/data/cache/cache.h"
#include "hearth/data/cache/cache_impl.h"

namespace hearth::data {
namespace {

constexpr const char* kSchema = "hearth.cache/1";

// A manifest names files in its own folder and nowhere else.
void check_name(const std::string& name) {
  const bool plain = !name.empty() && name.size() < 100 && name[0] != '.' &&
                     std::all_of(
                         name.begin(), name.end(),
                         [](char c) {
                           return (c >= 'a' && c <= 'z') ||
                                  (c >= '0' && c <= '9') || c == '-' ||
                                  c == '.';
                         }
                     );
  if (!plain) throw FormatError("a shard's name must be plain, got " + name);
}

}  // namespace

Json shard_to_json(const ShardEntry& s) {
  return {
      {"file", s.file},
      {"source", s.source},
      {"split", s.split == Split::kTrain ? "train" : "valid"},
      {"documents", s.documents},
      {"tokens", s.tokens},
      {"checksum", fmt::format("{:016x}", s.checksum)}
  };
}

ShardEntry shard_from_json(const Json& json) {
  ShardEntry s;
  s.file = json.at("file").get<std::string>();
  check_name(s.file);
  s.source = json.at("source").get<std::size_t>();
  const auto split = json.at("split").get<std::string>();
  if (split != "train" && split != "valid") {
    throw FormatError("a split must be train or valid, got " + split);
  }
  s.split = split == "train" ? Split::kTrain : Split::kValid;
  s.documents = json.at("documents").get<std::uint64_t>();
  s.tokens = json.at("tokens").get<std::uint64_t>();
  s.checksum = std::stoull(json.at("checksum").get<std::string>(), nullptr, 16);
  return s;
}

Json CacheManifest::to_json() const {
  Json json = Json::object();
  json["schema"] = kSchema;
  json["key"] = key;
  json["tokenizer"] = tokenizer;
  json["chat_template"] = chat_template;
  json["tokenizer_path"] = tokenizer_path;
  json["template_path"] = template_path;
  json["vocabulary"] = vocabulary;
  json["mask"] = mask;
  json["sources"] = Json::array();
  for (const auto& s : sources) {
    json["sources"].push_back({{"name", s.name}, {"files", s.files}});
  }
  json["shards"] = Json::array();
  for (const auto& s : shards) json["shards"].push_back(shard_to_json(s));
  json["report"] = report.to_json();
  return json;
}

CacheManifest CacheManifest::from_json(
    const Json& json,
    const std::string& file
) {
  try {
    if (json.at("schema").get<std::string>() != kSchema) {
      throw FormatError(fmt::format("schema must be {}", kSchema));
    }
    CacheManifest m;
    m.key = json.at("key").get<std::string>();
    m.tokenizer = json.at("tokenizer").get<std::string>();
    m.chat_template = json.at("chat_template").get<std::string>();
    m.tokenizer_path = json.at("tokenizer_path").get<std::string>();
    m.template_path = json.at("template_path").get<std::string>();
    m.vocabulary = json.at("vocabulary").get<std::uint32_t>();
    m.mask = json.at("mask").get<std::string>();
    for (const auto& s : json.at("sources")) {
      m.sources.push_back(
          {s.at("name").get<std::string>(),
           s.at("files").get<std::vector<std::string>>()}
      );
    }
    for (const auto& s : json.at("shards")) {
      m.shards.push_back(shard_from_json(s));
      if (m.shards.back().source >= m.sources.size()) {
        throw FormatError("a shard must belong to a source");
      }
    }
    m.report = CacheReport::from_json(json.at("report"));
    return m;
  } catch (const FormatError& e) {
    throw FormatError::at(file, 0, e.what());
  } catch (const std::exception& e) {
    // The JSON library's and stoull's own words, on one line.
    std::string what = e.what();
    std::replace(what.begin(), what.end(), '\n', ' ');
    throw FormatError::at(file, 0, "not a token cache's manifest: " + what);
  }
}

}  // namespace hearth::data
