#include "hearth/text/tokenizer/joiner_impl.h"
#include "hearth/text/tokenizer/utf8.h"

namespace hearth::text {
namespace {

constexpr std::size_t kMostBytes = std::size_t{64} << 20;

std::string joined(std::vector<std::string>& tokens) {
  if (tokens.size() == 1) return std::move(tokens[0]);
  std::string out;
  for (const auto& token : tokens) out += token;
  return out;
}

// Bytes of tokens that followed each other: their text, or one U+FFFD each.
void append_run(std::string& out, std::string& run) {
  if (run.empty()) return;
  if (is_valid_utf8(run)) {
    out += run;
  } else {
    for (std::size_t i = 0; i < run.size(); ++i) out += "\uFFFD";
  }
  run.clear();
}

}  // namespace

void Joiner::fill() const {
  const std::size_t limit = parts_.id_limit();
  entries_.resize(limit);
  std::vector<std::string> tokens;
  for (std::size_t i = 0; i < limit; ++i) {
    const auto id = static_cast<std::int32_t>(i);
    Entry& entry = entries_[i];
    entry.absent = !parts_.added.find(id) && !parts_.vocabulary->contains(id);
    if (entry.absent) continue;
    const std::string_view token = parts_.decoded_token(id);
    entry.special = parts_.added.is_special(token);
    tokens.assign(1, std::string(token));
    for (const Decoder* step : decoder_.each) step->apply(tokens);
    const std::string text = joined(tokens);
    if (decoder_.byte_fallback) {
      entry.byte = static_cast<std::int16_t>(fallback_byte(text));
    }
    entry.begin = static_cast<std::uint32_t>(bytes_.size());
    entry.size = static_cast<std::uint32_t>(text.size());
    bytes_ += text;
    too_large_ = bytes_.size() > kMostBytes;
    if (too_large_) return;
  }
}

std::optional<std::string> Joiner::decode(
    std::span<const std::int32_t> ids,
    bool skip
) const {
  std::call_once(once_, [this] { fill(); });
  if (too_large_) return std::nullopt;
  std::string out, run;
  out.reserve(ids.size() * 5);
  for (const std::int32_t id : ids) {
    if (id < 0 || static_cast<std::size_t>(id) >= entries_.size()) continue;
    const Entry& entry = entries_[static_cast<std::size_t>(id)];
    if (entry.absent || (skip && entry.special)) continue;
    if (entry.byte >= 0) {
      run += static_cast<char>(entry.byte);
      continue;
    }
    append_run(out, run);
    out.append(bytes_, entry.begin, entry.size);
  }
  append_run(out, run);
  if (decoder_.whole.empty()) return out;
  std::vector<std::string> text;
  text.push_back(std::move(out));
  for (const Decoder* step : decoder_.whole) step->apply(text);
  return joined(text);
}

std::unique_ptr<const Joiner> make_joiner(const TokenizerParts& parts) {
  if (!parts.decoder) return nullptr;
  auto joining = parts.decoder->joining();
  if (!joining) return nullptr;
  return std::make_unique<const Joiner>(parts, std::move(*joining));
}

}  // namespace hearth::text
