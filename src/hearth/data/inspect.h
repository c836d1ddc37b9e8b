#pragma once
// What a model is about to be trained on, for people: documents as coloured
// tokens, batches as they will be, and what does not fit together.
#include <memory>
#include <string>
#include <vector>

#include "hearth/base/json.h"
#include "hearth/data/cache/cache.h"
#include "hearth/data/loader/loader.h"

namespace hearth::data {

struct TokenView {
  std::int32_t id = 0;
  std::string text;  // as much of it as one token says; valid UTF-8
  bool trained = false;
};

struct DocumentView {
  std::string split, source;
  std::uint64_t document = 0, tokens = 0, trained = 0;
  std::vector<TokenView> shown;  // the first ones
};

struct BatchView {
  std::uint64_t step = 0;
  std::uint32_t rows = 0, length = 0;
  std::uint64_t tokens = 0, trained = 0;
  // Row-major, a letter a column group: '.' padding, 'a'.. untrained tokens of
  // the row's segments in turn, 'A'.. with loss.
  std::vector<std::string> map;
  std::vector<std::int32_t> ids, targets;  // as trained on, row by row
};

// Over many batches.
struct PackingView {
  std::uint64_t batches = 0, tokens = 0, padding = 0, trained = 0;
  std::uint64_t documents = 0, truncated = 0, split = 0, dropped = 0;
  std::uint64_t untrained = 0;
  double efficiency() const;
};

struct Inspection {
  CacheManifest manifest;
  std::string folder;
  std::vector<DocumentView> documents;
  std::vector<BatchView> batches;
  PackingView packing;
  OverlongReport overlong;    // of the whole split
  std::uint32_t longest = 0;  // row
  // What does not agree: a tokenizer or template that changed, text that does
  // not come back from its tokens.
  std::vector<std::string> drift;
};

struct InspectOptions {
  std::uint64_t first_document = 0;
  std::uint64_t documents = 3;
  std::uint64_t batches = 1;
  std::uint64_t measured_batches = 64;
  std::uint64_t tokens_shown = 400;
  Split split = Split::kTrain;
};

// The encoder is the one in use now; null shows ids only. `loader` says how
// batches would be made.
Inspection inspect_cache(
    std::shared_ptr<const TokenCache> cache,
    const ExampleEncoder* encoder,
    LoaderConfig loader,
    const InspectOptions& options
);

// Renders and tokenises the first records of the data, and returns a line for
// each kind of thing that does not survive the round trip.
std::vector<std::string> check_round_trip(
    const std::vector<DataSource>& sources,
    const ReadSettings& read,
    const ExampleEncoder& encoder,
    std::size_t records = 100
);

std::string inspection_to_text(const Inspection& inspection, bool color);
Json inspection_to_json(const Inspection& inspection);
// One page that needs nothing else. Everything from the data is escaped.
std::string inspection_to_html(const Inspection& inspection);

}  // namespace hearth::data
