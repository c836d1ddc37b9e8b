#include "hearth/train/loop/checkpoint.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hearth/base/atomic_file.h"
#include "hearth/base/error.h"
#include "hearth/train/loop/checkpoint_files_impl.h"
#include "hearth/train/loop/checkpoint_tensors_impl.h"

namespace hearth::train {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kStepPrefix = "step-";

std::optional<long> step_of(std::string_view name) {
  if (!name.starts_with(kStepPrefix)) return {};
  name.remove_prefix(kStepPrefix.size());
  long step = 0;
  const auto [end, failed] =
      std::from_chars(name.data(), name.data() + name.size(), step);
  const bool all = failed == std::errc() && end == name.data() + name.size();
  if (!all || step < 0) return {};
  return step;
}

bool same_shape(const io::TensorInfo& t, const mx::Shape& shape) {
  return std::equal(
      t.shape.begin(), t.shape.end(), shape.begin(), shape.end(),
      [](std::int64_t a, int b) { return a == b; }
  );
}

// A step that the state of a checkpoint names. Throws FormatError.
std::optional<long> step_named(
    const std::string& folder,
    const std::string& key
) {
  const std::string path = folder + "/" + files::kState;
  const Json read = read_json_file(path);
  const auto state = read.find("state");
  if (state == read.end() || !state->is_object()) return {};
  const auto step = state->find(key);
  if (step == state->end()) return {};
  if (!step->is_number_integer()) {
    throw FormatError(path + ": " + key + " must be a whole number");
  }
  return step->get<long>();
}

// The best that a checkpoint knows of; -1 where it cannot be told.
long best_named(const std::string& folder) {
  try {
    return step_named(folder, "best_step").value_or(-1);
  } catch (const Error&) {
    return -1;
  }
}

std::string best_path(const std::string& run) {
  return (fs::path(run) / "best.json").string();
}

}  // namespace

void clear_leftovers(const std::string& run) {
  files::remove_leftovers(run);
}

std::vector<NamedArray> weights_of(std::span<nn::Weight* const> parameters) {
  std::vector<NamedArray> out;
  for (const nn::Weight* p : parameters) out.push_back({p->name, p->value()});
  return out;
}

Checkpoint Checkpoint::load(const std::string& folder) {
  files::verify_checksums(folder);
  Checkpoint c;
  c.path_ = folder;
  const std::string state = folder + "/" + files::kState;
  Json read = read_json_file(state);
  const auto number = read.find("step");
  if (number == read.end() || !number->is_number_integer() ||
      !read.contains("state")) {
    throw FormatError(state + ": must hold a step and a state");
  }
  c.step_ = number->get<long>();
  c.state_ = std::move(read["state"]);
  c.weights_ = io::SafetensorsFile::open(folder + "/" + files::kWeights);
  c.optimizer_ = io::SafetensorsFile::open(folder + "/" + files::kOptimizer);
  return c;
}

void Checkpoint::copy_weights(std::span<nn::Weight* const> parameters) const {
  const auto tensors = weights_->tensors();
  const auto find = [&](const std::string& name) {
    return std::ranges::find(tensors, name, &io::TensorInfo::name);
  };
  for (const nn::Weight* p : parameters) {
    const auto at = find(p->name);
    if (at != tensors.end() && at->type == io::TensorType::f32 &&
        same_shape(*at, p->shape) && p->value().dtype() == mx::float32 &&
        p->value().nbytes() == at->bytes) {
      continue;
    }
    throw FormatError(
        fmt::format(
            "{}: must hold {} in float32 and shape [{}]", weights_->name(),
            p->name, fmt::join(p->shape, ", ")
        )
    );
  }
  if (tensors.size() != parameters.size()) {
    throw FormatError(
        fmt::format(
            "{}: must hold the {} weights that are trained, got {}",
            weights_->name(), parameters.size(), tensors.size()
        )
    );
  }
  for (nn::Weight* p : parameters) {
    const io::TensorInfo& tensor = *find(p->name);
    const auto bytes = weights_->bytes(tensor);
    std::memcpy(p->value().data<void>(), bytes.data(), bytes.size());
    weights_->release(tensor);
    // A companion that is there keeps its type and its orders.
    if (p->packed()) nn::pack(*p, mx::float32, ops::PackedOrders::both);
  }
}

std::vector<optim::StoredArray> Checkpoint::optimizer_state() const {
  std::vector<optim::StoredArray> out;
  for (const io::TensorInfo& t : optimizer_->tensors()) {
    out.push_back(stored_array(t, optimizer_->bytes(t)));
  }
  return out;
}

void Checkpoint::copy_optimizer(optim::Optimizer& optimizer) const {
  const auto tensors = optimizer_->tensors();
  optimizer.restore(optimizer_state(), [&](std::size_t i) {
    optimizer_->release(tensors[i]);
  });
}

std::optional<long> gate_step(const std::string& folder) {
  files::verify_checksum(folder, files::kState);
  return step_named(folder, "gate_step");
}

std::vector<long> checkpoint_steps(const std::string& run) {
  std::vector<long> steps;
  std::error_code none;
  const std::string folder = files::checkpoints_folder(run);
  for (const auto& entry : fs::directory_iterator(folder, none)) {
    const auto step = step_of(entry.path().filename().string());
    if (step) steps.push_back(*step);
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

std::string checkpoint_path(const std::string& run, long step) {
  return fmt::format(
      "{}/{}{:06}", files::checkpoints_folder(run), kStepPrefix, step
  );
}

LatestCheckpoint latest_valid(const std::string& run, long most) {
  LatestCheckpoint out;
  auto steps = checkpoint_steps(run);
  std::reverse(steps.begin(), steps.end());
  for (const long step : steps) {
    if (step > most) continue;
    try {
      auto loaded = Checkpoint::load(checkpoint_path(run, step));
      if (loaded.step() != step) {
        throw FormatError(
            fmt::format("{}: is of step {}", loaded.path(), loaded.step())
        );
      }
      out.checkpoint = std::move(loaded);
      return out;
    } catch (const Error& e) {
      out.skipped.push_back(
          fmt::format("checkpoint of step {} is not valid: {}", step, e.what())
      );
    }
  }
  return out;
}

void set_best(const std::string& run, const BestCheckpoint& best) {
  if (!fs::exists(checkpoint_path(run, best.step)) ||
      !std::isfinite(best.loss)) {
    throw UsageError(
        fmt::format(
            "[train.set_best] step {} must have a checkpoint and a finite "
            "loss, got {}",
            best.step, best.loss
        )
    );
  }
  write_file_atomically(
      best_path(run),
      to_json_text({{"step", best.step}, {"valid_loss", best.loss}})
  );
}

void clear_best(const std::string& run) {
  fs::remove(best_path(run));
}

std::optional<BestCheckpoint> best_checkpoint(const std::string& run) {
  const std::string path = best_path(run);
  if (!fs::exists(path)) return {};
  const Json best = read_json_file(path, {.max_bytes = 1 << 16});
  const auto step = best.find("step"), loss = best.find("valid_loss");
  if (step == best.end() || loss == best.end() || !step->is_number_integer() ||
      !loss->is_number()) {
    throw FormatError(path + ": must hold a step and a valid_loss");
  }
  return BestCheckpoint{step->get<long>(), loss->get<double>()};
}

std::vector<long> prune_checkpoints(
    const std::string& run,
    const KeptCheckpoints& kept
) {
  if (kept.last < 1) {
    throw UsageError(
        fmt::format("[train.prune] at least 1 must be kept, got {}", kept.last)
    );
  }
  files::remove_leftovers(run);
  std::vector<long> steps, broken;
  for (const long step : checkpoint_steps(run)) {
    const bool whole = files::has_parts(checkpoint_path(run, step));
    (whole ? steps : broken).push_back(step);
  }
  const auto healthy = kept.settled - kProvingSteps;
  const auto next = static_cast<std::size_t>(
      std::ranges::upper_bound(steps, healthy) - steps.begin()
  );
  std::vector<long> removed;
  const auto remove = [&](long step) {
    fs::remove_all(checkpoint_path(run, step));
    removed.push_back(step);
  };
  const auto newest = static_cast<std::size_t>(kept.last);
  std::set<long> stay = {kept.best};
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const bool stays = i + newest >= steps.size() || i == next || i + 1 == next;
    if (!stays) continue;
    stay.insert(steps[i]);
    // Who goes back to it goes back to its best.
    stay.insert(best_named(checkpoint_path(run, steps[i])));
  }
  for (const long step : steps) {
    if (!stay.contains(step)) remove(step);
  }
  // What is not whole takes nobody's place, and goes when the newest are newer.
  for (const long step : broken) {
    if (steps.size() >= newest && step < steps[steps.size() - newest]) {
      remove(step);
    }
  }
  return removed;
}

void remove_checkpoints_after(const std::string& run, long step) {
  for (const long s : checkpoint_steps(run)) {
    if (s > step) fs::remove_all(checkpoint_path(run, s));
  }
}

}  // namespace hearth::train
