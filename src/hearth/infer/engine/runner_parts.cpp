#include "hearth/infer/engine/runner_parts.h"

#include <algorithm>

#include <fmt/format.h>

#include "hearth/base/error.h"

namespace hearth::infer {
namespace {

void check_part(const RunnerPart& part, const PartLimits& limits) {
  const int length = limits.length(part.sequence);
  if (part.ids.empty()) {
    throw UsageError("[infer.Runner] a part must have at least one token");
  }
  for (const std::int32_t id : part.ids) {
    if (id >= 0 && id < limits.vocabulary) continue;
    throw UsageError(
        fmt::format(
            "[infer.Runner] a token id must be from 0 to {}, got {}",
            limits.vocabulary - 1, id
        )
    );
  }
  if (part.ids.size() > static_cast<std::size_t>(limits.context - length)) {
    throw UsageError(
        fmt::format(
            "[infer.Runner] the model's context is {} tokens, got {}",
            limits.context, static_cast<std::size_t>(length) + part.ids.size()
        )
    );
  }
}

}  // namespace

void check_parts(std::span<const RunnerPart> parts, const PartLimits& limits) {
  std::vector<SequenceId> seen;
  for (const auto& part : parts) {
    check_part(part, limits);
    seen.push_back(part.sequence);
  }
  std::ranges::sort(seen);
  const auto twice = std::ranges::adjacent_find(seen);
  if (twice == seen.end()) return;
  throw UsageError(
      fmt::format(
          "[infer.Runner] a sequence must be in one part of a step, got {} in "
          "two",
          *twice
      )
  );
}

void check_cut(const char* what, int tokens, int length) {
  if (tokens >= 0 && tokens <= length) return;
  throw UsageError(
      fmt::format(
          "[infer.Runner] {} must keep 0 to {} tokens, got {}", what, length,
          tokens
      )
  );
}

void throw_no_sequence(SequenceId id) {
  throw UsageError(
      fmt::format("[infer.Runner] a sequence must be open, got {}", id)
  );
}

void throw_no_adapter(int adapter, std::size_t adapters) {
  throw UsageError(
      fmt::format(
          "[infer.Runner] an adapter must be -1 or below {}, got {}", adapters,
          adapter
      )
  );
}

void throw_pool_full(int wanted, const KvPool& pool) {
  throw OutOfMemory(
      fmt::format(
          "[infer.Runner] the pool of keys and values must have {} free pages "
          "of {} tokens, got {} of {}",
          wanted, pool.page_tokens, pool.free_pages, pool.pages
      )
  );
}

std::size_t logit_rows(std::span<const RunnerPart> parts) {
  std::size_t rows = 0;
  for (const auto& part : parts) {
    rows += part.logits == LogitsOf::none  ? 0
            : part.logits == LogitsOf::all ? part.ids.size()
                                           : 1;
  }
  return rows;
}

std::vector<ResultPlaces> result_places(std::span<const RunnerPart> parts) {
  std::vector<ResultPlaces> out{{}};
  for (const auto& part : parts) {
    ResultPlaces next = out.back();
    next.logits += logit_rows({&part, 1});
    next.states += part.states ? part.ids.size() : 0;
    out.push_back(next);
  }
  return out;
}

}  // namespace hearth::infer
