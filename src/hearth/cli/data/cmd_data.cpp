// hearth data prepare, hearth data inspect.
#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "hearth/base/atomic_file.h"
#include "hearth/base/error.h"
#include "hearth/base/terminal.h"
#include "hearth/base/units.h"
#include "hearth/cli/command.h"
#include "hearth/cli/data/prepare_data.h"
#include "hearth/cli/inputs.h"
#include "hearth/cli/train/read_recipe.h"
#include "hearth/data/inspect.h"
#include "hearth/data/read/dataset_tokenizer.h"
#include "hearth/train/loop/session.h"

namespace hearth::cli {
namespace {

namespace fs = std::filesystem;

struct DataFlags {
  std::vector<std::string> words;  // recipe or cache, then overrides
  std::vector<std::string> files;
  std::string tokenizer, output, on_bad_line, html;
  std::int64_t documents = 3, first = 0, batches = 1;
  std::int64_t tokens_per_batch = 0;  // 0: a step of the recipe
  bool force = false, valid = false, verify = false;
};

YamlNode list_of(const std::vector<std::string>& words) {
  YamlNode list;
  list.kind = YamlNode::Kind::kList;
  for (const auto& word : words) {
    YamlNode item;
    item.kind = YamlNode::Kind::kScalar;
    item.scalar = word;
    list.items.push_back(std::move(item));
  }
  return list;
}

// A folder and a data file are the likeliest things to stand where a recipe
// should; each has a way in of its own.
void check_recipe(const std::string& word) {
  require_input(word, "recipe");
  if (fs::is_directory(word)) {
    throw UsageError(
        fmt::format(
            "{} must be a recipe or a finished cache, got a folder without {}",
            word, data::kManifestName
        ),
        "hearth data prepare finishes a cache; --data takes a folder of data"
    );
  }
  for (const char* end :
       {".jsonl", ".txt", ".gz", ".zst", ".ndjson", ".csv", ".tsv",
        ".parquet"}) {
    if (!word.ends_with(end)) continue;
    throw UsageError(
        fmt::format("{} must be a recipe, got a data file", word),
        fmt::format("--data {} -t TOKENIZER", word)
    );
  }
}

void require_data(const DataFlags& flags, const std::string& command) {
  if (!flags.words.empty() || !flags.files.empty()) return;
  throw UsageError(
      "name a recipe, or data with --data FILES -t TOKENIZER",
      fmt::format("hearth {} --help shows how it is called", command)
  );
}

// Recipe, then overrides, then flags. The lengths of rows are of no use to the
// cache alone.
train::Recipe read_data_recipe(
    const DataFlags& flags,
    const Context& context,
    bool lengths
) {
  RecipeArguments given;
  given.words = flags.words;
  given.need_file = given.remarks = given.lengths = false;
  for (const auto& word : flags.words) {
    if (ConfigReader::is_override(word)) continue;
    check_recipe(word);
    given.lengths = lengths;
  }
  if (!flags.on_bad_line.empty()) {
    given.words.push_back("data.on_bad_line=" + flags.on_bad_line);
  }
  train::Recipe recipe;
  read_recipe(given, context, recipe);
  train::take_models_tokenizer(recipe);
  data::DataConfig& config = recipe.data;
  if (!flags.files.empty()) {
    const bool weighted = std::ranges::any_of(flags.files, [](const auto& f) {
      return f.find(':') != std::string::npos && !fs::exists(f);
    });
    config.train = weighted ? YamlNode() : list_of(flags.files);
    config.mix = weighted ? flags.files : std::vector<std::string>{};
    config.synth.reset();
  }
  if (!flags.tokenizer.empty()) {
    require_input(flags.tokenizer, "tokenizer");
    config.tokenizer = list_of({flags.tokenizer}).items[0];
  }
  if (!flags.output.empty()) config.cache = flags.output;
  return recipe;
}

double megabytes_per_second(const data::PrepareResult& r) {
  return r.seconds > 0 ? static_cast<double>(r.new_bytes) / 1e6 / r.seconds : 0;
}

// A whole cache by itself: no recipe, so settings come from its manifest.
bool is_cache(const std::string& word) {
  return fs::is_regular_file(fs::path(word) / data::kManifestName);
}

std::optional<data::ExampleEncoder> encoder_of(
    const data::TokenCache& cache,
    const std::string& tokenizer
) {
  const data::CacheManifest& manifest = cache.manifest();
  // A tokenizer that was trained for the cache lies beside its shards.
  const bool own = fs::exists(fs::path(cache.folder()) / "tokenizer.json");
  const std::string path = !tokenizer.empty() ? tokenizer
                           : own              ? cache.folder()
                                              : manifest.tokenizer_path;
  if (path.empty() || !fs::exists(path)) return std::nullopt;
  const fs::path beside = fs::path(cache.folder()) / "chat_template.jinja";
  const std::string rendered_by =
      fs::exists(beside) ? beside.string() : manifest.template_path;
  std::shared_ptr<const data::ChatRenderer> chat;
  if (!manifest.chat_template.empty() && fs::exists(rendered_by)) {
    chat = data::load_chat_renderer(rendered_by);
  }
  return data::ExampleEncoder(
      data::load_text_encoder(path), std::move(chat), {}
  );
}

struct Inspected {
  std::shared_ptr<const data::TokenCache> cache;
  std::optional<data::ExampleEncoder> encoder;
  data::LoaderConfig loader;
  std::vector<std::string> drift;
};

Inspected open_for_inspection(const Context& context, DataFlags& flags) {
  Inspected in;
  require_data(flags, "data inspect");
  const bool cache = !flags.words.empty() && is_cache(flags.words[0]);
  std::string folder;
  if (cache) {
    folder = flags.words[0];
    flags.words.erase(flags.words.begin());
  }
  train::Recipe recipe = read_data_recipe(flags, context, true);
  if (flags.tokens_per_batch > 0) {
    recipe.train.tokens_per_step = flags.tokens_per_batch;
    recipe.train.gradient_accumulation_steps = 0;
  }
  std::vector<data::DataSource> sources;
  if (!cache) {
    const auto prepared = prepare_with_progress(context, recipe.data);
    sources = prepared.sources;
    for (const auto& line : data::remarks_of(sources)) context.note(line);
    folder = prepared.cache;
    in.encoder = *prepared.encoder;
    in.drift = data::check_round_trip(
        sources, data::cache_settings(recipe.data).read, *in.encoder
    );
  }
  in.cache = std::make_shared<data::TokenCache>(folder);
  if (cache) in.encoder = encoder_of(*in.cache, flags.tokenizer);
  in.loader = train::train_loader(recipe, sources);
  for (const auto& set : in.cache->sets(data::Split::kTrain)) {
    if (set.pairs()) in.loader.arrange = data::Arrange::kPad;
  }
  return in;
}

}  // namespace

void cmd_data_prepare(Context& context, const std::vector<std::string>& words) {
  DataFlags flags;
  Args args(
      "data prepare",
      "Tokenise data into memory-mapped shards, in parallel. A build that was "
      "stopped goes on where it was; one that is there is used as it is.",
      context.common
  );
  args.rest(
      "RECIPE", flags.words, "Recipe, and overrides such as data.limit=9"
  );
  args.list("--data", flags.files, "Files, folders, globs; PATH:WEIGHT");
  args.option("-t,--tokenizer", flags.tokenizer, "Tokenizer file or folder");
  args.option("-o,--output", flags.output, "Cache folder");
  args.choice(
      "--on-bad-line", flags.on_bad_line, {"skip", "fatal"},
      "What a line that cannot be read does"
  );
  args.flag("--force", flags.force, "Replace what the folder holds");
  args.example(
      "hearth data prepare recipe.yaml", "the cache a recipe will train on"
  );
  args.example(
      "hearth data prepare --data a.jsonl:2 b.jsonl.zst:1 -t smollm2 -o cache",
      "two sources, mixed two to one"
  );
  if (!context.parse(args, words)) return;
  require_data(flags, "data prepare");
  const train::Recipe recipe = read_data_recipe(flags, context, false);
  const auto prepared =
      prepare_with_progress(context, recipe.data, flags.force);
  const data::PrepareResult& result = prepared.result;
  for (const auto& line : data::remarks_of(prepared.sources)) {
    context.note(line);
  }
  const double rate = megabytes_per_second(result);
  if (context.common.json) {
    context.json(
        "hearth.data.prepare/1", {{"cache", result.folder},
                                  {"tokenizer", prepared.tokenizer},
                                  {"reused", result.reused},
                                  {"resumed", result.resumed},
                                  {"seconds", result.seconds},
                                  {"mb_per_s", rate},
                                  {"report", result.report.to_json()}}
    );
    return;
  }
  context.print(
      fmt::format(
          "{}\n{}  {}\n", result.folder, result.report.to_text(),
          result.reused
              ? "it was there already"
              : fmt::format(
                    "{}in {}, {:.1f} MB/s", result.resumed ? "resumed, " : "",
                    format_seconds(result.seconds), rate
                )
      )
  );
}

void cmd_data_inspect(Context& context, const std::vector<std::string>& words) {
  DataFlags flags;
  Args args(
      "data inspect",
      "Show what a model would be trained on: tokens, masks, batches, and what "
      "does not fit together.",
      context.common
  );
  args.rest("RECIPE|CACHE", flags.words, "Recipe or cache folder, overrides");
  args.list("--data", flags.files, "Files instead of a recipe's");
  args.option("-t,--tokenizer", flags.tokenizer, "Tokenizer file or folder");
  args.option("--html", flags.html, "Write a page to this file");
  args.option("--documents", flags.documents, "Documents shown of each source");
  args.option("--first", flags.first, "The first document shown");
  args.option("--batches", flags.batches, "Batches shown");
  args.option(
      "--tokens-per-batch", flags.tokens_per_batch,
      "Their size; 0: a step of the recipe"
  );
  args.flag("--valid", flags.valid, "The validation split");
  args.flag("--verify", flags.verify, "Check every byte of the cache");
  args.example(
      "hearth data inspect recipe.yaml --html data.html",
      "look before the first step"
  );
  args.example("hearth data inspect cache --first 100", "document 100 and on");
  if (!context.parse(args, words)) return;
  if (flags.documents < 0 || flags.first < 0 || flags.batches < 0 ||
      flags.tokens_per_batch < 0) {
    throw UsageError("counts must not be negative");
  }
  Inspected in = open_for_inspection(context, flags);
  if (flags.verify) in.cache->verify();
  data::InspectOptions options;
  options.documents = static_cast<std::uint64_t>(flags.documents);
  options.first_document = static_cast<std::uint64_t>(flags.first);
  options.batches = static_cast<std::uint64_t>(flags.batches);
  if (flags.valid) options.split = data::Split::kValid;
  auto inspection = data::inspect_cache(
      in.cache, in.encoder ? &*in.encoder : nullptr, in.loader, options
  );
  inspection.drift.insert(
      inspection.drift.end(), in.drift.begin(), in.drift.end()
  );
  if (!flags.html.empty()) {
    write_file_atomically(flags.html, data::inspection_to_html(inspection));
    context.note(fmt::format("wrote {}\n", flags.html));
  }
  if (context.common.json) {
    context.json("hearth.data.inspect/1", data::inspection_to_json(inspection));
  } else if (flags.html.empty()) {
    context.print(data::inspection_to_text(inspection, color_on_stdout()));
  }
}

}  // namespace hearth::cli
