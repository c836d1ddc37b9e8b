#pragma once
// The `data` section of a recipe, and what it means to the cache and the
// loader.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hearth/base/config.h"
#include "hearth/data/cache/cache.h"
#include "hearth/data/loader/loader.h"
#include "hearth/data/read/dataset_encode.h"
#include "hearth/data/read/tokenizer_training.h"
#include "hearth/data/synth/synth_file.h"

namespace hearth::data {

struct FieldNamesConfig {
  RecordFields names;
  YamlNode roles;  // a map, from the data's names to a template's
  void fields(FieldVisitor& v);
};

struct DataConfig {
  YamlNode train;                // a path, folder or glob, or a list of them
  std::vector<std::string> mix;  // PATH:WEIGHT, instead of train
  std::optional<SynthConfig> synth;  // generated, instead of train
  std::string valid = "off";         // a share such as 2%, or paths of its own
  YamlNode tokenizer;                // a path, or {train: {vocab: 4096, ...}}
  std::string chat_template = "auto";
  std::string mask = "assistant";
  std::int64_t length = 1024;
  bool pack = true;
  std::string arrange = "auto";
  std::string overlong = "auto";
  std::int64_t limit = 0;
  std::string on_bad_line = "skip";
  std::string separator = "<|endoftext|>";
  FieldNamesConfig names;
  std::string cache;
  std::int64_t max_tokens = 0;
  bool shuffle = true;
  std::int64_t workers = -1;
  std::int64_t prefetch = 4;
  std::int64_t window = 4096;

  void fields(FieldVisitor& v);
};

// The files of a config: training sources, then a held-out one if `valid`
// names paths. `generated` is the file that data.synth stands for.
std::vector<DataSource> data_sources(
    const DataConfig& config,
    const std::string& generated = {}
);
// Whether a data.valid is a share (2%, 0.02, off) and not the name of files.
bool is_share(std::string_view valid);
// How rows are made: data.arrange, where auto follows data.pack.
std::string arrangement(const DataConfig& config);
// Whether documents are asked to be held out, by a share or by files.
bool holds_out(const DataConfig& config);
CacheSettings cache_settings(const DataConfig& config);
EncodeSettings encode_settings(const DataConfig& config);
// The tokenizer's path; throws UsageError when the config names none.
std::string tokenizer_path(const DataConfig& config);
// How the config asks for a tokenizer to be trained; nothing when it names one.
// With the chatml template its special tokens are added.
std::optional<TokenizerTraining> tokenizer_training(const DataConfig& config);
// The file of a template that the config names itself; empty for auto and
// none.
std::string template_path(const DataConfig& config);
// Loads tokenizer and template. With `auto` a tokenizer that carries no
// template is used without one.
ExampleEncoder make_encoder(const DataConfig& config);
// Rows of data.length; tokens_per_batch is rounded down to whole rows, at
// least one. Sources of equal weight 0 are seen as they come.
LoaderConfig loader_config(
    const DataConfig& config,
    const std::vector<DataSource>& sources,
    std::uint64_t tokens_per_batch,
    std::uint64_t seed
);

}  // namespace hearth::data
