#include "hearth/optim/optimizer.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hearth/base/error.h"
#include "hearth/kernels/optim.h"
#include "hearth/optim/optimizer_kind.h"

namespace hearth::optim {
namespace {

constexpr const char* kSteps = "steps";

bool matches_any(
    const std::vector<std::string>& patterns,
    const std::string& name
) {
  return std::ranges::any_of(patterns, [&](const std::string& p) {
    return nn::matches(p, name);
  });
}

bool is_embedding(const nn::Weight& p) {
  return p.part.role == io::Role::embedding ||
         p.part.role == io::Role::positions;
}

double decay_of(const OptimConfig& c, const nn::Weight& p) {
  const bool none = p.shape.size() < 2 ||
                    (!c.decay_embeddings && is_embedding(p)) ||
                    matches_any(c.no_decay, p.name);
  return none ? 0 : c.weight_decay;
}

std::unique_ptr<UpdateRule> rule_for(
    const OptimConfig& c,
    const nn::Weight& p
) {
  const OptimizerKind& kind = kind_of(c, p);
  return kind.make(c, make_rule_state(kind.state(c, p.shape)));
}

void require_master(const nn::Weight& p) {
  if (p.filled() && p.value().dtype() == mx::float32 &&
      p.value().shape() == p.shape && p.value().is_available() &&
      p.value().flags().row_contiguous) {
    return;
  }
  throw UsageError(
      fmt::format(
          "[optim.make] {} must be an evaluated row-major float32 array of its "
          "own shape to be trained",
          p.name
      )
  );
}

// A number of rows the packed companion takes, in elements, that blocks of
// 8-bit state divide.
std::size_t grain_of(const ops::PackedWeight& packed) {
  const auto k = static_cast<std::size_t>(packed.k());
  constexpr auto kRows = std::size_t{ops::PackedWeight::kRowGrain};
  const std::size_t least =
      std::lcm(kRows * k, static_cast<std::size_t>(kernels::kStateBlock));
  constexpr std::size_t kWanted = 32768;  // what a second-level cache holds
  return least * std::max<std::size_t>(1, kWanted / least);
}

ops::Parameter as_step(
    const nn::Weight& p,
    const mx::array& gradient,
    float gradient_scale
) {
  ops::Parameter out{
      .weight = p.value(),
      .gradient = gradient,
      .gradient_scale = gradient_scale
  };
  if (!p.packed()) return out;
  out.grain = grain_of(*p.packed());
  out.refresh = [&p](
                    const ops::Execution& run, std::size_t begin,
                    std::size_t end
                ) {
    const auto k = static_cast<std::size_t>(p.packed()->k());
    p.refresh(static_cast<long>(begin / k), static_cast<long>(end / k), run);
  };
  return out;
}

ops::StepNumbers numbers_of(const OptimConfig& c) {
  // Rounded as the rules round them, whose corrections they are.
  const auto [beta1, beta2] = c.betas_or_default();
  const auto rounded = [](double x) { return double{static_cast<float>(x)}; };
  return {
      .beta1 = rounded(beta1),
      .beta2 = rounded(beta2),
      .decay_rate = rounded(-c.adafactor.decay_rate)
  };
}

[[noreturn]] void refuse_state(const std::string& what) {
  throw FormatError("[optim.restore] " + what);
}

void* bytes_of(mx::array& a) {
  return a.data<void>();
}

}  // namespace

std::unique_ptr<Optimizer> Optimizer::make(
    const OptimConfig& config,
    const std::vector<nn::Weight*>& parameters
) {
  config.check();
  std::set<std::string_view> names;
  for (const nn::Weight* p : parameters) {
    require_master(*p);
    if (!names.insert(p->name).second) {
      throw UsageError("[optim.make] two parameters are named " + p->name);
    }
  }
  auto out = std::make_unique<Optimizer>();
  out->numbers_ = numbers_of(config);
  for (nn::Weight* p : parameters) {
    out->entries_.push_back({p, decay_of(config, *p), rule_for(config, *p)});
  }
  return out;
}

void Optimizer::check(std::span<const mx::array> gradients) const {
  if (torn_) {
    throw Error(
        "[optim.step] the last step was broken off, so the weights must be "
        "restored from a checkpoint"
    );
  }
  if (gradients.size() != entries_.size()) {
    throw UsageError(
        fmt::format(
            "[optim.step] there must be a gradient for each of {} parameters, "
            "got {}",
            entries_.size(), gradients.size()
        )
    );
  }
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const mx::array& g = gradients[i];
    const nn::Weight& p = *entries_[i].parameter;
    const bool type = g.dtype() == mx::float32 || g.dtype() == mx::bfloat16;
    if (type && g.shape() == p.shape && g.is_available() &&
        g.flags().row_contiguous) {
      continue;
    }
    throw UsageError(
        fmt::format(
            "[optim.step] the gradient of {} must be an evaluated row-major "
            "array of float32 or bfloat16 and shape [{}], got shape [{}]",
            p.name, fmt::join(p.shape, ", "), fmt::join(g.shape(), ", ")
        )
    );
  }
}

void Optimizer::step(
    std::span<const mx::array> gradients,
    float gradient_scale,
    double lr
) {
  check(gradients);
  torn_ = true;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const Entry& e = entries_[i];
    e.rule->step(
        as_step(*e.parameter, gradients[i], gradient_scale), steps_ + 1, lr,
        e.decay
    );
  }
  // A GPU may be at it still; the host reads weights when this returns.
  if (!ops::on_cpu({})) mx::synchronize();
  ++steps_;
  torn_ = false;
}

std::size_t Optimizer::state_bytes() const {
  std::size_t n = 0;
  for (const Entry& e : entries_) {
    for (const NamedArray& a : e.rule->state()) n += a.array.nbytes();
  }
  return n;
}

std::vector<double> Optimizer::decays() const {
  std::vector<double> out;
  for (const Entry& e : entries_) out.push_back(e.decay);
  return out;
}

std::vector<NamedArray> Optimizer::state() const {
  std::vector<NamedArray> out = {
      {kSteps, mx::array({static_cast<std::int64_t>(steps_)}, mx::int64)}
  };
  for (const Entry& e : entries_) {
    for (const NamedArray& a : e.rule->state()) {
      out.push_back({e.parameter->name + "/" + a.name, a.array});
    }
  }
  // A device may be at them still.
  ops::Arrays all;
  for (const NamedArray& a : out) all.push_back(a.array);
  mx::eval(all);
  return out;
}

void Optimizer::restore(std::span<const NamedArray> state) {
  std::vector<StoredArray> stored;
  for (const NamedArray& a : state) {
    if (!a.array.is_available() || !a.array.flags().row_contiguous) {
      refuse_state(a.name + " must be evaluated and row-major");
    }
    stored.push_back(
        {a.name,
         a.array.dtype(),
         a.array.shape(),
         {a.array.data<std::byte>(), a.array.nbytes()}}
    );
  }
  restore(stored);
}

void Optimizer::restore(
    std::span<const StoredArray> state,
    const std::function<void(std::size_t)>& copied
) {
  std::map<std::string_view, std::size_t> given;
  for (const StoredArray& a : state) given.emplace(a.name, given.size());
  std::vector<NamedArray> own = this->state();
  if (state.size() != own.size() || given.size() != own.size()) {
    refuse_state(
        fmt::format(
            "the state must hold {} arrays, got {}: it is of another "
            "optimiser or of other parameters",
            own.size(), state.size()
        )
    );
  }
  for (const NamedArray& a : own) {
    const auto at = given.find(a.name);
    if (at == given.end()) {
      refuse_state(
          "the state must hold " + a.name +
          ": it is of another optimiser or of other parameters"
      );
    }
    const StoredArray& from = state[at->second];
    if (from.dtype != a.array.dtype() || from.shape != a.array.shape() ||
        from.bytes.size() != a.array.nbytes()) {
      refuse_state(
          fmt::format(
              "{} must be of its own dtype and of shape [{}], got [{}]", a.name,
              fmt::join(a.array.shape(), ", "), fmt::join(from.shape, ", ")
          )
      );
    }
  }
  std::int64_t steps = 0;
  std::memcpy(&steps, state[given.at(kSteps)].bytes.data(), sizeof steps);
  if (steps < 0)
    refuse_state(fmt::format("steps must be 0 or more, got {}", steps));
  for (NamedArray& a : own) {
    const std::size_t at = given.at(a.name);
    if (a.name != kSteps) {
      const auto from = state[at].bytes;
      std::memmove(bytes_of(a.array), from.data(), from.size());
    }
    if (copied) copied(at);
  }
  steps_ = static_cast<long>(steps);
  torn_ = false;
}

}  // namespace hearth::optim
