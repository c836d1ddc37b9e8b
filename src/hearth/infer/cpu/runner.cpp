#include "hearth/infer/cpu/runner.h"

#include <algorithm>
#include <bit>

#include "hearth/infer/engine/kv_layout.h"
#include "hearth/infer/engine/runner_parts.h"
#include "hearth/models/held_weights.h"
#include "hearth/profile/zone.h"

namespace hearth::infer {
namespace {

// Rows of a pass: enough for the products to reach their best rate, and few
// enough for their results to stay in the caches.
constexpr long kPassRows = 512;
// Fewer where every query leaves a partial result for every chunk of keys.
constexpr long kInvariantRows = 64;
// Tokens of a part that are multiplied as single steps are.
constexpr std::size_t kStepTokens = 8;

kernels::KvFormat format_of(KvType type) {
  switch (type) {
    case KvType::float32:
      return kernels::KvFormat::f32;
    case KvType::float16:
      return kernels::KvFormat::f16;
    case KvType::int8:
      return kernels::KvFormat::i8;
    default:
      return kernels::KvFormat::bf16;
  }
}

bool fits_pages(int tokens) {
  constexpr int kLanes = 16;
  return tokens > 0 && tokens % kLanes == 0 &&
         kernels::kPagedChunk % tokens == 0;
}

}  // namespace

std::unique_ptr<CpuRunner> CpuRunner::make(
    const models::LoadedModel& model,
    const RunnerOptions& options,
    const LoraSets& adapters
) {
  if (!fits_pages(options.page_tokens)) return nullptr;
  auto plain = cpu_model(model, adapters);
  if (!plain) return nullptr;
  const KvType kv = options.kv != KvType::automatic ? options.kv
                    : plain->bf16                   ? KvType::bfloat16
                                                    : KvType::float32;
  return std::unique_ptr<CpuRunner>(
      new CpuRunner(model, std::move(*plain), options, adapters, kv)
  );
}

CpuRunner::CpuRunner(
    const models::LoadedModel& loaded,
    CpuModel model,
    const RunnerOptions& options,
    LoraSets adapters,
    KvType kv
)
    : loaded_(loaded),
      model_(std::move(model)),
      options_(options),
      adapters_(std::move(adapters)),
      pages_(
          pages_in_budget(
              *model_.config,
              kv,
              options.page_tokens,
              options.kv_budget_bytes
          ),
          options.page_tokens,
          kv_bytes(
              *model_.config,
              kv,
              static_cast<std::size_t>(options.page_tokens)
          )
      ),
      format_(format_of(kv)) {}

int CpuRunner::vocabulary() const {
  return model_.config->vocab;
}
int CpuRunner::context() const {
  return model_.config->max_length;
}
KvPool CpuRunner::pool() const {
  return pages_.pool();
}

SequenceId CpuRunner::open(int adapter) {
  if (adapter < -1 || adapter >= static_cast<int>(adapters_.size())) {
    throw_no_adapter(adapter, adapters_.size());
  }
  return pages_.open(adapter);
}
SequenceId CpuRunner::fork(SequenceId from, int tokens) {
  return pages_.fork(from, tokens);
}
void CpuRunner::close(SequenceId sequence) {
  pages_.close(sequence);
}
int CpuRunner::length(SequenceId sequence) const {
  return pages_.find(sequence).length;
}
void CpuRunner::truncate(SequenceId sequence, int tokens) {
  pages_.truncate(sequence, tokens);
}
int CpuRunner::pages_for(SequenceId sequence, int more_tokens) const {
  return pages_.pages_for(pages_.find(sequence), more_tokens);
}

std::optional<Hash128> CpuRunner::weights_name(int adapter) {
  if (!base_name_) {
    const auto& parameters = loaded_.decoder->parameters();
    ContentHash base;
    base.field(to_json_line(loaded_.source->config()));
    base.field(models::held_hash(parameters).hex());
    base_name_ = base.digest();
  }
  if (adapter < 0) return base_name_;
  const nn::LoraSet& set = *adapters_.at(static_cast<std::size_t>(adapter));
  ContentHash name;
  name.field(base_name_->hex());
  for (const auto& [layer, lora] : set.layers) {
    const float scale = lora->config().scale();
    name.field(layer).field(std::bit_cast<std::uint32_t>(scale));
  }
  name.field(models::held_hash(set.parameters).hex());
  return name.digest();
}

std::vector<std::span<const std::byte>> CpuRunner::page_bytes(
    SequenceId sequence
) const {
  std::vector<std::span<const std::byte>> out;
  for (const std::byte* page : pages_.find(sequence).at) {
    out.emplace_back(page, pool().page_bytes);
  }
  return out;
}

std::vector<std::span<std::byte>> CpuRunner::restore(
    SequenceId sequence,
    int tokens
) {
  auto& found = pages_.find(sequence);
  const int need = pages_.pages_for(found, tokens);
  if (need > pool().free_pages) throw_pool_full(need, pool());
  pages_.reserve(found, tokens);
  found.length = tokens;
  std::vector<std::span<std::byte>> out;
  for (std::byte* page : found.at) out.emplace_back(page, pool().page_bytes);
  return out;
}

bool CpuRunner::steps_in_bytes(const RunnerPart& part) const {
  if (options_.products == QuantProducts::int8) return true;
  if (options_.products == QuantProducts::exact) return false;
  if (options_.batch_invariant) return true;
  return !part.prompt && part.ids.size() <= kStepTokens;
}

// Single steps go before prompts, in passes of their own, because quantised
// weights are multiplied in another way for each. A dense model has no such
// difference.
std::vector<std::vector<CpuRunner::Piece>> CpuRunner::cut(
    std::span<const RunnerPart> parts
) const {
  const long most = options_.batch_invariant ? kInvariantRows : kPassRows;
  std::vector<std::vector<Piece>> passes;
  for (const bool bytes : {true, false}) {
    long room = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const bool mine = !model_.quantized || steps_in_bytes(parts[i]) == bytes;
      if (!mine || (!model_.quantized && !bytes)) continue;
      const auto all = static_cast<long>(parts[i].ids.size());
      for (long at = 0; at < all;) {
        if (room == 0) {
          passes.emplace_back();
          room = most;
        }
        const long count = std::min(room, all - at);
        passes.back().push_back({i, at, count});
        at += count, room -= count;
      }
    }
  }
  return passes;
}

void CpuRunner::run(
    std::span<const RunnerPart> parts,
    const std::vector<Piece>& pieces,
    const std::vector<ResultPlaces>& first_row
) {
  std::vector<PassPart> rows;
  std::vector<AdapterRows> adapters;
  std::vector<std::int32_t> ids;
  std::vector<long> wanted;
  std::vector<std::size_t> target;
  std::vector<StateRow> states;
  const auto dim = static_cast<std::size_t>(width());
  for (const Piece& piece : pieces) {
    const RunnerPart& part = parts[piece.part];
    auto& sequence = pages_.find(part.sequence);
    const auto row = static_cast<long>(ids.size());
    rows.push_back(
        {&sequence, row, piece.count, sequence.length + piece.begin}
    );
    if (sequence.adapter >= 0) {
      adapters.push_back({row, row + piece.count, sequence.adapter});
    }
    const auto from = part.ids.begin() + piece.begin;
    ids.insert(ids.end(), from, from + piece.count);
    const auto all = static_cast<long>(part.ids.size());
    for (long i = 0; i < piece.count && part.states; ++i) {
      const auto to = first_row[piece.part].states +
                      static_cast<std::size_t>(piece.begin + i);
      states.push_back({row + i, states_.data() + to * dim});
    }
    for (long i = 0; i < piece.count; ++i) {
      const bool last = piece.begin + i + 1 == all;
      if (part.logits == LogitsOf::none ||
          (part.logits == LogitsOf::last && !last)) {
        continue;
      }
      wanted.push_back(row + i);
      target.push_back(
          first_row[piece.part].logits +
          static_cast<std::size_t>(
              part.logits == LogitsOf::all ? piece.begin + i : 0
          )
      );
    }
  }
  const RunnerPart& some = parts[pieces.front().part];
  const QuantWay way =
      steps_in_bytes(some) ? QuantWay::int8
      : options_.products == QuantProducts::exact || !model_.bf16
          ? QuantWay::exact
          : QuantWay::wide;
  const auto count = static_cast<long>(ids.size());
  if (!pass_ || pass_->rows() < count) {
    constexpr long kFirst = 16;
    const long most = options_.batch_invariant ? kInvariantRows : kPassRows;
    pass_.reset();
    pass_ = std::make_unique<CpuPass>(
        model_, ops::current_execution(), format_, options_.page_tokens,
        count <= kFirst ? kFirst : most, options_.batch_invariant
    );
  }
  // Rows of one pass that follow each other in the result are written there.
  const auto vocab = static_cast<std::size_t>(model_.config->vocab);
  bool in_order = true;
  for (std::size_t i = 1; i < target.size(); ++i) {
    in_order = in_order && target[i] == target[i - 1] + 1;
  }
  std::vector<float> aside(in_order ? 0 : target.size() * vocab);
  float* out = aside.data();
  if (in_order && !target.empty()) out = logits_.data() + target[0] * vocab;
  pass_->run({rows, adapters, ids, wanted, way, states}, out);
  for (std::size_t i = 0; i < target.size() && !in_order; ++i) {
    std::copy_n(
        aside.data() + i * vocab, vocab, logits_.data() + target[i] * vocab
    );
  }
}

std::span<const float> CpuRunner::step(std::span<const RunnerPart> parts) {
  const profile::Zone zone("infer.step");
  check_parts(parts, {vocabulary(), context(), [&](SequenceId id) {
                        return length(id);
                      }});
  int pages = 0;
  for (const auto& part : parts) {
    pages += pages_for(part.sequence, static_cast<int>(part.ids.size()));
  }
  if (pages > pool().free_pages) throw_pool_full(pages, pool());
  const auto first_row = result_places(parts);
  logits_.resize(first_row.back().logits * index(vocabulary()));
  states_.resize(first_row.back().states * index(width()));
  // After a refusal the pages taken so far stay with their sequences.
  for (const auto& part : parts) {
    pages_.reserve(
        pages_.find(part.sequence), static_cast<int>(part.ids.size())
    );
  }
  for (const auto& pieces : cut(parts)) run(parts, pieces, first_row);
  for (const auto& part : parts) {
    pages_.find(part.sequence).length += static_cast<int>(part.ids.size());
  }
  return logits_;
}

}  // namespace hearth::infer
