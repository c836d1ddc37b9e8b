#include "hearth/ops/dry_run.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "hearth/ops/op.h"

namespace hearth::ops {
namespace {

thread_local DryRun* running = nullptr;

// What every buffer without memory points at. It is one of the allocator's own:
// MLX asks a buffer for its size, which on a Mac is a call of an object.
mx::allocator::Buffer no_memory() {
  static const mx::allocator::Buffer place =
      mx::allocator::allocator().malloc(1);
  return place;
}

// Those that give their inputs' memory another shape.
constexpr std::string_view kViews[] = {
    "Copy",    "Reshape", "Flatten",      "Unflatten",  "ExpandDims",
    "Squeeze", "Slice",   "Transpose",    "Broadcast",  "BroadcastAxes",
    "Split",   "Depends", "StopGradient", "Contiguous", "CustomTransforms",
};

bool needs_rows(std::string_view name) {
  return name == "Reshape" || name == "Flatten" || name == "Unflatten" ||
         name == "Contiguous";
}

// One of MLX's own: it takes over an input or takes memory, and computes
// nothing.
class Described : public mx::Primitive {
 public:
  explicit Described(std::shared_ptr<mx::Primitive> of)
      : Primitive(of->stream()), of_(std::move(of)) {}
  const char* name() const override { return of_->name(); }
  void eval_gpu(const Arrays&, Arrays&) override {}

  void eval_cpu(const Arrays& in, Arrays& out) override {
    const std::string_view own = name();
    const bool view = std::ranges::find(kViews, own) != std::end(kViews);
    if (own == "Contiguous" && in[0].flags().row_contiguous) {
      return out[0].copy_shared_buffer(in[0]);
    }
    if (view && (!needs_rows(own) || in[0].flags().row_contiguous)) {
      return of_->eval_cpu(in, out);
    }
    DryRun& run = *DryRun::current();
    for (mx::array& o : out) {
      const auto taken = std::ranges::find_if(in, [&](const mx::array& a) {
        return a.is_donatable() && a.flags().row_contiguous &&
               a.nbytes() == o.nbytes();
      });
      if (taken != in.end()) {
        o.copy_shared_buffer(*taken);
        continue;
      }
      o.set_data(mx::allocator::malloc(1));
      run.took(o, o.nbytes());
    }
    run.sent(stream(), false);
  }

 private:
  std::shared_ptr<mx::Primitive> of_;
};

// Puts what computes nothing in place of MLX's own ops.
void describe(const std::vector<mx::array>& outputs) {
  std::map<const mx::Primitive*, std::shared_ptr<mx::Primitive>> by_original;
  std::unordered_set<std::uintptr_t> seen;
  std::vector<mx::array> open = outputs;
  while (!open.empty()) {
    const mx::array a = std::move(open.back());
    open.pop_back();
    if (!a.has_primitive() || a.status() != mx::array::Status::unscheduled ||
        !seen.insert(a.id()).second) {
      continue;
    }
    auto& primitive = a.primitive_ptr();
    const bool own = dynamic_cast<const CpuOp*>(primitive.get()) != nullptr ||
                     dynamic_cast<const Described*>(primitive.get()) != nullptr;
    if (!own) {
      auto& twin = by_original[primitive.get()];
      if (twin == nullptr) twin = std::make_shared<Described>(primitive);
      primitive = twin;
    }
    open.insert(open.end(), a.inputs().begin(), a.inputs().end());
    open.insert(open.end(), a.siblings().begin(), a.siblings().end());
  }
}

}  // namespace

DryRun::DryRun() {
  running = this;
}
DryRun::~DryRun() {
  running = nullptr;
}
DryRun* DryRun::current() {
  return running;
}

void DryRun::eval(std::vector<mx::array> outputs) {
  describe(outputs);
  mx::async_eval(outputs);
  outputs.clear();
  let_through(sent_);
  mx::synchronize(mx::default_stream(mx::default_device()));
  note_given_back();
  // Whoever called may hold the results still.
  for (const Live& b : std::exchange(live_, {})) events_.push_back({b.buffer});
}

void DryRun::begin() {
  let_through(before_);
  note_given_back();
}

// MLX frees what it owns without telling anybody, and ops take over nothing
// else: so it is asked later whether a buffer is still there.
void DryRun::took(const mx::array& output, std::size_t bytes) {
  live_.push_back({taken_, output.data_shared_ptr()});
  events_.push_back({taken_++, bytes});
}

void DryRun::sent(mx::Stream stream, bool ours) {
  const long number = ++sent_;
  if (ours) before_ = std::exchange(last_, number);
  const auto wait = [gates = gates_, number] {
    std::unique_lock lock(gates->mutex);
    gates->come = number;
    gates->moved.notify_all();
    gates->moved.wait(lock, [&] { return gates->open >= number; });
  };
  mx::cpu::get_command_encoder(stream).dispatch(wait);
  // MLX itself waits for the stream where too much is under way.
  constexpr long kUnderWay = 16;
  if (number - open_ > kUnderWay) let_through(number - kUnderWay);
}

// The memory of an op is let go of behind its gate and before the next one.
void DryRun::let_through(long ops) {
  if (ops <= open_) return;
  open_ = ops;
  std::unique_lock lock(gates_->mutex);
  gates_->open = ops;
  gates_->moved.notify_all();
  const long next = std::min(ops + 1, sent_);
  gates_->moved.wait(lock, [&] { return gates_->come >= next; });
}

void DryRun::note_given_back() {
  std::erase_if(live_, [&](const Live& b) {
    if (!b.data.expired()) return false;
    events_.push_back({b.buffer});
    return true;
  });
}

mx::array described_leaf(mx::Shape shape, mx::Dtype dtype) {
  return mx::array(
      mx::allocator::Data(no_memory(), [](mx::allocator::Buffer) {}),
      std::move(shape), dtype
  );
}

}  // namespace hearth::ops
