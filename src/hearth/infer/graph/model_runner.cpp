#include "hearth/infer/graph/model_runner.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/infer/engine/kv_layout.h"
#include "hearth/infer/engine/runner_parts.h"
#include "hearth/models/adapters.h"
#include "hearth/ops/execution.h"
#include "hearth/profile/zone.h"

namespace hearth::infer {
namespace {

// The graph's caches hold what its activations are, or int8.
KvType held_type(KvType kv, mx::Dtype compute) {
  const KvType own = own_kv_type(compute);
  if (kv == KvType::automatic || kv == own) return own;
  if (kv == KvType::int8) return kv;
  throw UsageError(
      fmt::format(
          "[infer.ModelRunner] keys and values must be int8 or of the "
          "activations' type, {}, got {}",
          name_of(own), name_of(kv)
      )
  );
}

mx::Dtype dtype_of(KvType type) {
  return type == KvType::int8      ? mx::int8
         : type == KvType::float32 ? mx::float32
                                   : mx::bfloat16;
}

// Steps of few tokens hold next to no memory, and waiting for room after every
// second op costs more than the ops do.
class FreeRunning {
 public:
  explicit FreeRunning(bool wanted) : before_(ops::run_ahead()) {
    if (wanted) ops::set_run_ahead(0);
  }
  ~FreeRunning() { ops::set_run_ahead(before_); }
  FreeRunning(const FreeRunning&) = delete;
  FreeRunning& operator=(const FreeRunning&) = delete;

 private:
  int before_;
};

}  // namespace

ModelRunner::ModelRunner(
    const models::LoadedModel& model,
    const RunnerOptions& options
)
    : model_(model), options_(options), kv_dtype_(mx::bfloat16) {
  const auto& config = model.decoder->config();
  const KvType kv = held_type(options.kv, model.compute);
  kv_dtype_ = dtype_of(kv);
  pool_.page_tokens = options.page_tokens;
  pool_.pages = pool_.free_pages =
      pages_in_budget(config, kv, options.page_tokens, options.kv_budget_bytes);
  pool_.page_bytes =
      kv_bytes(config, kv, static_cast<std::size_t>(options.page_tokens));
  for (const auto& folder : options.adapters) {
    adapters_.push_back(models::read_adapter(model, folder));
  }
}

ModelRunner::~ModelRunner() = default;

int ModelRunner::vocabulary() const {
  return model_.decoder->config().vocab;
}
int ModelRunner::context() const {
  return model_.decoder->config().max_length;
}
int ModelRunner::width() const {
  return model_.decoder->config().dim;
}
KvPool ModelRunner::pool() const {
  return pool_;
}

ModelRunner::Entry& ModelRunner::find(SequenceId id) {
  const auto at = sequences_.find(id);
  if (at == sequences_.end()) throw_no_sequence(id);
  return at->second;
}
const ModelRunner::Entry& ModelRunner::find(SequenceId id) const {
  const auto at = sequences_.find(id);
  if (at == sequences_.end()) throw_no_sequence(id);
  return at->second;
}

int ModelRunner::pages_of(int tokens) const {
  return (tokens + pool_.page_tokens - 1) / pool_.page_tokens;
}

SequenceId ModelRunner::open(int adapter) {
  if (adapter < -1 || adapter >= static_cast<int>(adapters_.size())) {
    throw_no_adapter(adapter, adapters_.size());
  }
  Entry entry;
  entry.caches = model_.decoder->make_caches(kv_dtype_, pool_.page_tokens);
  entry.adapter = adapter;
  sequences_.emplace(next_, std::move(entry));
  return next_++;
}

SequenceId ModelRunner::fork(SequenceId from, int tokens) {
  const Entry& old = find(from);
  check_cut("a fork", tokens, old.length);
  const int pages = pages_of(tokens);
  if (pages > pool_.free_pages) throw_pool_full(pages, pool_);
  Entry entry;
  entry.length = tokens, entry.adapter = old.adapter;
  for (const auto& cache : old.caches) {
    entry.caches.push_back(cache->fork(tokens));
  }
  pool_.free_pages -= pages;
  sequences_.emplace(next_, std::move(entry));
  return next_++;
}

void ModelRunner::close(SequenceId sequence) {
  pool_.free_pages += pages_of(find(sequence).length);
  sequences_.erase(sequence);
}

int ModelRunner::length(SequenceId sequence) const {
  return find(sequence).length;
}

void ModelRunner::truncate(SequenceId sequence, int tokens) {
  Entry& entry = find(sequence);
  check_cut("truncate", tokens, entry.length);
  // Memory of the pages that are given up goes back too.
  std::vector<std::shared_ptr<ops::KvCache>> shorter;
  const int freed = pages_of(entry.length) - pages_of(tokens);
  for (const auto& cache : entry.caches) {
    if (freed > 0) {
      shorter.push_back(cache->fork(tokens));
    } else {
      cache->truncate(tokens);
    }
  }
  if (freed > 0) entry.caches = std::move(shorter);
  entry.length = tokens;
  pool_.free_pages += freed;
}

int ModelRunner::pages_held(std::span<const SequenceId> sequences) const {
  int pages = 0;
  for (const SequenceId s : sequences) pages += pages_of(find(s).length);
  return pages;
}

int ModelRunner::pages_for(SequenceId sequence, int more_tokens) const {
  const int length = find(sequence).length;
  return pages_of(length + more_tokens) - pages_of(length);
}

nn::Pass ModelRunner::pass_of(Entry& entry, int tokens, bool prompt) const {
  nn::Pass pass;
  pass.dtype = model_.compute;
  // The prompt's errors stay in the keys and values for good.
  const bool many = tokens > 1 || (prompt && !options_.batch_invariant);
  const bool exact = options_.products == QuantProducts::exact ||
                     (options_.products == QuantProducts::automatic && many);
  pass.quantized = exact ? ops::QuantCompute::kExact : ops::QuantCompute::kInt8;
  std::vector<int> positions(static_cast<std::size_t>(tokens));
  std::iota(positions.begin(), positions.end(), entry.length);
  pass.positions = mx::array(positions.data(), {1, tokens}, mx::int32);
  pass.length = entry.length + tokens;
  pass.caches = &entry.caches;
  if (entry.adapter >= 0) {
    pass.lora = adapters_[static_cast<std::size_t>(entry.adapter)].get();
  }
  return pass;
}

void ModelRunner::feed_chunk(
    Entry& entry,
    std::span<const std::int32_t> ids,
    LogitsOf logits,
    const RunnerPart& part
) {
  const auto n = static_cast<int>(ids.size());
  constexpr int kFew = 8;
  const FreeRunning free_running(n <= kFew);
  const nn::Pass pass = pass_of(entry, n, part.prompt);
  auto h =
      model_.decoder->hidden(mx::array(ids.data(), {1, n}, mx::int32), pass);
  entry.length += n;
  if (part.states) {
    auto rows = mx::contiguous(mx::astype(h, mx::float32));
    rows.eval();
    states_.insert(
        states_.end(), rows.data<float>(), rows.data<float>() + rows.size()
    );
  }
  if (logits == LogitsOf::none) {
    h.eval();
    return;
  }
  const bool all = logits == LogitsOf::all || n == 1;
  const auto wanted = all ? h : mx::slice(h, {0, n - 1, 0}, {1, n, h.shape(2)});
  auto rows = mx::contiguous(model_.decoder->logits(wanted, pass));
  rows.eval();
  logits_.insert(
      logits_.end(), rows.data<float>(), rows.data<float>() + rows.size()
  );
}

void ModelRunner::feed(Entry& entry, const RunnerPart& part) {
  constexpr std::size_t kChunk = 512;
  auto ids = part.ids;
  const std::size_t chunk = options_.batch_invariant ? 1 : kChunk;
  const auto before =
      part.logits == LogitsOf::all ? LogitsOf::all : LogitsOf::none;
  while (ids.size() > chunk) {
    feed_chunk(entry, ids.first(chunk), before, part);
    ids = ids.subspan(chunk);
  }
  feed_chunk(entry, ids, part.logits, part);
}

std::span<const float> ModelRunner::step(std::span<const RunnerPart> parts) {
  const profile::Zone zone("infer.step");
  check_parts(parts, {vocabulary(), context(), [&](SequenceId id) {
                        return length(id);
                      }});
  int pages = 0;
  for (const auto& part : parts) {
    pages += pages_for(part.sequence, static_cast<int>(part.ids.size()));
  }
  if (pages > pool_.free_pages) throw_pool_full(pages, pool_);
  logits_.clear();
  states_.clear();
  logits_.reserve(logit_rows(parts) * static_cast<std::size_t>(vocabulary()));
  std::vector<int> lengths;
  for (const auto& part : parts) lengths.push_back(length(part.sequence));
  try {
    for (const auto& part : parts) feed(find(part.sequence), part);
  } catch (...) {
    // The machine's own budget may refuse in the middle.
    for (std::size_t i = 0; i < parts.size(); ++i) {
      Entry& entry = find(parts[i].sequence);
      for (const auto& cache : entry.caches) {
        if (cache->length() > lengths[i]) cache->truncate(lengths[i]);
      }
      entry.length = lengths[i];
    }
    throw;
  }
  pool_.free_pages -= pages;
  return logits_;
}

}  // namespace hearth::infer
