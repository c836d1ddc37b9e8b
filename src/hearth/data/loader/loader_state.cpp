// A loader's position as JSON, and what it must agree with.
#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/data/loader/loader_state_impl.h"

namespace hearth::data {
namespace {

constexpr const char* kSchema = "hearth.loader/2";

// How each part is called where people set it.
constexpr std::pair<const char*, const char*> kWords[] = {
    {"data", "the documents, as the tokenizer made them"},
    {"split", "the split"},
    {"arrange", "data.arrange"},
    {"overlong", "data.overlong"},
    {"lengths", "the lengths of rows"},
    {"shares", "the shares of the lengths"},
    {"guarantee", "train.shape_guarantee"},
    {"tokens_per_batch", "the tokens of an update"},
    {"window", "data.window"},
    {"buckets", "the lengths of padded rows"},
    {"weights", "the weights of data.mix"},
    {"cross_documents", "rows across documents"},
    {"shuffle", "data.shuffle"},
    {"seed", "run.seed"},
    {"drop_last", "whether a last batch is left out"},
};

[[noreturn]] void refuse(const std::string& what) {
  throw UsageError("[data.loader] the saved position is " + what);
}

void check_parts(const Json& saved, const Json& own) {
  for (const auto& [key, words] : kWords) {
    const Json& then = saved.at(key);
    if (then == own.at(key)) continue;
    const bool shown = std::string_view(key) != "data";
    refuse(
        fmt::format(
            "of another loader: {} must be the same{}", words,
            shown ? fmt::format(
                        ", was {} and is {}", to_json_line(then),
                        to_json_line(own.at(key))
                    )
                  : std::string(", and are others")
        )
    );
  }
}

}  // namespace

Json loader_parts(const TokenCache& cache, const LoaderConfig& c) {
  Json lengths = Json::array(), shares = Json::array();
  for (const auto& s : c.shapes) {
    lengths.push_back(s.length);
    shares.push_back(s.probability);
  }
  constexpr const char* kArrange[] = {"stream", "pad", "pack"};
  constexpr const char* kOverlong[] = {"auto", "split", "truncate", "drop"};
  return {
      {"data", cache.manifest().key},
      {"split", c.split == Split::kTrain ? "train" : "valid"},
      {"arrange", kArrange[static_cast<std::size_t>(c.arrange)]},
      {"overlong", kOverlong[static_cast<std::size_t>(c.overlong)]},
      {"lengths", lengths},
      {"shares", shares},
      {"guarantee", c.guarantee},
      {"tokens_per_batch", c.tokens_per_batch},
      {"window", c.window},
      {"buckets", c.buckets},
      {"weights", c.weights},
      {"cross_documents", c.cross_documents},
      {"shuffle", c.shuffle},
      {"seed", c.seed},
      {"drop_last", c.drop_last}
  };
}

Json position_to_json(
    const PlanPosition& p,
    const Json& parts,
    const LoaderConfig& config
) {
  Json json = {
      {"schema", kSchema},
      {"of", parts},
      {"epochs", config.epochs},
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
    const Json& parts,
    const TokenCache& cache,
    const LoaderConfig& config
) {
  PlanPosition p;
  try {
    if (json.at("schema").get<std::string>() != kSchema) {
      refuse("of another version of hearth");
    }
    check_parts(json.at("of"), parts);
    p.step = json.at("step").get<std::uint64_t>();
    p.epoch = json.at("epoch").get<std::uint64_t>();
    p.index = json.at("index").get<std::uint64_t>();
    p.offset = json.at("offset").get<std::uint32_t>();
    p.emitted = json.at("emitted").get<std::uint64_t>();
    p.counts.truncated = json.at("truncated").get<std::uint64_t>();
    p.counts.split = json.at("split").get<std::uint64_t>();
    p.counts.dropped = json.at("dropped").get<std::uint64_t>();
    p.counts.untrained = json.at("untrained").get<std::uint64_t>();
    // A window is arranged by what is to come, and that is other documents.
    const auto epochs = json.at("epochs").get<std::uint64_t>();
    if (epochs != config.epochs && p.emitted > 0) {
      refuse(
          fmt::format(
              "inside a window of documents that was arranged for {} epochs "
              "(0: "
              "endless), got {}: they may change when the run is through",
              epochs, config.epochs
          )
      );
    }
    const auto& sets = cache.sets(config.split);
    for (const auto& c : json.at("carried")) {
      const DocumentPart piece{
          c.at(0).get<std::uint32_t>(), c.at(2).get<std::uint32_t>(),
          c.at(3).get<std::uint32_t>(), c.at(1).get<std::uint64_t>()
      };
      if (piece.source >= sets.size() || piece.length == 0 ||
          piece.begin + std::uint64_t{piece.length} >=
              sets[piece.source].length(piece.document)) {
        refuse("broken");
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
