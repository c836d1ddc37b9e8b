#include "hearth/infer/text_model.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "hearth/base/clock.h"
#include "hearth/base/error.h"
#include "hearth/io/gguf_metadata.h"
#include "hearth/models/config_keys.h"
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
    const text::Tokenizer& tokenizer,
    const std::string& where,
    std::size_t rows
) {
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

// What the model has no row for never comes, so a text would have no end.
std::vector<std::int32_t> stop_ids_in(
    const Json& config,
    const std::string& file,
    std::size_t rows
) {
  constexpr const char* kKey = "eos_token_id";
  auto ids = models::read_token_ids(config, kKey, file);
  for (const std::int32_t id : ids) {
    if (static_cast<std::size_t>(id) < rows) continue;
    throw FormatError::at(
        file, 0,
        fmt::format(
            "'{}' must name tokens of the model, which has {}, got {}", kKey,
            rows, id
        )
    );
  }
  return ids;
}

std::vector<std::int32_t> stop_ids_of(
    const io::ModelSource& source,
    const text::Tokenizer* tokenizer,
    std::size_t rows
) {
  auto ids = stop_ids_in(
      source.generation_config(), source.path() + "/generation_config.json",
      rows
  );
  if (ids.empty()) {
    ids = stop_ids_in(source.config(), models::config_name(source), rows);
  }
  if (tokenizer != nullptr && tokenizer->eos_id()) {
    ids.push_back(*tokenizer->eos_id());
  }
  std::ranges::sort(ids);
  const auto same = std::ranges::unique(ids);
  ids.erase(same.begin(), same.end());
  return ids;
}

}  // namespace

const text::Tokenizer& TextModel::need_tokenizer() const {
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

const text::ChatTemplates& TextModel::need_template() const {
  if (templates) return *templates;
  throw UsageError(path + " has no chat template", "--raw uses none");
}

std::vector<std::int32_t> TextModel::raw_prompt(std::string_view text) const {
  auto ids = text::raw_ids(need_tokenizer(), text);
  if (ids.empty()) {
    throw UsageError(
        "the prompt is empty, and this tokenizer puts no token before a text"
    );
  }
  return ids;
}

std::vector<std::int32_t> TextModel::chat_prompt(
    const Json& messages,
    const Json& tools
) const {
  const auto& own = need_tokenizer();
  const text::ChatTemplate& chat = need_template().choose(!tools.is_null());
  text::ChatOptions options;
  options.add_generation_prompt = true;
  options.tools = tools;
  return text::chat_ids(own, chat, messages, options);
}

TextModel text_side(
    const io::ModelSource& source,
    const std::string& path,
    const std::string& text_path,
    const TextReady& ready
) {
  const double start = milliseconds_now();
  const auto config =
      models::parse_config(source.config(), models::config_name(source));
  TextModel out;
  out.path = path;
  out.text_path = text_path;
  const auto rows = static_cast<std::size_t>(config.vocab);
  if (holds_tokenizer(text_path)) {
    out.tokenizer = text::Tokenizer::load(text_path);
    check_vocabulary(*out.tokenizer, text_path, rows);
    out.templates = text::ChatTemplates::find(text_path);
  }
  out.stop_ids = stop_ids_of(source, out.tokenizer.get(), rows);
  out.timing.text_ms = milliseconds_now() - start;
  if (ready) ready(out, config);
  return out;
}

TextModel load_text_model(
    const std::string& path,
    const std::string& tokenizer,
    const models::LoadOptions& options,
    const TextReady& ready
) {
  const double start = milliseconds_now();
  const auto source = io::open_model(path);
  const double opened = milliseconds_now();
  TextModel out =
      text_side(*source, path, tokenizer.empty() ? path : tokenizer, ready);
  out.timing.open_ms = opened - start;
  const double begun = milliseconds_now();
  out.model = models::load_model(source, options);
  out.timing.weights_ms = milliseconds_now() - begun;
  return out;
}

}  // namespace hearth::infer
