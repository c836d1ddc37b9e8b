// What a recipe must be that no single field can see, found before anything
// runs and told with the keys' names.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hearth/base/error.h"
#include "hearth/base/units.h"
#include "hearth/train/recipe/recipe.h"

namespace hearth::train {
namespace {

// Steps of a block of drawn lengths are held at once.
constexpr double kRarest = 1e-5;

template <class... Values>
void require(bool holds, fmt::format_string<Values...> what, Values&&... with) {
  if (!holds) {
    throw UsageError(fmt::format(what, std::forward<Values>(with)...));
  }
}

void check_probabilities(const TrainSection& t) {
  require(
      t.shape_probs.empty() || t.shape_probs.size() == t.seq_lengths.size(),
      "train.shape_probs must have one number for each of train.seq_lengths, "
      "got {} and {}",
      t.shape_probs.size(), t.seq_lengths.size()
  );
  if (t.shape_probs.empty()) return;
  for (const double p : t.shape_probs) {
    require(
        p >= kRarest, "train.shape_probs must be at least {}, got {}", kRarest,
        p
    );
  }
  const double sum =
      std::accumulate(t.shape_probs.begin(), t.shape_probs.end(), 0.0);
  require(
      std::abs(sum - 1) < 1e-6, "train.shape_probs must add up to 1, got {:g}",
      sum
  );
}

void check_lengths(const Recipe& r) {
  const TrainSection& t = r.train;
  const std::size_t count = t.seq_lengths.size();
  for (const auto n : t.seq_lengths) {
    require(
        n >= 8 && n <= 1 << 24,
        "train.seq_lengths must be from 8 to 16777216, got {}", n
    );
  }
  const std::set<std::int64_t> different(
      t.seq_lengths.begin(), t.seq_lengths.end()
  );
  require(
      different.size() == count,
      "train.seq_lengths must name each length once, got {}",
      fmt::join(t.seq_lengths, ", ")
  );
  check_probabilities(t);
  const auto least = static_cast<std::int64_t>(2 * count) - 1;
  require(
      t.shape_guarantee == 0 || count > 0,
      "train.shape_guarantee must have lengths to draw: give train.seq_lengths"
  );
  require(
      t.shape_guarantee == 0 || t.shape_guarantee >= least,
      "train.shape_guarantee must be at least {} for {} lengths, got {}", least,
      count, t.shape_guarantee
  );
  require(
      count < 2 || r.objective().needs.row_group == 1,
      "train.seq_lengths must be one length with train.objective {}: its rows "
      "come {} at a time",
      t.objective, r.objective().needs.row_group
  );
  require(
      count < 2 || data::arrangement(r.data) != "pad",
      "train.seq_lengths must be one length with one document a row: set "
      "data.pack or data.arrange"
  );
}

// Whole rows of every length.
void check_step(const Recipe& r) {
  const auto tokens = static_cast<std::int64_t>(r.step_tokens());
  const auto longest = r.longest();
  const bool pinned =
      r.train.micro_batch_size > 0 && r.train.gradient_accumulation_steps > 0;
  const char* from = pinned ? "train.micro_batch_size times "
                              "train.gradient_accumulation_steps times rows"
                            : "train.tokens_per_step";
  require(
      tokens >= longest, "{} must hold one row of {} tokens, got {}", from,
      longest, tokens
  );
  for (const auto n : r.train.seq_lengths) {
    require(
        tokens % n == 0,
        "{} must be a multiple of each of train.seq_lengths ({}), got {}", from,
        fmt::join(r.train.seq_lengths, ", "), tokens
    );
  }
  const std::int64_t together = r.objective().needs.row_group;
  require(
      tokens / longest % together == 0,
      "{} must hold {} rows with train.objective {}, as they come {} at a "
      "time; got {} rows of {}",
      from,
      together == 2 ? "an even number of"
                    : fmt::format("a multiple of {}", together),
      r.train.objective, together, tokens / longest, longest
  );
}

void check_start(const Recipe& r) {
  const bool from = !r.model.from.empty();
  require(!r.lora || from, "lora must have a model to adapt: give model.from");
  require(
      r.model.adapter.empty() || r.lora,
      "model.adapter must have a lora section that describes it"
  );
  require(
      !r.objective().needs.start_model || from,
      "train.objective {} must have a model to start from: give model.from",
      r.train.objective
  );
  const auto bits = r.lora ? r.lora->quantize_base : 0;
  require(
      bits == 0 || bits == 4 || bits == 8,
      "lora.quantize_base must be 0, 4 or 8, got {}", bits
  );
  require(
      !from || r.model.max_length == 0 || r.longest() <= r.model.max_length,
      "rows must be at most model.max_length, {} tokens, got {}",
      r.model.max_length, r.longest()
  );
}

void check_checkpointing(const Recipe& r) {
  const auto& c = r.train.checkpointing;
  const bool number =
      !c.empty() && c.size() < 5 &&
      std::ranges::all_of(c, [](char d) { return d >= '0' && d <= '9'; });
  require(
      c == "auto" || c == "none" || c == "all" || (number && std::stoi(c) > 0),
      "train.checkpointing must be auto, none, all or a number from 1, got "
      "'{}'",
      c
  );
  if (number && r.model.from.empty()) {
    check_checkpointed(c, r.model.layers);
  }
}

void check_unbuilt(const Recipe& r) {
  require(
      !r.quant || !r.quant->enabled,
      "quant.enabled must be false: training aware of quantisation is not "
      "built yet"
  );
  require(
      !r.distill || r.distill->teacher.empty(),
      "distill.teacher must not be given: distillation is not built yet"
  );
  require(
      !r.coreml || r.coreml->mlprogram,
      "coreml.mlprogram must be true: no other kind is written"
  );
}

}  // namespace

void check_checkpointed(const std::string& policy, int layers) {
  const bool number = policy != "auto" && policy != "none" && policy != "all";
  if (!number || std::stoi(policy) <= layers) return;
  throw UsageError(
      fmt::format(
          "train.checkpointing must be at most the model's {} layers, got {}: "
          "none of them would be computed again",
          layers, policy
      )
  );
}

void Recipe::check() const {
  optim.check();
  check_lengths(*this);
  check_step(*this);
  check_start(*this);
  if (const auto& own = objective().check) own(*this);
  check_checkpointing(*this);
  require(
      train.memory == "auto" || parse_bytes(train.memory, "train.memory") > 0,
      "train.memory must be above 0, got {}; auto is what is safe here",
      train.memory
  );
  require(
      train.early_stop == 0 || data::holds_out(data),
      "train.early_stop must have a held-out split: give data.valid"
  );
  require(
      train.early_stop == 0 || train.eval_every > 0,
      "train.early_stop must have validations to count: give train.eval_every"
  );
  check_unbuilt(*this);
}

}  // namespace hearth::train
