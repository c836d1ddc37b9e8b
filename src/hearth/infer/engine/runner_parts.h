#pragma once
// What runners have in common: what they ask of the parts of a step before it
// begins, and where the results of each go.
#include <functional>
#include <span>
#include <vector>

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

// A row of logits, and a row of states, among those that a step gives.
struct ResultPlaces {
  std::size_t logits = 0, states = 0;
};
// Where the rows of each part begin; last, how many there are of all.
std::vector<ResultPlaces> result_places(std::span<const RunnerPart> parts);

// Numbers of tokens, pages and places are int, as MLX's shapes are.
inline std::size_t index(int i) {
  return static_cast<std::size_t>(i);
}

}  // namespace hearth::infer
