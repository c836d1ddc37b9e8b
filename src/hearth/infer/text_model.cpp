#include "hearth/infer/text_model.h"

#include <algorithm>
#include <chrono>
#include <filesystem>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/io/gguf_metadata.h"
#include "hearth/models/family.h"

namespace hearth::infer {
namespace {

namespace fs = std::filesystem;

bool holds_tokenizer(const std::string& path) {
  if (path.ends_with(".gguf") && fs::is_regular_file(path)) {
    return io::GgufMetadata::read(path).contains("tokenizer.ggml.tokens");
  }
  if (!fs::is_directory(path)) return true;
  return fs::exists(fs::path(path) / "tokenizer.json") ||
         fs::exists(fs::path(path) / "tokenizer.model");
}

void check_vocabulary(
    const data::Tokenizer& tokenizer,
    const std::string& where,
    const io::ModelSource& source
) {
  const auto config =
      models::parse_config(source.config(), models::config_name(source));
  const auto rows = static_cast<std::size_t>(config.vocab);
  if (tokenizer.id_limit() <= rows) return;
  throw FormatError::at(
      where, 0,
      fmt::format(
          "the tokenizer has ids up to {}, but the model's embedding has only "
          "{} rows",
          tokenizer.id_limit() - 1, rows
      )
  );
}

std::vector<std::int32_t> stop_ids_of(
    const io::ModelSource& source,
    const data::Tokenizer* tokenizer
) {
  auto ids = eos_ids(source.generation_config());
  if (ids.empty()) ids = eos_ids(source.config());
  if (tokenizer != nullptr && tokenizer->eos_id()) {
    ids.push_back(*tokenizer->eos_id());
  }
  std::ranges::sort(ids);
  const auto same = std::ranges::unique(ids);
  ids.erase(same.begin(), same.end());
  return ids;
}

}  // namespace

std::vector<std::int32_t> eos_ids(const Json& config) {
  std::vector<std::int32_t> ids;
  const auto at = config.find("eos_token_id");
  if (at == config.end()) return ids;
  const auto take = [&](const Json& v) {
    if (!v.is_number_integer()) return;
    const auto id = v.get<std::int64_t>();
    if (id >= 0 && id <= INT32_MAX) ids.push_back(static_cast<int>(id));
  };
  if (at->is_array()) {
    for (const Json& v : *at) take(v);
  } else {
    take(*at);
  }
  return ids;
}

const data::Tokenizer& TextModel::need_tokenizer() const {
  if (tokenizer) return *tokenizer;
  throw UsageError(
      fmt::format(
          "{} holds {}, so text cannot become tokens", text_path,
          text_path.ends_with(".gguf")
              ? "no tokenizer"
              : "neither tokenizer.json nor tokenizer.model"
      ),
      "-t TOKENIZER takes another model's; --ids 1,2,3 gives tokens directly"
  );
}

std::vector<std::int32_t> TextModel::raw_prompt(std::string_view text) const {
  const auto& t = need_tokenizer();
  auto ids = t.prefix_ids();
  t.encode(text, ids, {.add_special = false});
  if (ids.empty()) {
    throw UsageError(
        "the prompt is empty, and this tokenizer puts no token before a text"
    );
  }
  return ids;
}

std::vector<std::int32_t> TextModel::chat_prompt(const Json& messages) const {
  const auto& t = need_tokenizer();
  if (!templates) {
    throw UsageError(path + " has no chat template", "--raw uses none");
  }
  const std::string text = templates->choose(false).render(
      messages, {.add_generation_prompt = true}
  );
  return t.encode(text, {.add_special = false});
}

namespace {

double now_ms() {
  const auto t = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::milli>(t).count();
}

// All but the weights, so that what does not fit is refused before they are
// read.
TextModel text_side(
    const io::ModelSource& source,
    const std::string& path,
    const std::string& text_path
) {
  const double start = now_ms();
  TextModel out;
  out.path = path;
  out.text_path = text_path;
  if (holds_tokenizer(text_path)) {
    out.tokenizer = data::Tokenizer::load(text_path);
    check_vocabulary(*out.tokenizer, text_path, source);
    out.templates = data::ChatTemplates::find(text_path);
  }
  out.stop_ids = stop_ids_of(source, out.tokenizer.get());
  out.timing.text_ms = now_ms() - start;
  return out;
}

}  // namespace

TextModel load_text_model(
    const std::string& path,
    const std::string& tokenizer,
    const models::LoadOptions& options
) {
  const double start = now_ms();
  const auto source = io::open_model(path);
  const double opened = now_ms();
  TextModel out =
      text_side(*source, path, tokenizer.empty() ? path : tokenizer);
  out.timing.open_ms = opened - start;
  const double ready = now_ms();
  out.model = models::load_model(source, options);
  out.timing.weights_ms = now_ms() - ready;
  return out;
}

TextModel with_text(
    models::LoadedModel model,
    const std::string& path,
    const std::string& text_path
) {
  TextModel out = text_side(*model.source, path, text_path);
  out.model = std::move(model);
  return out;
}

}  // namespace hearth::infer
