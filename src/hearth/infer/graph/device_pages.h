#pragma once
// The arrays that keys and values lie in on a GPU: one for each layer, with
// room for the pages that were used so far, and for one more that nobody owns,
// where rows write that are there to fill a step up.
#include "hearth/models/decoder_config.h"
#include "hearth/ops/paged_attention/op.h"

namespace hearth::infer {
namespace mx = mlx::core;

class DevicePages {
 public:
  // `pages` at most, not counting nobody's.
  DevicePages(
      const models::DecoderConfig& config,
      mx::Dtype dtype,
      int page_tokens,
      int pages
  );

  const std::vector<mx::array>& layers() const { return layers_; }
  int page_tokens() const { return page_tokens_; }
  // The place of a page in the arrays; the first is nobody's.
  static int place(int page) { return page + 1; }
  // Grows with the arrays: what was compiled for them is old then.
  int generation() const { return generation_; }

  // Makes room for the pages below that number.
  void reach(int pages);
  void copy(int from, int to);
  // Has to come between what was sent and what is sent next, but where that
  // depends on it.
  static void settle();

 private:
  int page_tokens_, pages_, kv_heads_, dim_, generation_ = 0;
  mx::Dtype dtype_;
  std::vector<mx::array> layers_;
};

}  // namespace hearth::infer
