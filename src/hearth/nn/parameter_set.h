#pragma once
// A model's parameters: its weights, with the checkpoint's names.
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "hearth/nn/weight.h"

namespace hearth::nn {
namespace mx = mlx::core;

// A layer's weight with the bias beside it; null where it has none.
struct Affine {
  Weight* weight = nullptr;
  Weight* bias = nullptr;

  explicit operator bool() const { return weight != nullptr; }
};

// Owns the parameters; their addresses stay.
class ParameterSet {
 public:
  Weight& add(WeightSpec spec);
  // Null when there is none of that name.
  Weight* find(std::string_view name) const;
  // Throws Error when there is none of that name.
  Weight& at(std::string_view name) const;
  Weight* find(io::NamedRole part) const;
  Affine affine(io::Role role, int layer = -1) const;
  std::vector<Weight*> all() const;
  std::vector<Weight*> trainable() const;
  // Those whose name a pattern matches (see matches()).
  std::vector<Weight*> matching(std::string_view pattern) const;
  // Elements of all, or of the trainable ones.
  std::size_t count(bool trainable_only = false) const;
  // Held now, packed companions too.
  std::size_t bytes() const;

 private:
  std::vector<std::unique_ptr<Weight>> list_;
};

// `*` stands for any characters. A pattern without one matches a whole
// component of the dotted name: q_proj matches model.layers.0.q_proj.weight.
bool matches(std::string_view pattern, std::string_view name);

// Puts arrays into the parameters for as long as it lives: how a function of
// arrays, which is what MLX differentiates, runs a model.
class Substitution {
 public:
  Substitution(
      const std::vector<Weight*>& parameters,
      const std::vector<mx::array>& arrays
  );
  ~Substitution();
  Substitution(const Substitution&) = delete;
  Substitution& operator=(const Substitution&) = delete;

 private:
  const std::vector<Weight*>& parameters_;
  std::vector<mx::array> saved_;
};

}  // namespace hearth::nn
