#include "hearth/data/read/dataset_tokenizer.h"

#include <filesystem>

#include "hearth/base/mapped_file.h"
#include "hearth/text/chat/chat.h"
#include "hearth/text/tokenizer/tokenizer.h"

namespace hearth::data {
namespace {

namespace fs = std::filesystem;

// A hash of the given file and of the files beside it that tokenizers and
// templates are read from.
Hash128 hash_files(
    const std::string& path,
    std::initializer_list<const char*> names
) {
  ContentHash hash;
  auto add = [&](const fs::path& file) {
    if (!fs::is_regular_file(file)) return;
    hash.field(file.filename().string());
    hash.field(MappedFile(file.string()).text());
  };
  const bool folder = fs::is_directory(path);
  if (!folder) add(path);
  const fs::path root = folder ? fs::path(path) : fs::path(path).parent_path();
  for (const char* name : names) add(root / name);
  return hash.digest();
}

class TokenizerEncoder : public TextEncoder {
 public:
  explicit TokenizerEncoder(const std::string& path)
      : path_(path),
        tokenizer_(text::Tokenizer::load(path)),
        hash_(hash_files(
            path,
            {"tokenizer.json", "tokenizer.model", "tokenizer_config.json",
             "special_tokens_map.json"}
        )) {
    const auto prefix = tokenizer_->prefix_ids();
    if (!prefix.empty()) bos_ = prefix.front();
    options_.add_special = false;
  }
  void encode(
      std::string_view text,
      std::vector<std::int32_t>& out
  ) const override {
    tokenizer_->encode(text, out, options_);
  }
  bool encode_placed(
      std::string_view text,
      std::vector<std::int32_t>& ids,
      std::vector<std::size_t>& begins
  ) const override {
    ids.clear();
    begins.clear();
    tokenizer_->encode(text, ids, options_);
    std::size_t at = 0;
    for (const auto id : ids) {
      const std::string bytes = token_text(id);
      begins.push_back(at);
      const std::string_view rest = text.substr(at);
      if (rest.starts_with(bytes)) {
        at += bytes.size();
      } else if (bytes.starts_with(' ') && rest.starts_with(bytes.substr(1))) {
        // A space that the tokenizer puts before a text.
        at += bytes.size() - 1;
      } else {
        return false;
      }
    }
    return at == text.size();
  }
  std::string decode(std::span<const std::int32_t> ids) const override {
    return tokenizer_->decode(ids);
  }
  std::string token_text(std::int32_t id) const override {
    std::string bytes = tokenizer_->token_bytes(id);
    return bytes.empty() ? tokenizer_->id_to_token(id).value_or("") : bytes;
  }
  std::string path() const override { return path_; }
  std::uint32_t vocabulary() const override {
    return static_cast<std::uint32_t>(tokenizer_->id_limit());
  }
  std::optional<std::int32_t> bos() const override { return bos_; }
  std::optional<std::int32_t> eos() const override {
    return tokenizer_->eos_id();
  }
  Hash128 hash() const override { return hash_; }

 private:
  std::string path_;
  std::shared_ptr<const text::Tokenizer> tokenizer_;
  std::optional<std::int32_t> bos_;
  text::EncodeOptions options_;
  Hash128 hash_;
};

class TemplateRenderer : public ChatRenderer {
 public:
  explicit TemplateRenderer(const std::string& path)
      : path_(path),
        templates_(text::ChatTemplates::load(path)),
        hash_(hash_files(
            path,
            {"chat_template.jinja", "tokenizer_config.json",
             "special_tokens_map.json"}
        )) {}
  RenderedChat render(const Json& messages, const Json& tools) const override {
    text::ChatOptions options;
    options.tools = tools;
    options.now = std::tm{};
    options.now->tm_year = 124;  // 26 July 2024
    options.now->tm_mon = 6;
    options.now->tm_mday = 26;
    options.now->tm_hour = 12;
    options.now->tm_wday = 5;
    options.now->tm_yday = 207;
    const bool with_tools = tools.is_array() && !tools.empty();
    auto rendering = templates_.choose(with_tools)
                         .render_for_training(
                             messages, options, text::TrainOn::kAllAssistant
                         );
    RenderedChat chat;
    chat.text = std::move(rendering.text);
    for (const auto& turn : rendering.turns) {
      chat.turns.push_back(
          {turn.span.begin, turn.span.end,
           static_cast<std::size_t>(turn.message)}
      );
    }
    return chat;
  }
  Hash128 hash() const override { return hash_; }
  std::string path() const override { return path_; }
  bool reads(std::string_view word) const override {
    return templates_.choose(true).mentions(word);
  }

 private:
  std::string path_;
  text::ChatTemplates templates_;
  Hash128 hash_;
};

}  // namespace

std::shared_ptr<const TextEncoder> load_text_encoder(const std::string& path) {
  return std::make_shared<TokenizerEncoder>(path);
}

std::shared_ptr<const ChatRenderer> load_chat_renderer(
    const std::string& path
) {
  return std::make_shared<TemplateRenderer>(path);
}

}  // namespace hearth::data
