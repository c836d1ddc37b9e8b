#include "hearth/kernels/quant/format.h"

#include <charconv>
#include <iterator>
#include <optional>

#include <fmt/format.h>

#include "hearth/base/block_format.h"
#include "hearth/base/error.h"

namespace hearth::kernels {
namespace {

// The index of a kind among GGUF's blocks, which follow one another in the same
// order in both lists.
constexpr auto kFirstBlock = static_cast<std::size_t>(QuantKind::kQ8_0);
static_assert(
    static_cast<std::size_t>(QuantKind::kQ6_K) + 1 - kFirstBlock ==
    kBlockFormats.size()
);
// That each kind's row is its own.
constexpr bool has_row(QuantKind kind, std::string_view name) {
  const auto at = static_cast<std::size_t>(kind) - kFirstBlock;
  return kBlockFormats.at(at).name == name;
}
static_assert(has_row(QuantKind::kQ8_0, "q8_0"));
static_assert(has_row(QuantKind::kQ4_0, "q4_0"));
static_assert(has_row(QuantKind::kQ4_1, "q4_1"));
static_assert(has_row(QuantKind::kQ4_K, "q4_k"));
static_assert(has_row(QuantKind::kQ5_K, "q5_k"));
static_assert(has_row(QuantKind::kQ6_K, "q6_k"));
constexpr const char* kScaleNames[] = {"f16", "bf16", "f32"};

const BlockFormat* gguf_block(QuantKind kind) noexcept {
  const auto at = static_cast<std::size_t>(kind) - kFirstBlock;
  return at < kBlockFormats.size() ? &kBlockFormats[at] : nullptr;
}

std::string block_names() {
  std::string names;
  for (const BlockFormat& b : kBlockFormats) {
    if (!names.empty()) names += ", ";
    names += b.name;
  }
  return names;
}

bool known(const QuantFormat& f) noexcept {
  switch (f.kind) {
    case QuantKind::kAffine:
      return f.bits >= 2 && f.bits <= 8 && f.bits != 7 &&
             (f.group == 32 || f.group == 64 || f.group == 128);
    case QuantKind::kSymmetric:
      return (f.bits == 4 || f.bits == 8) && f.group >= 0 && f.group % 32 == 0;
    default:
      return gguf_block(f.kind) != nullptr && f == QuantFormat::gguf(f.kind);
  }
}

QuantFormat checked(std::string_view who, QuantFormat f) {
  f.check(who, f.block_columns());
  return f;
}

std::optional<int> number(std::string_view text) {
  int value = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  return value;
}

std::optional<ScaleType> scale_named(std::string_view text) {
  for (std::size_t i = 0; i < std::size(kScaleNames); ++i) {
    if (text == kScaleNames[i]) return static_cast<ScaleType>(i);
  }
  return {};
}

// "<kind><bits>-g<group>-<scale>", or "-channel-" for the group.
std::optional<QuantFormat> parse_grouped(std::string_view name) {
  QuantFormat f;
  if (name.starts_with("affine")) {
    f.kind = QuantKind::kAffine;
    name.remove_prefix(6);
  } else if (name.starts_with("int")) {
    f.kind = QuantKind::kSymmetric;
    name.remove_prefix(3);
  } else {
    return {};
  }
  const auto first = name.find('-'), second = name.find('-', first + 1);
  if (first == name.npos || second == name.npos) return {};
  const std::string_view group = name.substr(first + 1, second - first - 1);
  const auto bits = number(name.substr(0, first));
  const auto scale = scale_named(name.substr(second + 1));
  const auto columns = group == "channel"       ? std::optional<int>(0)
                       : group.starts_with('g') ? number(group.substr(1))
                                                : std::nullopt;
  if (!bits || !scale || !columns) return {};
  f.bits = *bits, f.group = *columns, f.scale = *scale;
  // A group of 0 has only one spelling.
  if (!known(f) || (f.group == 0) != (group == "channel")) return {};
  return f;
}

}  // namespace

std::size_t size_of(ScaleType type) noexcept {
  return type == ScaleType::kF32 ? 4 : 2;
}

QuantFormat QuantFormat::affine(int bits, int group, ScaleType scale) {
  return checked(
      "kernels.QuantFormat", {QuantKind::kAffine, bits, group, scale}
  );
}

QuantFormat QuantFormat::symmetric(int bits, int group, ScaleType scale) {
  return checked(
      "kernels.QuantFormat", {QuantKind::kSymmetric, bits, group, scale}
  );
}

QuantFormat QuantFormat::gguf(QuantKind kind) {
  const BlockFormat* b = gguf_block(kind);
  if (b == nullptr) {
    throw UsageError("[kernels.QuantFormat] kind must be a GGUF block type");
  }
  return {kind, b->bits, b->group, ScaleType::kF16};
}

QuantFormat QuantFormat::parse(std::string_view name) {
  for (std::size_t i = 0; i < kBlockFormats.size(); ++i) {
    if (name == kBlockFormats[i].name) {
      return gguf(static_cast<QuantKind>(kFirstBlock + i));
    }
  }
  if (const auto f = parse_grouped(name)) return *f;
  throw UsageError(
      fmt::format(
          "[kernels.QuantFormat] a format is affineB-gG-T (B 2-6 or 8, G 32, "
          "64 or "
          "128), intB-gG-T or intB-channel-T (B 4 or 8), with T f16, bf16 or "
          "f32, "
          "or one of {}, got '{}'",
          block_names(), name
      )
  );
}

std::string QuantFormat::name() const {
  if (const BlockFormat* b = gguf_block(kind)) return std::string(b->name);
  return fmt::format(
      "{}{}-{}-{}", kind == QuantKind::kAffine ? "affine" : "int", bits,
      group == 0 ? "channel" : fmt::format("g{}", group),
      kScaleNames[static_cast<int>(scale)]
  );
}

bool QuantFormat::is_gguf() const noexcept {
  return gguf_block(kind) != nullptr;
}

long QuantFormat::block_columns() const noexcept {
  if (const BlockFormat* b = gguf_block(kind)) return b->columns;
  if (group > 0) return group;
  return bits == 4 ? 2 : 1;
}

std::size_t QuantFormat::block_bytes() const noexcept {
  if (const BlockFormat* b = gguf_block(kind)) {
    return static_cast<std::size_t>(b->bytes);
  }
  return static_cast<std::size_t>(block_columns() * bits) / 8;
}

std::size_t QuantFormat::code_bytes(long cols) const noexcept {
  return static_cast<std::size_t>(cols / block_columns()) * block_bytes();
}

std::size_t QuantFormat::scale_count(long cols) const noexcept {
  if (is_gguf()) return 0;
  return group == 0 ? 1 : static_cast<std::size_t>(cols / group);
}

std::size_t QuantFormat::bias_count(long cols) const noexcept {
  return kind == QuantKind::kAffine ? scale_count(cols) : 0;
}

std::size_t QuantFormat::row_bytes(long cols) const noexcept {
  return code_bytes(cols) +
         (scale_count(cols) + bias_count(cols)) * size_of(scale);
}

double QuantFormat::bits_per_weight(long cols) const noexcept {
  return 8.0 * static_cast<double>(row_bytes(cols)) / static_cast<double>(cols);
}

void QuantFormat::check(std::string_view who, long cols) const {
  if (!known(*this)) {
    throw UsageError(
        fmt::format(
            "[{}] no such quantised format: kind {}, {} bits, group {}", who,
            static_cast<int>(kind), bits, group
        )
    );
  }
  if (cols <= 0 || cols % block_columns() != 0) {
    throw UsageError(
        fmt::format(
            "[{}] columns must be a positive multiple of {} for {}, got {}",
            who, block_columns(), name(), cols
        )
    );
  }
}

}  // namespace hearth::kernels
