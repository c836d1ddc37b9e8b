// Finding a model's chat templates on disk.
#include <algorithm>
#include <filesystem>

#include "hearth/base/error.h"
#include "hearth/base/mapped_file.h"
#include "hearth/data/chat.h"
#include "hearth/io/gguf_metadata.h"

namespace hearth::data {
namespace {

namespace fs = std::filesystem;

std::string read_text(const fs::path& path) {
  return std::string(MappedFile(path.string()).text());
}

// Tokens by name: bos_token, eos_token, ... as text or as {"content": text}.
void add_special_tokens(const Json& config, Json& tokens) {
  for (const auto& [name, value] : config.items()) {
    if (!name.ends_with("_token") || tokens.contains(name)) continue;
    if (value.is_string()) tokens[name] = value;
    if (value.is_object() && value.contains("content")) {
      tokens[name] = value["content"];
    }
  }
}

// "chat_template" of a config: one text, or a list of named ones.
void add_templates(
    const Json& config,
    std::map<std::string, std::string>& sources
) {
  const auto found = config.find("chat_template");
  if (found == config.end()) return;
  if (found->is_string()) {
    sources.try_emplace("default", found->get<std::string>());
  } else if (found->is_array()) {
    for (const Json& entry : *found) {
      if (!entry.is_object() || !entry.value("name", Json()).is_string() ||
          !entry.value("template", Json()).is_string()) {
        throw FormatError(
            "[data.chat] entries of chat_template must have a name and a "
            "template"
        );
      }
      sources.try_emplace(
          entry["name"].get<std::string>(), entry["template"].get<std::string>()
      );
    }
  }
}

// Files of their own win over what a config carries.
void add_template_files(
    const fs::path& folder,
    std::map<std::string, std::string>& sources
) {
  if (fs::is_regular_file(folder / "chat_template.jinja")) {
    sources["default"] = read_text(folder / "chat_template.jinja");
  }
  const fs::path more = folder / "additional_chat_templates";
  if (!fs::is_directory(more)) return;
  for (const auto& entry : fs::directory_iterator(more)) {
    if (entry.path().extension() == ".jinja") {
      sources[entry.path().stem().string()] = read_text(entry.path());
    }
  }
}

// Of a GGUF file's metadata: tokenizer.chat_template, and named ones below it.
void add_gguf(
    const io::GgufMetadata& file,
    std::map<std::string, std::string>& sources,
    Json& tokens
) {
  constexpr std::string_view kKey = "tokenizer.chat_template";
  for (const auto& [name, value] : file.all()) {
    const auto* text = std::get_if<std::string>(&value);
    if (text == nullptr || !name.starts_with(kKey)) continue;
    if (name.size() == kKey.size()) sources["default"] = *text;
    if (name.size() > kKey.size() + 1 && name[kKey.size()] == '.') {
      sources[name.substr(kKey.size() + 1)] = *text;
    }
  }
  if (sources.empty()) return;
  const auto& words = file.texts("tokenizer.ggml.tokens");
  for (const auto& [name, key] :
       {std::pair{"bos_token", "bos"},
        {"eos_token", "eos"},
        {"unk_token", "unknown"},
        {"pad_token", "padding"}}) {
    const auto id =
        file.integer(std::string("tokenizer.ggml.") + key + "_token_id", -1);
    if (id < 0 || static_cast<std::size_t>(id) >= words.size()) continue;
    tokens[name] = words[static_cast<std::size_t>(id)];
  }
}

// Of a folder, or of the one .jinja file and the folder it lies in.
void add_folder(
    const fs::path& given,
    std::map<std::string, std::string>& sources,
    Json& tokens
) {
  const bool single = !fs::is_directory(given) && given.extension() == ".jinja";
  const fs::path folder = fs::is_directory(given) ? given : given.parent_path();
  if (single) {
    sources["default"] = read_text(given);
  } else {
    add_template_files(folder, sources);
  }
  for (const char* name :
       {"tokenizer_config.json", "special_tokens_map.json",
        "chat_template.json"}) {
    if (!fs::is_regular_file(folder / name)) continue;
    const Json config = read_json_file((folder / name).string());
    if (!config.is_object()) continue;
    add_special_tokens(config, tokens);
    if (!single) add_templates(config, sources);
  }
}

}  // namespace

std::optional<ChatTemplates> ChatTemplates::find(
    const std::string& path,
    const TemplateLimits& limits
) {
  std::map<std::string, std::string> sources;
  Json tokens = Json::object();
  if (path.ends_with(".gguf") && !fs::is_directory(path)) {
    add_gguf(io::GgufMetadata::read(path), sources, tokens);
  } else {
    add_folder(path, sources, tokens);
  }
  if (sources.empty()) return {};
  ChatTemplates made;
  for (const auto& [name, source] : sources) {
    made.by_name_.try_emplace(name, source, tokens, limits);
  }
  return made;
}

ChatTemplates ChatTemplates::load(
    const std::string& path,
    const TemplateLimits& limits
) {
  auto found = find(path, limits);
  if (found) return std::move(*found);
  throw FormatError(
      "[data.chat] " + path + " must have a chat template",
      "give a .jinja file, a .gguf file with one, or a tokenizer folder with "
      "chat_template.jinja or a chat_template in tokenizer_config.json"
  );
}

const ChatTemplate& ChatTemplates::choose(
    bool with_tools,
    const std::string& name
) const {
  std::string wanted = name;
  if (wanted.empty()) {
    wanted =
        with_tools && by_name_.contains("tool_use") ? "tool_use" : "default";
  }
  const auto found = by_name_.find(wanted);
  if (found != by_name_.end()) return found->second;
  std::string known;
  for (const auto& entry : by_name_) {
    known += (known.empty() ? "" : ", ") + entry.first;
  }
  throw UsageError(
      "[data.chat] there must be a template called " + wanted + ", got " + known
  );
}

}  // namespace hearth::data
