#include "hearth/train/loop/validation.h"

#include <algorithm>
#include <limits>

#include "hearth/base/error.h"
#include "hearth/train/plan/batch_policy.h"
#include "hearth/train/step/accumulator.h"
#include "hearth/train/step/gradient.h"

namespace hearth::train {
namespace {

class Scoring {
 public:
  Scoring(
      const Session& session,
      std::uint32_t rows,
      const ValidationHooks& hooks
  )
      : session_(session),
        hooks_(hooks),
        together_(session.objective->row_group()),
        tokens_(static_cast<std::uint64_t>(session.recipe.longest()) * rows),
        most_(static_cast<std::uint64_t>(session.recipe.train.eval_tokens)) {
    for (const auto& set : session.cache->sets(data::Split::kValid)) {
      all_ += static_cast<double>(set.tokens());
    }
  }

  Validation run() {
    data::Loader loader(session_.cache, session_.valid_loader());
    data::Batch batch;
    while (!v_.stopped && !full_ && loader.next(batch)) {
      const Part part = within(batch);
      // In passes of one shape, whose memory is there: what there is no room
      // for is read and does not count.
      std::fill(
          batch.weights.begin() + std::ptrdiff_t{part.rows} * batch.length,
          batch.weights.end(), 0.0f
      );
      score(batch, part.rows);
      seen_ += static_cast<double>(batch.tokens);
      v_.tokens += part.trained;
    }
    v_.loss = weight_ > 0 ? loss_ / weight_
                          : std::numeric_limits<double>::quiet_NaN();
    for (const auto& [name, sum] : metric_sums_) {
      if (weight_ > 0) v_.means[name] = sum / weight_;
    }
    return v_;
  }

 private:
  // Rows of a batch from its first on, and how many of their tokens count.
  struct Part {
    std::uint32_t rows = 0;
    std::uint64_t trained = 0;
  };

  const Session& session_;
  const ValidationHooks& hooks_;
  std::uint32_t together_;
  std::uint64_t tokens_;  // at a time
  std::uint64_t most_;
  double all_ = 1, seen_ = 0;  // tokens of the split
  bool full_ = false;          // no row more
  double loss_ = 0, weight_ = 0;
  NamedValues metric_sums_;
  Validation v_;

  // What there is room for, row after row; the very first rows always.
  Part within(const data::Batch& batch) {
    Part part;
    while (part.rows < batch.rows) {
      const std::uint32_t rows = std::min(together_, batch.rows - part.rows);
      const float* w = batch.weights.data() + part.rows * batch.length;
      const auto more = static_cast<std::uint64_t>(std::count_if(
          w, w + rows * batch.length, [](float x) { return x > 0; }
      ));
      const std::uint64_t sum = v_.tokens + part.trained + more;
      full_ = sum >= most_;
      if (sum > most_ && sum > more) return part;
      part.rows += rows;
      part.trained += more;
      if (full_) return part;
    }
    return part;
  }

  // By what was seen of the split, or of the tokens that are enough.
  double done(const data::Batch& batch, std::uint32_t rows) const {
    const double part = static_cast<double>(rows) / batch.rows;
    const auto with = [&](double before, std::uint64_t more) {
      return before + part * static_cast<double>(more);
    };
    const double of_all = with(seen_, batch.tokens) / all_;
    const double of_enough =
        with(static_cast<double>(v_.tokens), batch.trained) /
        static_cast<double>(most_);
    return std::min(1.0, std::max(of_all, of_enough));
  }

  // A few rows at a time, fewer where memory ends.
  void score(const data::Batch& batch, std::uint32_t rows) {
    std::uint32_t each = rows_of(tokens_, batch.length);
    each = std::max(together_, each - each % together_);
    for (std::uint32_t begin = 0; begin < rows && !v_.stopped;) {
      const std::uint32_t end = std::min(begin + each, batch.rows);
      try {
        const auto part = loss_of(
            *session_.model, *session_.objective,
            make_micro_batch(*session_.objective, batch, begin, end),
            session_.compute
        );
        loss_ += part.loss_sum;
        weight_ += part.weight_sum;
        for (const auto& [name, sum] : part.metric_sums) {
          metric_sums_[name] += sum;
        }
        begin = end;
      } catch (const OutOfMemory&) {
        mx::clear_cache();
        if (each <= together_) throw;
        each = fewer_rows(each, together_);
        tokens_ = std::uint64_t{each} * batch.length;
      }
      if (hooks_.progress) {
        hooks_.progress(done(batch, begin));
      }
      v_.stopped = hooks_.stop && hooks_.stop();
    }
  }
};

}  // namespace

Validation validate(
    const Session& session,
    std::uint32_t rows,
    const ValidationHooks& hooks
) {
  return Scoring(session, rows, hooks).run();
}

Json validation_measure(const Session& session) {
  const TrainSection& t = session.recipe.train;
  std::uint64_t all = 0;
  for (const auto& set : session.cache->sets(data::Split::kValid)) {
    all += set.tokens();
  }
  // More than all there is changes nothing.
  const auto most = static_cast<std::uint64_t>(t.eval_tokens);
  Json measure{{"tokens", std::min(most, all)}};
  if (const auto& own = session.recipe.objective().measure) {
    measure.update(own(session.recipe));
  }
  return measure;
}

}  // namespace hearth::train
