#pragma once
// The one tile shape we use: eight tiles of 16 rows by 64 bytes. Included only
// by files compiled with AMX.
#include <immintrin.h>

namespace hearth::kernels::HEARTH_ISA::tiles {
namespace {

struct alignas(64) TileConfig {
  unsigned char palette, start_row, reserved[14];
  unsigned short row_bytes[16];
  unsigned char rows[16];
};

constexpr TileConfig full_tiles() {
  TileConfig c{};
  c.palette = 1;  // a constant: CPUID leaf 0x1D reads zero on some machines
  for (int i = 0; i < 8; ++i) {
    c.row_bytes[i] = 64;
    c.rows[i] = 16;
  }
  return c;
}

// Static storage: GCC 12's intrinsic declares only 8 of the 64 bytes as read,
// so the stores of a local one may be dropped.
constexpr TileConfig kFullTiles = full_tiles();

inline void configure() {
  _tile_loadconfig(&kFullTiles);
}

// One product of known result. Where it is right, tiles work here, whatever
// CPUID says of them.
inline bool product_is_right() {
  alignas(64) static unsigned short ones[16 * 32];
  alignas(64) static float result[16 * 16];
  for (unsigned short& x : ones) x = 0x3f80;
  configure();
  _tile_zero(0);
  _tile_loadd(1, ones, 64);
  _tile_loadd(2, ones, 64);
  _tile_dpbf16ps(0, 1, 2);
  _tile_stored(0, result, 64);
  _tile_release();
  for (const float x : result) {
    if (x != 32.0f) return false;
  }
  return true;
}

}  // namespace
}  // namespace hearth::kernels::HEARTH_ISA::tiles
