#pragma once
// The bit layouts of every format, read and written in one place: a stretch of
// a row as unsigned codes (a signed code plus the format's offset) and the
// scales of a GGUF block. Internal linkage throughout.
#include "hearth/kernels/quant/half_impl.h"

namespace hearth::kernels {
namespace {

// The longest stretch handled at a time.
constexpr int kStretch = 256;
// Bytes of the 6-bit scales and minima of a Q4_K or Q5_K block.
constexpr int kScaleBytes = 12;

// What a format's unsigned code is above its signed value.
inline int code_offset(const QuantFormat& f) {
  switch (f.kind) {
    case QuantKind::kSymmetric:
      return f.bits == 8 ? 128 : 8;
    case QuantKind::kQ8_0:
      return 128;
    case QuantKind::kQ4_0:
      return 8;
    case QuantKind::kQ6_K:
      return 32;
    default:
      return 0;
  }
}

// n codes of `bits` each from a little-endian bit stream; n is a multiple of 8
// unless bits is 8 (any n) or 4 (even n).
inline void read_bits(const std::uint8_t* p, int bits, int n, std::uint8_t* u) {
  if (bits == 8) {
    std::memcpy(u, p, static_cast<std::size_t>(n));
  } else if (bits == 4) {
    for (int i = 0; i < n / 2; ++i)
      u[2 * i] = p[i] & 15, u[2 * i + 1] = p[i] >> 4;
  } else {
    const std::uint64_t mask = (1u << bits) - 1;
    for (int i = 0; i < n; i += 8, p += bits) {
      std::uint64_t word = 0;
      for (int b = 0; b < bits; ++b) {
        word |= static_cast<std::uint64_t>(p[b]) << (8 * b);
      }
      for (int j = 0; j < 8; ++j) {
        u[i + j] = static_cast<std::uint8_t>((word >> (j * bits)) & mask);
      }
    }
  }
}

inline void write_bits(
    const std::uint8_t* u,
    int bits,
    int n,
    std::uint8_t* p
) {
  if (bits == 8) {
    std::memcpy(p, u, static_cast<std::size_t>(n));
  } else if (bits == 4) {
    for (int i = 0; i < n / 2; ++i) {
      p[i] = static_cast<std::uint8_t>(u[2 * i] | (u[2 * i + 1] << 4));
    }
  } else {
    for (int i = 0; i < n; i += 8, p += bits) {
      std::uint64_t word = 0;
      for (int j = 0; j < 8; ++j) {
        word |= static_cast<std::uint64_t>(u[i + j]) << (j * bits);
      }
      for (int b = 0; b < bits; ++b) {
        p[b] = static_cast<std::uint8_t>(word >> (8 * b));
      }
    }
  }
}

// Signed and offset codes of one width differ in the top bit alone.
inline void flip_top_bit(std::uint8_t* u, int bits, int n) {
  const auto top = static_cast<std::uint8_t>(1u << (bits - 1));
  for (int i = 0; i < n; ++i) u[i] ^= top;
}

// Halves of `half` bytes: low nibbles are the first `half` columns.
inline void read_nibbles(const std::uint8_t* p, int half, std::uint8_t* u) {
  for (int i = 0; i < half; ++i) u[i] = p[i] & 15, u[half + i] = p[i] >> 4;
}

inline void write_nibbles(const std::uint8_t* u, int half, std::uint8_t* p) {
  for (int i = 0; i < half; ++i) {
    p[i] = static_cast<std::uint8_t>((u[i] & 15) | ((u[half + i] & 15) << 4));
  }
}

inline void read_q5_k(const std::uint8_t* block, std::uint8_t* u) {
  const std::uint8_t* high = block + 4 + kScaleBytes;
  for (int j = 0; j < 4; ++j) read_nibbles(high + 32 + 32 * j, 32, u + 64 * j);
  for (int j = 0; j < 8; ++j) {
    for (int i = 0; i < 32; ++i) u[32 * j + i] |= ((high[i] >> j) & 1) << 4;
  }
}

inline void read_q6_k(const std::uint8_t* block, std::uint8_t* u) {
  for (int h = 0; h < 2; ++h, u += 128) {
    const std::uint8_t* high = block + 128 + 32 * h;
    read_nibbles(block + 64 * h, 64, u);
    for (int j = 0; j < 4; ++j) {
      for (int i = 0; i < 32; ++i) {
        u[32 * j + i] |= ((high[i] >> (2 * j)) & 3) << 4;
      }
    }
  }
}

// The codes of one GGUF block.
inline void read_block(QuantKind kind, const std::uint8_t* b, std::uint8_t* u) {
  switch (kind) {
    case QuantKind::kQ8_0:
      std::memcpy(u, b + 2, 32);
      flip_top_bit(u, 8, 32);
      break;
    case QuantKind::kQ4_0:
      read_nibbles(b + 2, 16, u);
      break;
    case QuantKind::kQ4_1:
      read_nibbles(b + 4, 16, u);
      break;
    case QuantKind::kQ4_K:
      for (int j = 0; j < 4; ++j) {
        read_nibbles(b + 4 + kScaleBytes + 32 * j, 32, u + 64 * j);
      }
      break;
    case QuantKind::kQ5_K:
      read_q5_k(b, u);
      break;
    case QuantKind::kQ6_K:
      read_q6_k(b, u);
      break;
    default:
      break;
  }
}

inline void write_q5_k(const std::uint8_t* u, std::uint8_t* block) {
  std::uint8_t* high = block + 4 + kScaleBytes;
  for (int i = 0; i < 32; ++i) {
    high[i] = 0;
    for (int j = 0; j < 8; ++j) high[i] |= (u[32 * j + i] >> 4) << j;
  }
  for (int j = 0; j < 4; ++j) write_nibbles(u + 64 * j, 32, high + 32 + 32 * j);
}

inline void write_q6_k(const std::uint8_t* u, std::uint8_t* block) {
  for (int h = 0; h < 2; ++h, u += 128) {
    write_nibbles(u, 64, block + 64 * h);
    for (int i = 0; i < 32; ++i) {
      block[128 + 32 * h + i] = static_cast<std::uint8_t>(
          (u[i] >> 4) | ((u[i + 32] >> 4) << 2) | ((u[i + 64] >> 4) << 4) |
          ((u[i + 96] >> 4) << 6)
      );
    }
  }
}

// The inverse of read_block; the block's scales are left alone.
inline void write_block(
    QuantKind kind,
    const std::uint8_t* u,
    std::uint8_t* b
) {
  switch (kind) {
    case QuantKind::kQ8_0:
      std::memcpy(b + 2, u, 32);
      flip_top_bit(b + 2, 8, 32);
      break;
    case QuantKind::kQ4_0:
      write_nibbles(u, 16, b + 2);
      break;
    case QuantKind::kQ4_1:
      write_nibbles(u, 16, b + 4);
      break;
    case QuantKind::kQ4_K:
      for (int j = 0; j < 4; ++j) {
        write_nibbles(u + 64 * j, 32, b + 4 + kScaleBytes + 32 * j);
      }
      break;
    case QuantKind::kQ5_K:
      write_q5_k(u, b);
      break;
    case QuantKind::kQ6_K:
      write_q6_k(u, b);
      break;
    default:
      break;
  }
}

// The eight 6-bit scales and minima of a Q4_K or Q5_K block, and back.
inline void read_k_scales(
    const std::uint8_t* p,
    std::uint8_t* scale,
    std::uint8_t* min
) {
  for (int j = 0; j < 4; ++j) {
    scale[j] = p[j] & 63;
    min[j] = p[j + 4] & 63;
    scale[j + 4] =
        static_cast<std::uint8_t>((p[j + 8] & 15) | ((p[j] >> 6) << 4));
    min[j + 4] =
        static_cast<std::uint8_t>((p[j + 8] >> 4) | ((p[j + 4] >> 6) << 4));
  }
}

inline void write_k_scales(
    const std::uint8_t* scale,
    const std::uint8_t* min,
    std::uint8_t* p
) {
  for (int j = 0; j < 4; ++j) {
    p[j] = static_cast<std::uint8_t>(scale[j] | ((scale[j + 4] >> 4) << 6));
    p[j + 4] = static_cast<std::uint8_t>(min[j] | ((min[j + 4] >> 4) << 6));
    p[j + 8] = static_cast<std::uint8_t>(
        (scale[j + 4] & 15) | ((min[j + 4] & 15) << 4)
    );
  }
}

}  // namespace
}  // namespace hearth::kernels
