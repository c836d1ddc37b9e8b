#pragma once
// One weight of a model: what it is (name, shape, flags) and the form its
// numbers are held in. Every change of form goes through here, so that no
// stale copy is left beside fresh numbers. It knows neither files nor
// optimisers.
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hearth/io/weight_names.h"
#include "hearth/ops/gradient_home.h"
#include "hearth/ops/linear/packed_weight.h"
#include "hearth/ops/quantized_linear/weight.h"

namespace hearth::nn {
namespace mx = mlx::core;

// How a fresh weight starts (see init.h).
enum class Init : unsigned char {
  zeros,
  ones,
  normal,
  small_normal,
  uniform_fan_in,
  constant,
};

struct WeightSpec {
  std::string name;  // the checkpoint's
  mx::Shape shape;
  Init init = Init::normal;
  float constant = 0;  // where init says so
  // The checkpoint holds the transpose (GPT-2's Conv1D).
  bool transposed = false;
  // Multiplied as a matrix: it has a packed companion on a CPU.
  bool matrix = false;
  bool trainable = false;
  // What it is to the model.
  io::NamedRole part = {};

  std::size_t elements() const;
  // The name without ".weight" or ".bias": its layer's.
  std::string module() const;
};

enum class WeightForm : unsigned char {
  // Described only: no numbers yet.
  empty,
  // Rows are the truth: float32, or bfloat16 where nothing trains them. A
  // matrix may have a packed companion that products read.
  master,
  // Products' own order alone; there are no rows.
  packed,
  // A quantised format's codes; rows lie beside them only for who gathers
  // from the matrix or computes the fused loss.
  quantized,
  // A master whose packed companion holds the numbers a format would round it
  // to: products see the rounded weight, gradients and updates the master.
  rounded,
};

class Weight : public WeightSpec {
 public:
  Weight();
  explicit Weight(WeightSpec spec);

  WeightForm form() const;
  bool filled() const { return form() != WeightForm::empty; }

  // A handle on the rows; of size 0 where the form has none. While a graph is
  // being differentiated its tracer is here (see Substitution).
  mx::array value() const { return value_; }
  // While a graph is differentiated with this weight the first of several whose
  // rows are one array (see weight_group.h): that array, and whose rows it has.
  struct Group {
    mx::array rows;
    std::vector<Weight*> of;
  };
  const std::optional<Group>& group() const { return group_; }
  // What products read on a CPU; null where there is none.
  const std::shared_ptr<ops::PackedWeight>& packed() const { return packed_; }
  // Null but where it is held in a quantised format.
  const std::shared_ptr<const ops::QuantizedWeight>& quantized() const {
    return quantized_;
  }
  // Of a quantised or rounded one.
  std::optional<kernels::QuantFormat> format() const;
  // Held now, in all forms.
  std::size_t bytes() const;

  // Each of these puts new numbers in place of all that were held.
  void set(mx::array rows);
  void set(
      std::shared_ptr<const ops::QuantizedWeight> codes,
      std::optional<mx::array> rows = {}
  );
  void set(std::shared_ptr<ops::PackedWeight> packed);
  // Rows and their companion, which holds the same numbers.
  void set(mx::array rows, std::shared_ptr<ops::PackedWeight> packed);
  void clear();
  // The master after an update that made a new array of it, as a GPU's graph
  // does; whatever is packed beside it is the caller's to refresh.
  void follow(mx::array rows) { value_ = std::move(rows); }

  // Drops one of two forms, so that the other is held alone.
  void keep_packed_alone();
  void drop_packed() { packed_.reset(); }

  // From now on products read what the format makes of the float32 rows.
  // Columns must be a multiple of its blocks. pack() makes the companion.
  void round_to(const kernels::QuantFormat& format);
  // Brings rows [begin, end) of the packed companion up to the master's
  // present numbers, from whichever thread; begin as PackedWeight::refresh
  // wants it.
  void refresh(long begin, long end, const ops::Execution& run) const;

  // Where a trained matrix' gradient is summed; null: it is an array of its
  // own for every pass.
  ops::Home home;

 private:
  friend class Substitution;
  friend class GroupSubstitution;
  friend void pack(Weight& w, mx::Dtype compute, ops::PackedOrders orders);

  mx::array value_;
  std::optional<Group> group_;
  std::shared_ptr<ops::PackedWeight> packed_;
  std::shared_ptr<const ops::QuantizedWeight> quantized_;
  std::optional<kernels::QuantFormat> rounding_;
};

// Packs the rows anew into the companion, made if there is none, on all
// threads. compute is the dtype products run in.
void pack(Weight& w, mx::Dtype compute, ops::PackedOrders orders);

}  // namespace hearth::nn
