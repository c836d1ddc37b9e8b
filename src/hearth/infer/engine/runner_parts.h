#pragma once
// What every runner asks of the parts of a step before it begins.
#include <functional>
#include <span>

#include "hearth/infer/engine/runner.h"

namespace hearth::infer {

struct PartLimits {
  int vocabulary = 0, context = 0;
  // The length of the sequence with that id; throws UsageError when there is
  // none.
  std::function<int(SequenceId)> length;
};
// Throws UsageError for ids that are no tokens, parts without tokens, more
// tokens than the context holds, and a sequence that comes twice.
void check_parts(std::span<const RunnerPart> parts, const PartLimits& limits);

// Throws UsageError unless 0 <= tokens <= length.
void check_cut(const char* what, int tokens, int length);

[[noreturn]] void throw_no_sequence(SequenceId id);
[[noreturn]] void throw_no_adapter(int adapter, std::size_t adapters);
[[noreturn]] void throw_pool_full(int wanted, const KvPool& pool);

// Rows of logits that the parts ask for.
std::size_t logit_rows(std::span<const RunnerPart> parts);

}  // namespace hearth::infer
