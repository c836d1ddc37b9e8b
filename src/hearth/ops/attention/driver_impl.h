#pragma once
// Options of attention with every default filled in, as the reference and the
// primitive share them.
#include "hearth/ops/attention/op.h"

namespace hearth::ops {

struct ResolvedOptions {
  float scale, softcap;
  bool causal;
  int window, query_offset;
  std::optional<mx::array> query_segments, key_segments;  // both or neither
};

// Throws UsageError "[where] ..." unless shapes, dtypes and options agree.
ResolvedOptions resolve(
    const char* where,
    const mx::array& q,
    const mx::array& k,
    const mx::array& v,
    const AttentionOptions& options,
    mx::StreamOrDevice s
);

}  // namespace hearth::ops
