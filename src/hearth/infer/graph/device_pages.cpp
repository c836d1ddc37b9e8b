#include "hearth/infer/graph/device_pages.h"

#include <algorithm>

#include <mlx/backend/metal/metal.h>

#include "hearth/infer/engine/kv_layout.h"

namespace hearth::infer {
namespace {

// Of all layers, to begin with: arrays that grow are copied, and steps compiled
// anew.
constexpr std::size_t kFirstBytes = std::size_t{256} << 20;

}  // namespace

DevicePages::DevicePages(
    const models::DecoderConfig& c,
    mx::Dtype dtype,
    int page_tokens,
    int pages
)
    : page_tokens_(page_tokens),
      pages_(pages),
      kv_heads_(c.kv_heads),
      dim_(c.head_dim),
      dtype_(dtype) {
  const std::size_t page =
      kv_bytes(c, own_kv_type(dtype), static_cast<std::size_t>(page_tokens));
  constexpr std::size_t kLeast = 16;
  const auto first = std::min<std::size_t>(
      std::max(kFirstBytes / page, kLeast), static_cast<std::size_t>(pages)
  );
  for (int i = 0; i < c.layers; ++i) {
    layers_.push_back(
        ops::make_pages(
            place(static_cast<int>(first)), kv_heads_, page_tokens, dim_, dtype
        )
    );
  }
}

void DevicePages::reach(int pages) {
  const int there = layers_.front().shape(0);
  if (place(pages) <= there) return;
  const int wanted = std::min(place(pages_), std::max(place(pages), 2 * there));
  ++generation_;
  settle();
  // One layer after the other, so that one alone is held twice.
  for (auto& layer : layers_) {
    const auto more =
        mx::zeros({wanted - there, 2, kv_heads_, page_tokens_, dim_}, dtype_);
    auto grown = mx::concatenate({layer, more}, 0);
    grown.eval();
    layer = grown;
  }
}

// What was sent writes pages, and MLX does not know it: a CUDA device computes
// in the order of sending, a Metal device need not.
void DevicePages::settle() {
  if (mx::metal::is_available()) mx::synchronize();
}

void DevicePages::copy(int from, int to) {
  settle();
  std::vector<mx::array> done;
  for (const auto& layer : layers_) {
    done.push_back(ops::copy_page(layer, place(from), place(to)));
  }
  mx::async_eval(done);
  settle();
}

}  // namespace hearth::infer
