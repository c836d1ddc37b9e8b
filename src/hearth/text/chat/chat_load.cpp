// Finding a model's chat templates on disk.
#include <algorithm>
#include <filesystem>

#include "hearth/base/error.h"
#include "hearth/base/mapped_file.h"
#include "hearth/io/gguf_metadata.h"
#include "hearth/text/chat/chat.h"

namespace hearth::text {
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

struct Source {
  std::string text, file;
};
using Sources = std::map<std::string, Source>;

// "chat_template" of a config: one text, or a list of named ones.
void add_templates(
    const Json& config,
    const std::string& file,
    Sources& sources
) {
  const auto found = config.find("chat_template");
  if (found == config.end()) return;
  if (found->is_string()) {
    sources.try_emplace("default", Source{found->get<std::string>(), file});
  } else if (found->is_array()) {
    for (const Json& entry : *found) {
      if (!entry.is_object() || !entry.value("name", Json()).is_string() ||
          !entry.value("template", Json()).is_string()) {
        throw FormatError::at(
            file, 0, "entries of chat_template must have a name and a template"
        );
      }
      sources.try_emplace(
          entry["name"].get<std::string>(),
          Source{entry["template"].get<std::string>(), file}
      );
    }
  }
}

// Files of their own win over what a config carries.
void add_template_files(const fs::path& folder, Sources& sources) {
  const fs::path own = folder / "chat_template.jinja";
  if (fs::is_regular_file(own)) {
    sources["default"] = {read_text(own), own.string()};
  }
  const fs::path more = folder / "additional_chat_templates";
  if (!fs::is_directory(more)) return;
  for (const auto& entry : fs::directory_iterator(more)) {
    if (entry.path().extension() == ".jinja") {
      sources[entry.path().stem().string()] = {
          read_text(entry.path()), entry.path().string()
      };
    }
  }
}

void add_gguf_templates(
    const io::GgufMetadata& metadata,
    const std::string& path,
    Sources& sources
) {
  constexpr std::string_view kKey = "tokenizer.chat_template";
  for (const auto& [key, value] : metadata.all()) {
    const auto* text = std::get_if<std::string>(&value);
    if (text == nullptr || !key.starts_with(kKey)) continue;
    const std::string rest = key.substr(kKey.size());
    if (rest.empty()) sources["default"] = {*text, path};
    if (rest.starts_with('.')) sources[rest.substr(1)] = {*text, path};
  }
}

Json gguf_tokens(const io::GgufMetadata& metadata) {
  Json tokens = Json::object();
  if (!metadata.contains("tokenizer.ggml.tokens")) return tokens;
  const auto& spelled = metadata.texts("tokenizer.ggml.tokens");
  const std::pair<const char*, const char*> kinds[] = {
      {"bos", "bos_token"},
      {"eos", "eos_token"},
      {"unknown", "unk_token"},
      {"padding", "pad_token"}
  };
  for (const auto& [kind, name] : kinds) {
    const std::int64_t id = metadata.integer(
        std::string("tokenizer.ggml.") + kind + "_token_id", -1
    );
    if (id >= 0 && id < static_cast<std::int64_t>(spelled.size())) {
      tokens[name] = spelled[static_cast<std::size_t>(id)];
    }
  }
  return tokens;
}

bool is_gguf(const fs::path& path) {
  return !fs::is_directory(path) && path.extension() == ".gguf";
}

fs::path folder_of(const fs::path& path) {
  return fs::is_directory(path) ? path : path.parent_path();
}

// Calls with each config beside a tokenizer, and its file.
template <class Body>
void for_each_config(const fs::path& folder, Body body) {
  for (const char* name :
       {"tokenizer_config.json", "special_tokens_map.json",
        "chat_template.json"}) {
    if (!fs::is_regular_file(folder / name)) continue;
    const std::string file = (folder / name).string();
    const Json config = read_json_file(file);
    if (config.is_object()) body(config, file);
  }
}

Json special_tokens(const fs::path& path) {
  if (is_gguf(path)) {
    return gguf_tokens(io::GgufMetadata::read(path.string()));
  }
  Json tokens = Json::object();
  for_each_config(folder_of(path), [&](const Json& config, const auto&) {
    add_special_tokens(config, tokens);
  });
  return tokens;
}

}  // namespace

std::optional<ChatTemplates> ChatTemplates::find(
    const std::string& path,
    const TemplateLimits& limits,
    const std::string& tokens_from
) {
  const fs::path given(path);
  Sources sources;
  Json tokens;
  if (is_gguf(given)) {
    const auto metadata = io::GgufMetadata::read(path);
    add_gguf_templates(metadata, path, sources);
    if (tokens_from.empty()) tokens = gguf_tokens(metadata);
  } else if (!fs::is_directory(given) && given.extension() == ".jinja") {
    sources["default"] = {read_text(given), path};
  } else {
    add_template_files(folder_of(given), sources);
    for_each_config(
        folder_of(given), [&](const Json& config, const std::string& file) {
          add_templates(config, file, sources);
        }
    );
  }
  if (sources.empty()) return {};
  if (tokens.is_null()) {
    tokens = special_tokens(tokens_from.empty() ? path : tokens_from);
  }
  ChatTemplates made;
  for (const auto& [name, source] : sources) {
    made.by_name_.try_emplace(name, source.text, tokens, limits, source.file);
  }
  return made;
}

ChatTemplates ChatTemplates::load(
    const std::string& path,
    const TemplateLimits& limits,
    const std::string& tokens_from
) {
  auto found = find(path, limits, tokens_from);
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

}  // namespace hearth::text
