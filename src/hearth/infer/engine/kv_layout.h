#pragma once
// How large keys and values are:
//   2 x layers x kv_heads x head_dim x tokens x bytes per element,
// and with int8 another 2 x layers x kv_heads x tokens scales of 4 bytes.
#include <cstddef>
#include <string>
#include <string_view>

#include "hearth/infer/engine/kv_type.h"
#include "hearth/models/decoder_config.h"

namespace hearth::infer {

// What a graph of that dtype makes keys and values, unless they are int8.
KvType own_kv_type(mlx::core::Dtype compute);

// Whether rotations depend on the length in use: keys that are kept would not
// fit a longer text.
bool rotations_by_length(const models::DecoderConfig& config);

// bf16, fp16, fp32 or int8; not automatic.
std::size_t kv_element_bytes(KvType type);
const char* name_of(KvType type);

std::size_t kv_bytes(
    const models::DecoderConfig& config,
    KvType type,
    std::size_t tokens
);
// The formula with the model's numbers in it and its result, for reports.
std::string kv_formula(
    const models::DecoderConfig& config,
    KvType type,
    std::size_t tokens
);

// Throws UsageError, begun with the budget's name, when that many bytes are not
// free.
void check_kv_budget(std::size_t bytes, std::string_view name);

// What of a budget for two models' keys and values the first may have, so that
// both hold as many tokens: a share by the bytes that a token takes in each. 0
// stays 0.
std::size_t first_share(
    std::size_t budget,
    std::size_t first,
    std::size_t second
);

// Pages of that many tokens that the budget holds; 0 as RunnerOptions says.
// Throws UsageError when it holds none, or when the machine does not have as
// much.
int pages_in_budget(
    const models::DecoderConfig& config,
    KvType type,
    int page_tokens,
    std::size_t budget
);

}  // namespace hearth::infer
