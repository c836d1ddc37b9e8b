#include "hearth/infer/cpu/attention.h"

#include <algorithm>

#include "hearth/kernels/table.h"

namespace hearth::infer {
namespace {

using kernels::Bf16;
using kernels::kPagedChunk;

// Tokens of a part up to which its queries read the pages in place.
constexpr long kFewTokens = 8;

void put(float x, bool bf16, void* out, long at) {
  if (!bf16) {
    static_cast<float*>(out)[at] = x;
    return;
  }
  const auto u = __builtin_bit_cast(std::uint32_t, x);
  const bool nan = x != x;
  static_cast<Bf16*>(out)[at].bits = static_cast<std::uint16_t>(
      nan ? u >> 16 | 0x40u : (u + 0x7fffu + (u >> 16 & 1u)) >> 16
  );
}

AlignedBuffer grown(AlignedBuffer buffer, std::size_t bytes) {
  if (buffer.size() >= bytes) return buffer;
  buffer = {};
  return AlignedBuffer(MemoryZone::named("infer scratch"), bytes + bytes / 2);
}

}  // namespace

CpuAttention::CpuAttention(
    const CpuModel& model,
    const ops::Execution& run,
    kernels::KvFormat format,
    int page_tokens,
    bool invariant
)
    : model_(model),
      run_(run),
      format_(format),
      page_tokens_(page_tokens),
      invariant_(invariant),
      heads_(model.config->heads),
      kv_heads_(model.config->kv_heads),
      dim_(model.config->head_dim),
      part_bytes_(kernels::kv_part_bytes(format, dim_, page_tokens)) {}

bool CpuAttention::few(const PassPart& part) const {
  return invariant_ || part.count <= kFewTokens;
}

void CpuAttention::plan(std::span<const PassPart> parts) {
  parts_ = parts;
  units_.clear(), first_unit_.clear(), part_of_row_.clear();
  const long group = heads_ / kv_heads_;
  std::size_t floats = 0;
  long keys = 0, queries = 0;
  scratch_bytes_ = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const PassPart& part = parts[i];
    part_of_row_.insert(
        part_of_row_.end(), static_cast<std::size_t>(part.count), i
    );
    first_unit_.push_back(units_.size());
    const long end = part.first + part.count;
    if (!few(part)) {
      keys = std::max(keys, end), queries = std::max(queries, part.count);
      continue;
    }
    for (long chunk = 0; chunk * kPagedChunk < end; ++chunk) {
      units_.push_back({i, chunk, floats});
      floats += static_cast<std::size_t>(
          kernels::paged_partial_floats(part.count, group, dim_)
      );
    }
  }
  head_floats_ = floats;
  partials_ = grown(
      std::move(partials_),
      floats * static_cast<std::size_t>(kv_heads_) * sizeof(float)
  );
  if (queries == 0) return;
  const std::size_t size = model_.bf16 ? 2 : 4;
  const auto rows = static_cast<std::size_t>(keys * kv_heads_ * dim_) * size;
  keys_ = grown(std::move(keys_), rows);
  values_ = grown(std::move(values_), rows);
  queries_ = grown(
      std::move(queries_),
      static_cast<std::size_t>(queries * heads_ * dim_) * size
  );
  kernels::AttentionArgs a;
  a.heads = heads_, a.kv_heads = kv_heads_, a.dim = dim_;
  a.queries = queries, a.keys = keys, a.causal = true;
  a.query_type = a.kv_type = model_.bf16 ? kernels::AttentionType::kBfloat16
                                         : kernels::AttentionType::kFloat32;
  constexpr std::size_t kLine = 64;
  scratch_bytes_ =
      (run_.kernels.attention->forward_scratch(a) + kLine - 1) / kLine * kLine;
}

kernels::PagedKv CpuAttention::pages(
    const PassPart& part,
    std::size_t layer,
    long kv_head
) const {
  const auto at = layer * static_cast<std::size_t>(kv_heads_) +
                  static_cast<std::size_t>(kv_head);
  const auto& sequence = *part.sequence;
  return {format_,          dim_,
          page_tokens_,     sequence.at.data(),
          at * part_bytes_, std::ssize(sequence.at)};
}

void CpuAttention::attend(
    int worker,
    std::size_t layer,
    const AttentionRows& rows,
    SpinBarrier& barrier,
    std::byte* scratch
) noexcept {
  const long group = heads_ / kv_heads_;
  const auto all = units_.size() * static_cast<std::size_t>(kv_heads_);
  const Range own = partition(all, 1, worker, run_.pool.size());
  for (std::size_t i = own.begin; i < own.end; ++i) {
    const auto head = static_cast<long>(i / units_.size());
    const Unit& unit = units_[i % units_.size()];
    const PassPart& part = parts_[unit.part];
    kernels::PagedAttentionArgs a;
    a.kv = pages(part, layer, head);
    a.q = rows.q + part.row * rows.q_stride + head * group * dim_;
    a.q_stride = rows.q_stride;
    a.queries = part.count, a.group = group, a.first = part.first;
    a.window = model_.layers[layer].window;
    a.softcap = model_.config->attention_softcap;
    const long begin = unit.chunk * kPagedChunk;
    run_.kernels.paged_attention->attend(
        a, begin, std::min(begin + kPagedChunk, part.first + part.count),
        partials_.as<float>().data() +
            static_cast<std::size_t>(head) * head_floats_ + unit.partial
    );
  }
  for (const PassPart& part : parts_) {
    if (!few(part)) attend_many(worker, part, layer, rows, barrier, scratch);
  }
}

void CpuAttention::attend_many(
    int worker,
    const PassPart& part,
    std::size_t layer,
    const AttentionRows& rows,
    SpinBarrier& barrier,
    std::byte* scratch
) noexcept {
  const long keys = part.first + part.count, size = model_.bf16 ? 2 : 4;
  const int workers = run_.pool.size();
  const long pages_all = (keys + page_tokens_ - 1) / page_tokens_;
  const Range own =
      partition(static_cast<std::size_t>(pages_all), 1, worker, workers);
  for (long head = 0; head < kv_heads_; ++head) {
    const long begin = static_cast<long>(own.begin) * page_tokens_;
    const long end = std::min(static_cast<long>(own.end) * page_tokens_, keys);
    if (begin >= end) continue;
    const long at = (head * keys + begin) * dim_ * size;
    run_.kernels.paged_attention->gather(
        pages(part, layer, head), begin, end, model_.bf16, keys_.data() + at,
        values_.data() + at
    );
  }
  const long width = heads_ * dim_;
  const Range mine =
      partition(static_cast<std::size_t>(part.count), 1, worker, workers);
  for (auto r = static_cast<long>(mine.begin); r < static_cast<long>(mine.end);
       ++r) {
    const float* q = rows.q + (part.row + r) * rows.q_stride;
    for (long i = 0; i < width; ++i) {
      put(q[i], model_.bf16, queries_.data(), r * width + i);
    }
  }
  if (worker == 0) next_ = 0;
  barrier.wait();
  kernels::AttentionArgs a;
  a.heads = heads_, a.kv_heads = kv_heads_, a.dim = dim_;
  a.queries = part.count, a.keys = keys;
  a.query_type = a.kv_type = model_.bf16 ? kernels::AttentionType::kBfloat16
                                         : kernels::AttentionType::kFloat32;
  a.q = {queries_.data(), 0, width, dim_};
  a.k = {keys_.data(), 0, dim_, keys * dim_};
  a.v = {values_.data(), 0, dim_, keys * dim_};
  a.out = {
      static_cast<std::byte*>(rows.out) + part.row * width * size, 0, width,
      dim_
  };
  a.scale = model_.layers[layer].scale;
  a.softcap = model_.config->attention_softcap;
  a.causal = true, a.window = model_.layers[layer].window;
  a.query_offset = part.first;
  const long units = kernels::attention_forward_units(a);
  // The last blocks of queries see the most keys and take longest, so they are
  // started first.
  for (long i = next_++; i < units; i = next_++) {
    run_.kernels.attention->forward(a, units - 1 - i, units - i, scratch);
  }
  barrier.wait();
}

void CpuAttention::finish(
    const AttentionRows& rows,
    long begin,
    long end
) noexcept {
  const long group = heads_ / kv_heads_, width = heads_ * dim_;
  alignas(64) float row[kernels::kAttentionMaxDim];
  for (long r = begin; r < end; ++r) {
    const std::size_t index = part_of_row_[static_cast<std::size_t>(r)];
    const PassPart& part = parts_[index];
    if (!few(part)) continue;
    const auto stride = kernels::paged_partial_floats(part.count, group, dim_);
    const long chunks =
        (part.first + part.count + kPagedChunk - 1) / kPagedChunk;
    for (long head = 0; head < heads_; ++head) {
      const long query = (r - part.row) * group + head % group;
      const float* partial =
          partials_.as<float>().data() +
          static_cast<std::size_t>(head / group) * head_floats_ +
          units_[first_unit_[index]].partial +
          static_cast<std::size_t>(query * (dim_ + 2));
      run_.kernels.paged_attention->combine(partial, chunks, stride, dim_, row);
      for (long i = 0; i < dim_; ++i) {
        put(row[i], model_.bf16, rows.out, r * width + head * dim_ + i);
      }
    }
  }
}

}  // namespace hearth::infer
