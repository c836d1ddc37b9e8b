#include "hearth/data/inspect.h"

#include <algorithm>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/data/read/dataset_reader.h"
#include "hearth/text/tokenizer/utf8.h"

namespace hearth::data {
namespace {

constexpr std::size_t kMapWidth = 64;
constexpr std::size_t kMapRows = 32;

DocumentView view_document(
    const TokenCache& cache,
    const ExampleEncoder* encoder,
    Split split,
    std::size_t source,
    std::uint64_t document,
    std::uint64_t most
) {
  const auto& set = cache.sets(split)[source];
  const auto place = set.place(document);
  DocumentView view;
  view.split = split == Split::kTrain ? "train" : "valid";
  view.source = cache.manifest().sources[source].name;
  view.document = document;
  view.tokens = set.length(document);
  std::vector<std::int32_t> ids(std::min(view.tokens, most));
  place.shard->read(place.index, 0, ids);
  std::vector<char> trained(view.tokens, !place.shard->has_spans());
  for (const auto& span : place.shard->spans(place.index)) {
    std::fill(trained.begin() + span.begin, trained.begin() + span.end, 1);
  }
  view.trained =
      static_cast<std::uint64_t>(std::count(trained.begin(), trained.end(), 1));
  for (std::size_t i = 0; i < ids.size(); ++i) {
    std::string text = encoder ? encoder->text().token_text(ids[i])
                               : fmt::format("{} ", ids[i]);
    view.shown.push_back({ids[i], text::repair_utf8(text), trained[i] != 0});
  }
  return view;
}

// A row as at most kMapWidth letters; each stands for the cell in its middle.
std::string map_row(const Batch& b, std::uint32_t row) {
  const std::size_t width = std::min<std::size_t>(kMapWidth, b.length);
  std::string out;
  for (std::size_t i = 0; i < width; ++i) {
    const std::size_t column = (2 * i + 1) * b.length / (2 * width);
    const std::size_t at = std::size_t{row} * b.length + column;
    const int segment = b.segments[at];
    const char first = b.weights[at] > 0 ? 'A' : 'a';
    out += segment == 0 ? '.' : static_cast<char>(first + (segment - 1) % 26);
  }
  return out;
}

void view_batches(
    std::shared_ptr<const TokenCache> cache,
    LoaderConfig config,
    const InspectOptions& options,
    Inspection& out
) {
  config.workers = 0;
  config.epochs = 1;
  Loader loader(std::move(cache), config);
  Batch b;
  const auto wanted =
      std::max<std::uint64_t>(options.measured_batches, options.batches);
  while (out.packing.batches < wanted && loader.next(b)) {
    ++out.packing.batches;
    out.packing.documents += b.samples.size();
    if (out.batches.size() >= options.batches) continue;
    BatchView view{b.step,    b.rows, b.length, b.tokens,
                   b.trained, {},     b.ids,    b.targets};
    for (std::uint32_t r = 0; r < std::min<std::size_t>(b.rows, kMapRows);
         ++r) {
      view.map.push_back(map_row(b, r));
    }
    out.batches.push_back(std::move(view));
  }
  const LoaderStats s = loader.stats();
  out.packing.tokens = s.tokens;
  out.packing.padding = s.padding;
  out.packing.trained = s.trained;
  out.packing.truncated = s.truncated;
  out.packing.split = s.split;
  out.packing.dropped = s.dropped;
  out.packing.untrained = s.untrained;
}

void find_drift(
    const CacheManifest& m,
    const ExampleEncoder* encoder,
    std::vector<std::string>& drift
) {
  if (!encoder) {
    drift.push_back("no tokenizer was given: tokens are shown as numbers");
    return;
  }
  if (encoder->text().hash().hex() != m.tokenizer) {
    drift.push_back("the tokenizer is not the one the cache was made with");
  }
  const std::string now =
      encoder->chat() ? encoder->chat()->hash().hex() : std::string();
  if (now != m.chat_template) {
    drift.push_back("the chat template is not the one the cache was made with");
  }
}

}  // namespace

double PackingView::efficiency() const {
  const std::uint64_t cells = tokens + padding;
  return cells == 0 ? 0
                    : static_cast<double>(tokens) / static_cast<double>(cells);
}

Inspection inspect_cache(
    std::shared_ptr<const TokenCache> cache,
    const ExampleEncoder* encoder,
    LoaderConfig loader,
    const InspectOptions& options
) {
  Inspection out;
  out.manifest = cache->manifest();
  out.folder = cache->folder();
  find_drift(out.manifest, encoder, out.drift);
  const bool readable =
      encoder && encoder->text().vocabulary() == out.manifest.vocabulary;
  const auto& sets = cache->sets(options.split);
  for (std::size_t s = 0; s < sets.size(); ++s) {
    const std::uint64_t end = std::min(
        sets[s].documents(), options.first_document + options.documents
    );
    for (std::uint64_t d = options.first_document; d < end; ++d) {
      out.documents.push_back(view_document(
          *cache, readable ? encoder : nullptr, options.split, s, d,
          options.tokens_shown
      ));
    }
  }
  loader.split = options.split;
  for (const auto& s : loader.shapes) {
    out.longest = std::max(out.longest, s.length);
  }
  out.overlong = find_overlong(*cache, loader);
  view_batches(std::move(cache), std::move(loader), options, out);
  return out;
}

std::vector<std::string> check_round_trip(
    const std::vector<DataSource>& sources,
    const ReadSettings& read,
    const ExampleEncoder& encoder,
    std::size_t records
) {
  std::vector<std::string> lines;
  std::size_t checked = 0, changed = 0, refused = 0;
  std::string first_changed, first_refused;
  RecordParser parser(read);
  Record record;
  for (const auto& source : sources) {
    RecordReader reader(source.files[0], read);
    RawChunk chunk;
    std::size_t taken = 0;
    while (taken < records && reader.next(chunk)) {
      for (const auto& raw : chunk.records) {
        if (!raw.readable() || taken == records) continue;
        ++taken;
        const std::string_view bytes(
            chunk.bytes.data() + raw.begin, raw.end - raw.begin
        );
        const std::string where =
            fmt::format("{}:{}", source.files[0].path, raw.line);
        try {
          parser.parse(bytes, source.files[0].format, record);
          std::string text = record.text;
          if (record.kind == Record::Kind::kChat && encoder.chat()) {
            text = encoder.chat()->render(record.messages, record.tools).text;
          } else if (record.kind != Record::Kind::kText) {
            text = record.prompt + record.completion + record.chosen;
          }
          std::vector<std::int32_t> ids;
          encoder.text().encode(text, ids);
          ++checked;
          if (encoder.text().decode(ids) == text) continue;
          if (changed++ == 0) first_changed = where;
        } catch (const Error& e) {
          if (refused++ == 0) first_refused = where + ": " + e.what();
        }
      }
    }
  }
  if (changed > 0) {
    lines.push_back(
        fmt::format(
            "{} of {} texts do not come back from their tokens, the first at "
            "{}",
            changed, checked, first_changed
        )
    );
  }
  if (refused > 0) {
    lines.push_back(
        fmt::format(
            "{} records cannot be rendered, the first: {}", refused,
            first_refused
        )
    );
  }
  return lines;
}

}  // namespace hearth::data
