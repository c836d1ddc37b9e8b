#include "hearth/infer/graph/paged_runner.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/infer/engine/kv_layout.h"
#include "hearth/infer/engine/runner_parts.h"
#include "hearth/infer/graph/ints.h"
#include "hearth/ops/compiled.h"
#include "hearth/profile/zone.h"

namespace hearth::infer {
namespace {

// Of a prompt in one pass.
constexpr int kPiece = 512;

// Rows of an evaluated float32 array, to the end of a vector.
void copy_rows(mx::array rows, std::size_t count, float* to) {
  rows = mx::contiguous(rows);
  rows.eval();
  std::copy_n(rows.data<float>(), count, to);
}

}  // namespace

std::unique_ptr<PagedRunner> PagedRunner::make(
    const models::LoadedModel& model,
    const RunnerOptions& options,
    Adapters adapters
) {
  const auto& c = model.decoder->config();
  const KvType own = own_kv_type(model.compute);
  const bool held = options.kv == KvType::automatic || options.kv == own;
  if (!held || rotations_by_length(c) ||
      !ops::paged_attention_fits(
          c.head_dim, options.page_tokens, model.compute
      )) {
    return nullptr;
  }
  const int pages =
      pages_in_budget(c, own, options.page_tokens, options.kv_budget_bytes);
  return std::unique_ptr<PagedRunner>(
      new PagedRunner(model, options, std::move(adapters), pages)
  );
}

PagedRunner::PagedRunner(
    const models::LoadedModel& model,
    const RunnerOptions& options,
    Adapters adapters,
    int pages
)
    : model_(model),
      options_(options),
      adapters_(std::move(adapters)),
      arrays_(
          model.decoder->config(),
          model.compute,
          options.page_tokens,
          pages
      ),
      pages_(
          pages,
          options.page_tokens,
          kv_bytes(
              model.decoder->config(),
              own_kv_type(model.compute),
              index(options.page_tokens)
          ),
          {[this](int count) { arrays_.reach(count); },
           [this](int from, int to) { arrays_.copy(from, to); }}
      ),
      decode_(model, arrays_, ops::compiles({})) {
  model.decoder->join_products();
}

int PagedRunner::vocabulary() const {
  return model_.decoder->config().vocab;
}
int PagedRunner::context() const {
  return model_.decoder->config().max_length;
}
int PagedRunner::width() const {
  return model_.decoder->config().dim;
}

SequenceId PagedRunner::open(int adapter) {
  if (adapter < -1 || adapter >= static_cast<int>(adapters_.size())) {
    throw_no_adapter(adapter, adapters_.size());
  }
  return pages_.open(adapter);
}
SequenceId PagedRunner::fork(SequenceId from, int tokens) {
  return pages_.fork(from, tokens);
}
void PagedRunner::close(SequenceId sequence) {
  pages_.close(sequence);
}
int PagedRunner::length(SequenceId sequence) const {
  return pages_.find(sequence).length;
}
void PagedRunner::truncate(SequenceId sequence, int tokens) {
  pages_.truncate(sequence, tokens);
}
int PagedRunner::pages_for(SequenceId sequence, int more_tokens) const {
  return pages_.pages_for(pages_.find(sequence), more_tokens);
}

const nn::LoraSet* PagedRunner::adapter_of(
    const KvPages::Sequence& sequence
) const {
  if (sequence.adapter < 0) return nullptr;
  return adapters_[index(sequence.adapter)].get();
}

void PagedRunner::reserve(std::span<const std::pair<SequenceId, int>> wanted) {
  int pages = 0;
  for (const auto& [id, tokens] : wanted) pages += pages_for(id, tokens);
  if (pages > pool().free_pages) throw_pool_full(pages, pool());
  for (const auto& [id, tokens] : wanted) {
    pages_.reserve(pages_.find(id), tokens);
  }
}

// Places of the pages of every row, [rows, most]; nobody's where a row has no
// more, and in the rows that fill a step up.
std::vector<int> PagedRunner::table_of(
    std::span<const KvPages::Sequence* const> sequences,
    int rows,
    int most
) const {
  std::vector<int> out(index(rows) * index(most));
  for (std::size_t r = 0; r < sequences.size(); ++r) {
    const auto& pages = sequences[r]->pages;
    const auto count = std::min(pages.size(), index(most));
    for (std::size_t i = 0; i < count; ++i) {
      out[r * index(most) + i] = DevicePages::place(pages[i]);
    }
  }
  return out;
}

void PagedRunner::decode_alike(
    std::span<const Row> rows,
    const nn::LoraSet* lora
) {
  const int count = DecodeStep::rows_for(static_cast<int>(rows.size()));
  std::vector<int> ids(index(count)), lengths(index(count));
  std::vector<const KvPages::Sequence*> sequences;
  int longest = 0;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    ids[r] = rows[r].id, lengths[r] = rows[r].length;
    sequences.push_back(rows[r].sequence);
    longest = std::max(longest, rows[r].length + 1);
  }
  const int most = decode_.pages_for(longest);
  const auto out = decode_.logits(
      {ints(ids, {count}),
       ints(lengths, {count}),
       ints(table_of(sequences, count, most), {count, most}),
       {}},
      lora
  );
  const bool states = std::ranges::any_of(rows, &Row::states);
  auto logits = out[0];
  mx::async_eval(logits);
  if (states) mx::async_eval(out[1]);
  logits.eval();
  const auto vocab = index(vocabulary()), wide = index(width());
  for (std::size_t r = 0; r < rows.size(); ++r) {
    if (!rows[r].logits) continue;
    std::copy_n(
        logits.data<float>() + r * vocab, vocab,
        logits_.data() + rows[r].to.logits * vocab
    );
  }
  if (!states) return;
  auto h = out[1];
  h.eval();
  for (std::size_t r = 0; r < rows.size(); ++r) {
    if (!rows[r].states) continue;
    std::copy_n(
        h.data<float>() + r * wide, wide,
        states_.data() + rows[r].to.states * wide
    );
  }
}

void PagedRunner::decode(std::span<const Row> rows) {
  std::vector<const nn::LoraSet*> adapters;
  for (const Row& row : rows) {
    const auto* lora = adapter_of(*row.sequence);
    if (std::ranges::find(adapters, lora) == adapters.end()) {
      adapters.push_back(lora);
    }
  }
  for (const auto* lora : adapters) {
    std::vector<Row> alike;
    std::ranges::copy_if(rows, std::back_inserter(alike), [&](const Row& row) {
      return adapter_of(*row.sequence) == lora;
    });
    decode_alike(alike, lora);
  }
}

void PagedRunner::feed_piece(
    const RunnerPart& part,
    int begin,
    int count,
    ResultPlaces& to
) {
  const auto& sequence = pages_.find(part.sequence);
  const int before = sequence.length + begin, after = before + count;
  const int page = arrays_.page_tokens();
  const int most = (after + page - 1) / page;
  const KvPages::Sequence* one[] = {&sequence};
  const nn::PagedPass paged{
      &arrays_.layers(),
      {ints(table_of(one, 1, most), {1, most}), ints({before}, {1})},
      before
  };
  nn::Pass pass;
  pass.dtype = model_.compute;
  std::vector<int> positions(index(count));
  std::iota(positions.begin(), positions.end(), before);
  pass.positions = ints(positions, {1, count});
  pass.length = after;
  pass.paged = &paged;
  pass.lora = adapter_of(sequence);
  const auto& decoder = *model_.decoder;
  const auto ids = mx::array(part.ids.data() + begin, {1, count}, mx::int32);
  auto h = decoder.hidden(ids, pass);
  if (part.states) {
    copy_rows(
        mx::astype(h, mx::float32), index(count) * index(width()),
        states_.data() + to.states * index(width())
    );
    to.states += index(count);
  }
  const bool last = index(begin + count) == part.ids.size();
  const bool all = part.logits == LogitsOf::all;
  if (part.logits == LogitsOf::none || (!all && !last)) {
    h.eval();
    return;
  }
  if (!all) h = mx::slice(h, {0, count - 1, 0}, {1, count, h.shape(2)});
  const auto rows = index(h.shape(1));
  copy_rows(
      decoder.logits(h, pass), rows * index(vocabulary()),
      logits_.data() + to.logits * index(vocabulary())
  );
  to.logits += rows;
}

void PagedRunner::feed(const RunnerPart& part, const ResultPlaces& to) {
  const auto& sequence = pages_.find(part.sequence);
  const int all = static_cast<int>(part.ids.size());
  if (!options_.batch_invariant) {
    ResultPlaces at = to;
    for (int begin = 0; begin < all; begin += kPiece) {
      feed_piece(part, begin, std::min(kPiece, all - begin), at);
    }
    return;
  }
  ResultPlaces at = to;
  for (int i = 0; i < all; ++i) {
    const bool logits = part.logits == LogitsOf::all ||
                        (part.logits == LogitsOf::last && i + 1 == all);
    const Row row{&sequence, part.ids[index(i)], sequence.length + i, at,
                  logits,    part.states};
    decode_alike({&row, 1}, adapter_of(sequence));
    at.logits += logits ? 1 : 0;
    at.states += part.states ? 1 : 0;
  }
}

std::span<const float> PagedRunner::step(std::span<const RunnerPart> parts) {
  const profile::Zone zone("infer.step");
  check_parts(parts, {vocabulary(), context(), [&](SequenceId id) {
                        return length(id);
                      }});
  std::vector<std::pair<SequenceId, int>> wanted;
  for (const auto& part : parts) {
    wanted.emplace_back(part.sequence, static_cast<int>(part.ids.size()));
  }
  reserve(wanted);
  DevicePages::settle();
  const auto places = result_places(parts);
  logits_.resize(places.back().logits * index(vocabulary()));
  states_.resize(places.back().states * index(width()));
  std::vector<Row> rows;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto& part = parts[i];
    if (part.ids.size() > 1 || options_.batch_invariant) {
      feed(part, places[i]);
      continue;
    }
    const auto& sequence = pages_.find(part.sequence);
    const bool logits = part.logits != LogitsOf::none;
    rows.push_back(
        {&sequence, part.ids[0], sequence.length, places[i], logits,
         part.states}
    );
  }
  if (!rows.empty()) decode(rows);
  for (const auto& [id, tokens] : wanted) pages_.find(id).length += tokens;
  return logits_;
}

}  // namespace hearth::infer
