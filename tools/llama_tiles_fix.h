// For building llama.cpp with GCC 12, whose _tile_loadconfig says that it reads
// 8 bytes of 64: the stores of a configuration on the stack are dropped, and
// the first tile instruction is illegal. The peer must run at its best.
#if defined(__AMX_TILE__)
#include <immintrin.h>
#undef _tile_loadconfig
#define _tile_loadconfig(config) \
  __asm__ volatile("ldtilecfg %0" ::"m"(*(const char (*)[64])(config)))
#endif
