// Checks what an Adafactor step is given and chooses the form that runs it.
#include "hearth/ops/adafactor_step/faces_impl.h"
#include "hearth/ops/leaf.h"
#include "hearth/ops/step_over_impl.h"

namespace hearth::ops {
namespace {

constexpr const char* kName = "Adafactor";

}  // namespace

StateArrays adafactor_state(const mx::Shape& shape, bool momentum) {
  const Matrices m(shape);
  StateArrays out = {
      {"rows", {static_cast<int>(m.count * m.rows)}},
      {"columns", {static_cast<int>(m.count * m.columns)}}
  };
  if (momentum) out.push_back({"m", shape});
  return out;
}

AdafactorState make_adafactor_state(
    const mx::Shape& shape,
    bool momentum,
    MemoryZone zone
) {
  const Arrays a = make_state(adafactor_state(shape, momentum), zone);
  AdafactorState s{a[0], a[1], {}};
  if (momentum) s.m = a[2];
  return s;
}

void adafactor_step(
    const Adafactor& hyper,
    long step,
    const Parameter& p,
    AdafactorState& s
) {
  const Matrices m(p.weight.shape());
  const auto count = [&](long each) {
    return static_cast<std::size_t>(m.count * each);
  };
  require_array(kName, "rows", s.rows, mx::float32, count(m.rows));
  require_array(kName, "columns", s.columns, mx::float32, count(m.columns));
  if (s.m) require_array(kName, "m", *s.m, mx::float32, p.weight.size());
  require_parameter(kName, p);
  if (s.m.has_value() != (hyper.beta1 != 0)) {
    throw UsageError(
        "[ops.Adafactor] m must be there exactly when beta1 is not 0"
    );
  }
  if (p.weight.size() == 0) return;
  if (!on_cpu({})) return adafactor_step_gpu(hyper, step, p, s);
  adafactor_step_cpu(hyper, step, p, s);
}

}  // namespace hearth::ops
