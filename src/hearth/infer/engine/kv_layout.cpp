#include "hearth/infer/engine/kv_layout.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/base/units.h"
#include "hearth/hardware/machine.h"

namespace hearth::infer {

KvType own_kv_type(mlx::core::Dtype compute) {
  return compute == mlx::core::float32 ? KvType::float32 : KvType::bfloat16;
}

bool rotations_by_length(const models::DecoderConfig& c) {
  const auto dynamic = [](const std::optional<ops::RopeConfig>& rope) {
    return rope && rope->scaling == ops::RopeScaling::dynamic;
  };
  return dynamic(c.rope) || dynamic(c.local_rope);
}

std::size_t kv_element_bytes(KvType type) {
  return type == KvType::int8 ? 1 : type == KvType::float32 ? 4 : 2;
}

const char* name_of(KvType type) {
  switch (type) {
    case KvType::automatic:
      return "auto";
    case KvType::bfloat16:
      return "bf16";
    case KvType::float16:
      return "fp16";
    case KvType::float32:
      return "fp32";
    case KvType::int8:
      return "int8";
  }
  return "";
}

std::size_t kv_bytes(
    const models::DecoderConfig& c,
    KvType type,
    std::size_t tokens
) {
  const auto rows = 2 * static_cast<std::size_t>(c.layers) *
                    static_cast<std::size_t>(c.kv_heads) * tokens;
  const std::size_t scales = type == KvType::int8 ? rows * sizeof(float) : 0;
  return c.kv_bytes_per_token(kv_element_bytes(type)) * tokens + scales;
}

std::string kv_formula(
    const models::DecoderConfig& c,
    KvType type,
    std::size_t tokens
) {
  std::string text = fmt::format(
      "2 x {} layers x {} kv heads x {} head dim x {} tokens x {} bytes ({})",
      c.layers, c.kv_heads, c.head_dim, tokens, kv_element_bytes(type),
      name_of(type)
  );
  if (type == KvType::int8) {
    text += fmt::format(
        " + 2 x {} x {} x {} scales x 4 bytes", c.layers, c.kv_heads, tokens
    );
  }
  return text + " = " + format_bytes(kv_bytes(c, type, tokens));
}

void check_kv_budget(std::size_t bytes, std::string_view name) {
  const auto free = hardware::safe_memory(hardware::detect());
  // 0: nobody knows.
  if (free.bytes == 0 || bytes <= free.bytes) return;
  throw UsageError(
      fmt::format(
          "{} must fit the free memory, {} ({}), got {}", name,
          format_bytes(free.bytes), free.derivation, format_bytes(bytes)
      )
  );
}

std::size_t first_share(
    std::size_t budget,
    std::size_t first,
    std::size_t second
) {
  const auto sum = static_cast<double>(first + second);
  return static_cast<std::size_t>(
      static_cast<double>(budget) * static_cast<double>(first) / sum
  );
}

int pages_in_budget(
    const models::DecoderConfig& c,
    KvType type,
    int page_tokens,
    std::size_t budget
) {
  if (page_tokens < 1) {
    throw UsageError(
        fmt::format(
            "[infer.make_runner] a page must hold at least one token, got {}",
            page_tokens
        )
    );
  }
  const auto tokens = static_cast<std::size_t>(page_tokens);
  const std::size_t page = kv_bytes(c, type, tokens);
  if (budget == 0) {
    constexpr std::size_t kContexts = 8, kShare = 4;
    const auto context = static_cast<std::size_t>(c.max_length);
    const std::size_t whole = (context + tokens - 1) / tokens * page;
    const std::size_t free =
        hardware::safe_memory(hardware::detect()).bytes / kShare;
    budget = std::max(std::min(kContexts * whole, free), page);
  } else {
    check_kv_budget(
        budget, "[infer.make_runner] the budget of keys and values"
    );
  }
  if (budget < page) {
    throw UsageError(
        fmt::format(
            "[infer.make_runner] the budget of keys and values must hold a "
            "page of {} tokens, {} bytes, got {} bytes",
            page_tokens, page, budget
        )
    );
  }
  return static_cast<int>(
      std::min<std::size_t>(budget / page, std::numeric_limits<int>::max())
  );
}

}  // namespace hearth::infer
