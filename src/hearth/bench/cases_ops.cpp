// `hearth bench ops`: every op case, forward and gradient, at its bench size.
// The peer of a dense product is oneDNN where it is installed; of all else, the
// plain MLX composition that defines the op, on the same device.
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hearth/bench/cases.h"
#include "hearth/bench/onednn_peer.h"
#include "hearth/ops/op_case.h"

namespace hearth::bench {
namespace {

using ops::Arrays;
using ops::OpCase;
namespace mx = mlx::core;

enum class Part { kForward, kGradient };

struct OpRow {
  const OpCase* op;
  ops::Size size;
  mx::Dtype dtype;
  Part part;
};

// Copies of the inputs to go through in turn, so that no repeat finds its
// operands in a cache: together four times the last cache. Where the row is not
// about memory one set will do.
class InputRing {
 public:
  InputRing(const OpRow& row, const CaseContext& context, bool rotate) {
    std::size_t bytes = 0;
    const std::size_t most = rotate ? 64 : 1;
    do {
      Arrays in =
          row.op->inputs(row.size, row.dtype, context.seed + sets_.size());
      mx::eval(in);
      for (const auto& a : in) bytes += a.nbytes();
      sets_.push_back(std::move(in));
    } while (bytes < 4 * context.last_cache_bytes && sets_.size() < most);
  }
  const Arrays& next() { return sets_[turn_++ % sets_.size()]; }

 private:
  std::vector<Arrays> sets_;
  std::size_t turn_ = 0;
};

Timed time_forward(
    const ops::ArraysFunction& f,
    const std::shared_ptr<InputRing>& ring
) {
  return {[f, ring] { mx::eval(f(ring->next())); }, {}};
}

Arrays ones_like(const Arrays& outputs) {
  Arrays ones;
  for (const auto& o : outputs) ones.push_back(mx::ones(o.shape(), o.dtype()));
  mx::eval(ones);
  return ones;
}

// The forward pass and what it keeps are evaluated before the clock starts;
// the gradient of every differentiable input is what is timed.
Timed time_gradient(
    const OpCase& op,
    const ops::ArraysFunction& f,
    const std::shared_ptr<InputRing>& ring
) {
  auto upstream = std::make_shared<Arrays>();
  auto gradients = std::make_shared<Arrays>();
  auto before = [=, where = op.differentiable] {
    const Arrays& in = ring->next();
    Arrays primals;
    for (const int i : where)
      primals.push_back(in[static_cast<std::size_t>(i)]);
    const auto of_primals = [&](const Arrays& p) {
      Arrays all = in;
      for (std::size_t i = 0; i < p.size(); ++i) {
        all[static_cast<std::size_t>(where[i])] = p[i];
      }
      return f(all);
    };
    if (upstream->empty()) *upstream = ones_like(f(in));
    auto [values, slopes] = mx::vjp(of_primals, primals, *upstream);
    mx::eval(values);
    *gradients = std::move(slopes);
  };
  return {
      [gradients] {
        mx::eval(*gradients);
        gradients->clear();
      },
      before
  };
}

Timed time_row(
    const OpRow& row,
    const ops::ArraysFunction& f,
    const std::shared_ptr<InputRing>& ring
) {
  return row.part == Part::kForward ? time_forward(f, ring)
                                    : time_gradient(*row.op, f, ring);
}

std::string dtype_name(mx::Dtype dtype) {
  return dtype == mx::bfloat16 ? "bf16" : "fp32";
}

// An op whose products per byte pass the machine's balance is bound by
// arithmetic and measured in GFLOP/s, the others in GB/s.
void set_rate(BenchCase& c, const OpRow& row, const CaseContext& context) {
  const auto& work_of =
      row.part == Part::kForward ? row.op->forward_work : row.op->gradient_work;
  if (!work_of) return;
  const ops::Work work = work_of(row.size, row.dtype);
  constexpr double kBalance = 8;  // operations per byte
  if (work.flops > kBalance * work.bytes) {
    c.work = work.flops;
    c.unit = "GFLOP/s";
    c.peak = context.gops(
        row.op->peak.empty() ? dtype_name(row.dtype) : row.op->peak
    );
  } else {
    c.work = work.bytes;
    c.unit = "GB/s";
    c.peak = context.read_gb_s();
  }
}

// Whether the row is a dense product that oneDNN, where installed, can run too.
bool set_onednn(BenchCase& c, const OpRow& row) {
  const auto& product_of = row.part == Part::kForward
                               ? row.op->forward_product
                               : row.op->gradient_product;
  static const std::shared_ptr<OneDnn> rival = OneDnn::find();
  if (!product_of || !rival) return false;
  const ops::Product product = product_of(row.size);
  c.peer_name = rival->version() + (product.right_packed ? " packed" : "");
  c.prepare_peer = [product, bf16 = row.dtype == mx::bfloat16] {
    return rival->product(product, bf16);
  };
  return true;
}

BenchCase make_case(const OpRow& row, const CaseContext& context) {
  BenchCase c;
  c.name = fmt::format(
      "{} {} {} {}", row.op->name,
      row.part == Part::kForward ? "forward" : "gradient",
      dtype_name(row.dtype), fmt::join(row.size, "x")
  );
  c.isa = ops::current_execution().kernels.isa;
  set_rate(c, row, context);
  // One ring for both sides, made when the case is first prepared and gone when
  // neither is timed any more.
  auto kept = std::make_shared<std::weak_ptr<InputRing>>();
  const bool rotate = c.unit != "GFLOP/s";
  const auto inputs = [row, context, kept, rotate] {
    auto ring = kept->lock();
    if (!ring) ring = std::make_shared<InputRing>(row, context, rotate);
    *kept = ring;
    return ring;
  };
  const auto& timed =
      row.part == Part::kForward ? row.op->timed : row.op->timed_gradient;
  if (timed) {
    c.prepare = [row, &timed] { return Timed{timed(row.size, row.dtype), {}}; };
  } else {
    c.prepare = [row, inputs] { return time_row(row, row.op->run, inputs()); };
  }
  if (!context.with_peers || set_onednn(c, row)) return c;
  if (!timed) {
    c.peer_name = "MLX";
    c.prepare_peer = [row, inputs] {
      return time_row(row, row.op->reference, inputs());
    };
  }
  return c;
}

}  // namespace

std::vector<BenchCase> ops_cases(const CaseContext& context) {
  std::vector<BenchCase> cases;
  for (const OpCase& op : ops::op_cases()) {
    for (const ops::Size& size : op.bench_sizes) {
      for (const mx::Dtype dtype : op.dtypes) {
        if (op.forward_work) {
          cases.push_back(
              make_case({&op, size, dtype, Part::kForward}, context)
          );
        }
        if (op.differentiable.empty() || !op.gradient_work) continue;
        cases.push_back(
            make_case({&op, size, dtype, Part::kGradient}, context)
        );
      }
    }
  }
  return cases;
}

}  // namespace hearth::bench
