#include "hearth/text/tokenizer/tokenizer.h"

#include <algorithm>
#include <mutex>

#include "hearth/base/error.h"
#include "hearth/text/tokenizer/joiner_impl.h"
#include "hearth/text/tokenizer/tokenizer_parts.h"
#include "hearth/text/tokenizer/utf8.h"

namespace hearth::text {

struct TokenizerWorkspace {
  ModelScratch model;
  PieceBuffers buffers;
  std::string normalized;
};

// Workspaces that no thread uses at the moment. A thread takes one, so what
// one text taught the cache serves the next.
struct Tokenizer::Pool {
  std::mutex mutex;
  std::vector<std::unique_ptr<TokenizerWorkspace>> idle;
  std::size_t generation = 0;  // clear_cache() bars workspaces taken before it

  class Lease {
   public:
    Lease(Pool& pool, std::size_t buffers) : pool_(pool) {
      {
        const std::lock_guard lock(pool.mutex);
        generation_ = pool.generation;
        if (!pool.idle.empty()) {
          workspace_ = std::move(pool.idle.back());
          pool.idle.pop_back();
        }
      }
      if (!workspace_) workspace_ = std::make_unique<TokenizerWorkspace>();
      workspace_->buffers.resize(buffers);
    }
    ~Lease() {
      const std::lock_guard lock(pool_.mutex);
      if (generation_ == pool_.generation && pool_.idle.size() < 256) {
        pool_.idle.push_back(std::move(workspace_));
      }
    }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    TokenizerWorkspace& operator*() { return *workspace_; }

   private:
    Pool& pool_;
    std::size_t generation_ = 0;
    std::unique_ptr<TokenizerWorkspace> workspace_;
  };
};

Tokenizer::Tokenizer(TokenizerParts parts) : pool_(std::make_unique<Pool>()) {
  parts.decode_ahead();
  parts_ = std::make_unique<TokenizerParts>(std::move(parts));
  joiner_ = make_joiner(*parts_);
}

Tokenizer::~Tokenizer() = default;

void Tokenizer::clear_cache() const {
  const std::lock_guard lock(pool_->mutex);
  pool_->idle.clear();
  ++pool_->generation;
}

void Tokenizer::encode_plain(
    std::string_view text,
    const EncodeOptions& options,
    TokenizerWorkspace& workspace,
    std::vector<std::int32_t>& out
) const {
  const TokenizerParts& parts = *parts_;
  const auto model = [&](Piece piece) {
    parts.model->encode(piece.text, piece.after, workspace.model, out);
  };
  const auto plain = [&](std::string_view part, bool first) {
    if (part.empty()) return;
    const Piece piece{part, first};
    if (!parts.pre.step) return model(piece);
    parts.pre.step->split(piece, workspace.buffers, model);
  };
  const auto token = [&](std::int32_t id) { out.push_back(id); };
  const auto normalize = [&](std::string_view part) {
    const bool first = part.data() == text.data();
    if (parts.normalizer) {
      workspace.normalized = part;
      parts.normalizer->apply(workspace.normalized);
      part = workspace.normalized;
    }
    if (!parts.added.any(true)) return plain(part, first);
    parts.added.split(
        part, true, options.parse_special, {},
        [&](std::string_view sub) {
          plain(sub, first && sub.data() == part.data());
        },
        token
    );
  };
  parts.added.split(
      text, false, options.parse_special, options.plain_at, normalize, token
  );
}

namespace {

void cut(std::vector<std::int32_t>& ids, std::size_t from, Truncation rule) {
  const std::size_t count = ids.size() - from;
  if (count <= rule.length) return;
  if (rule.left) {
    const auto begin = ids.begin() + static_cast<std::ptrdiff_t>(from);
    ids.erase(begin, ids.end() - static_cast<std::ptrdiff_t>(rule.length));
  } else {
    ids.resize(from + rule.length);
  }
}

void fill(
    std::vector<std::int32_t>& ids,
    std::size_t from,
    const Padding& rule
) {
  const std::size_t count = ids.size() - from;
  std::size_t wanted = rule.length ? rule.length : count;
  if (rule.multiple) {
    wanted = (wanted + rule.multiple - 1) / rule.multiple * rule.multiple;
  }
  if (count >= wanted) return;
  const auto where =
      rule.left ? ids.begin() + static_cast<std::ptrdiff_t>(from) : ids.end();
  ids.insert(where, wanted - count, rule.id);
}

}  // namespace

void Tokenizer::encode(
    std::string_view text,
    std::vector<std::int32_t>& out,
    const EncodeOptions& options
) const {
  if (text.size() >= std::size_t{1} << 31) {
    throw UsageError("[data.Tokenizer] a text must be under 2 GiB");
  }
  std::string repaired;
  if (!is_valid_utf8(text)) {
    repaired = repair_utf8(text);
    text = repaired;
  }
  const TokenizerParts& parts = *parts_;
  const std::size_t start = out.size();
  const auto append = [&](const std::vector<std::int32_t>& ids) {
    if (options.add_special) out.insert(out.end(), ids.begin(), ids.end());
  };
  append(parts.prefix);
  const std::size_t body = out.size();
  {
    Pool::Lease lease(*pool_, parts.pre.buffers);
    encode_plain(text, options, *lease, out);
  }
  if (options.truncate && parts.truncation) {
    Truncation rule = *parts.truncation;
    const std::size_t extra =
        options.add_special ? parts.prefix.size() + parts.suffix.size() : 0;
    rule.length -= std::min(rule.length, extra);
    if (rule.second_only && rule.length && out.size() - body > rule.length) {
      throw UsageError(
          "[data.Tokenizer] the file truncates the second of two texts only, "
          "and this one is longer than it allows",
          "encode without truncation"
      );
    }
    cut(out, body, rule);
  }
  append(parts.suffix);
  if (options.pad && parts.padding) fill(out, start, *parts.padding);
}

std::vector<std::int32_t> Tokenizer::encode(
    std::string_view text,
    const EncodeOptions& options
) const {
  std::vector<std::int32_t> out;
  out.reserve(text.size() / 4 + 8);
  encode(text, out, options);
  return out;
}

std::size_t Tokenizer::vocab_size() const {
  std::size_t extra = 0;
  for (const AddedToken& token : parts_->added.all()) {
    extra += parts_->vocabulary->find(token.content) < 0;
  }
  return parts_->vocabulary->size() + extra;
}

std::size_t Tokenizer::id_limit() const {
  return parts_->id_limit();
}

std::optional<std::int32_t> Tokenizer::token_to_id(
    std::string_view token
) const {
  if (const AddedToken* added = parts_->added.find(token)) return added->id;
  const std::int32_t id = parts_->vocabulary->find(token);
  return id < 0 ? std::nullopt : std::optional(id);
}

std::optional<std::string> Tokenizer::id_to_token(std::int32_t id) const {
  if (const AddedToken* added = parts_->added.find(id)) return added->content;
  if (!parts_->vocabulary->contains(id)) return std::nullopt;
  return std::string(parts_->vocabulary->token(id));
}

bool Tokenizer::is_special(std::int32_t id) const {
  const AddedToken* added = parts_->added.find(id);
  return added && parts_->added.is_special(added->content);
}

std::optional<std::int32_t> Tokenizer::bos_id() const {
  return parts_->bos;
}
std::optional<std::int32_t> Tokenizer::eos_id() const {
  return parts_->eos;
}
std::optional<std::int32_t> Tokenizer::pad_id() const {
  return parts_->pad;
}
std::optional<std::int32_t> Tokenizer::unk_id() const {
  return parts_->unk;
}

TokenizerLimits Tokenizer::limits() const {
  TokenizerLimits out;
  if (parts_->truncation) {
    out.truncate_to = parts_->truncation->length;
    out.truncate_left = parts_->truncation->left;
  }
  if (parts_->padding) out.pad_to = parts_->padding->length;
  return out;
}

std::string_view Tokenizer::model_kind() const {
  return parts_->model->kind();
}
std::string_view Tokenizer::format() const {
  return parts_->format;
}
bool Tokenizer::is_byte_level() const {
  return parts_->pre.byte_level;
}

std::vector<std::int32_t> Tokenizer::special_ids() const {
  std::vector<std::int32_t> out;
  for (const AddedToken& token : parts_->added.all()) {
    if (token.special) out.push_back(token.id);
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::vector<std::int32_t> Tokenizer::prefix_ids() const {
  return parts_->prefix;
}
std::vector<std::int32_t> Tokenizer::suffix_ids() const {
  return parts_->suffix;
}

}  // namespace hearth::text
