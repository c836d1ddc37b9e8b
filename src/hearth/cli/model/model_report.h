#pragma once
// What `hearth inspect` says of a model: gathered here, printed as text or
// JSON. Reads no weights unless asked to check them.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "hearth/base/json.h"
#include "hearth/io/model_facts.h"
#include "hearth/io/model_source.h"

namespace hearth::cli {

struct TypeShare {
  std::uint64_t tensors = 0, parameters = 0, bytes = 0;
};

struct TokenizerFacts {
  std::string format, kind;
  std::size_t vocab_size = 0, id_limit = 0;
  std::optional<std::int32_t> bos, eos;
};

struct ModelReport {
  std::string path, format;
  io::ModelFacts facts;
  std::map<std::string, TypeShare> types;
  std::uint64_t parameters = 0, memory_bytes = 0, disk_bytes = 0;
  std::optional<TokenizerFacts> tokenizer;
  bool has_template = false;
  bool checked = false;  // weights were looked at
  std::uint64_t non_finite = 0;
  std::vector<std::string> warnings;
  std::vector<io::TensorInfo> tensors;
};

ModelReport inspect_model(
    std::shared_ptr<const io::ModelSource> model,
    bool check
);
Json report_json(const ModelReport& report, bool with_tensors);
std::string report_text(const ModelReport& report, bool with_tensors);

}  // namespace hearth::cli
