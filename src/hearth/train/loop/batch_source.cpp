#include "hearth/train/loop/batch_source.h"

#include <cmath>

#include "hearth/train/loop/session.h"

namespace hearth::train {
namespace {

// Of a run by epochs it ends with the last one, so that each document has come
// that often.
data::LoaderConfig loader_of(const Session& s) {
  auto config = s.train_loader();
  config.epochs = static_cast<std::uint64_t>(std::ceil(s.recipe.train.epochs));
  return config;
}

class LoaderBatches : public BatchSource {
 public:
  explicit LoaderBatches(const Session& session)
      : cache_(session.cache),
        config_(loader_of(session)),
        loader_(cache_, config_) {}

  bool next(data::Batch& batch) override { return loader_.next(batch); }
  Json state() const override { return loader_.state(); }
  void restore(const Json& state) override { loader_.restore(state); }
  std::optional<std::uint64_t> left() const override {
    if (config_.epochs == 0) return {};
    return data::count_batches(cache_, config_, loader_.state());
  }
  double stall_seconds() const override {
    return loader_.stats().stall_seconds;
  }

 private:
  std::shared_ptr<const data::TokenCache> cache_;
  data::LoaderConfig config_;
  data::Loader loader_;
};

}  // namespace

std::unique_ptr<BatchSource> session_batches(const Session& session) {
  return std::make_unique<LoaderBatches>(session);
}

}  // namespace hearth::train
