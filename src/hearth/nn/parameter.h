#pragma once
// A model's parameters: a list with the checkpoint's names. It knows neither
// files nor optimisers.
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "hearth/ops/gradient_home.h"
#include "hearth/ops/linear/packed_weight.h"
#include "hearth/ops/quantized_linear/weight.h"

namespace hearth::nn {
namespace mx = mlx::core;

// How a fresh parameter starts (see init.h).
enum class Init : unsigned char {
  zeros,
  ones,
  normal,
  small_normal,
  uniform_fan_in,
  constant,
};

struct Parameter {
  std::string name;
  mx::Shape shape;
  Init init = Init::normal;
  float constant = 0;  // where init says so
  // The checkpoint holds the transpose (GPT-2's Conv1D).
  bool transposed = false;
  // Multiplied as a matrix: it has a packed companion on a CPU.
  bool matrix = false;

  bool trainable = false;
  // What computes: float32, or bfloat16 where nothing trains it. A graph that
  // is differentiated puts its tracer here for the time being. Empty (size 0)
  // for a frozen matrix that is only packed.
  mx::array value{0.0f};
  // The matrix as products read it. It must hold value's present numbers.
  std::shared_ptr<ops::PackedWeight> packed;
  // Where a trained matrix' gradient is summed; null: it is an array of its
  // own for every pass.
  ops::Home home;
  // A frozen matrix that stays quantised; value is empty then.
  std::shared_ptr<const ops::QuantizedWeight> quantized;

  // Whether it holds numbers in any of the forms above.
  bool filled = false;

  std::size_t elements() const;
  void set(mx::array v);
  void set(std::shared_ptr<const ops::QuantizedWeight> w);
  // Keeps the packed companion alone.
  void drop_value();
};

// Owns the parameters; their addresses stay.
class ParameterSet {
 public:
  Parameter& add(Parameter p);
  // Null when there is none of that name.
  Parameter* find(std::string_view name) const;
  std::vector<Parameter*> all() const;
  std::vector<Parameter*> trainable() const;
  // Those whose name a pattern matches (see matches()).
  std::vector<Parameter*> matching(std::string_view pattern) const;
  // Elements of all, or of the trainable ones.
  std::size_t count(bool trainable_only = false) const;
  // Held now, packed companions too.
  std::size_t bytes() const;

 private:
  std::vector<std::unique_ptr<Parameter>> list_;
};

// `*` stands for any characters. A pattern without one matches a whole
// component of the dotted name: q_proj matches model.layers.0.q_proj.weight.
bool matches(std::string_view pattern, std::string_view name);

// Puts arrays into the parameters for as long as it lives: how a function of
// arrays, which is what MLX differentiates, runs a model.
class Substitution {
 public:
  Substitution(
      const std::vector<Parameter*>& parameters,
      const std::vector<mx::array>& arrays
  );
  ~Substitution();
  Substitution(const Substitution&) = delete;
  Substitution& operator=(const Substitution&) = delete;

 private:
  const std::vector<Parameter*>& parameters_;
  std::vector<mx::array> saved_;
};

// Packs value anew into the companion, made if there is none, on all threads.
// compute is the dtype products run in.
void pack(Parameter& p, mx::Dtype compute, ops::PackedOrders orders);

}  // namespace hearth::nn
