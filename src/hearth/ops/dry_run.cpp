#include "hearth/ops/dry_run.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "hearth/ops/op.h"

namespace hearth::ops {
namespace {

thread_local DryRun* built_for = nullptr;
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

// Stands where an array's numbers would come from: outside of a walk nobody can
// have them.
class Promised : public mx::Primitive {
 public:
  Promised() : Primitive(mx::default_stream(mx::Device::cpu)) {}
  const char* name() const override { return "Promised"; }
  void eval_gpu(const Arrays&, Arrays&) override { throw NoNumbers(); }
  void eval_cpu(const Arrays&, Arrays&) override { throw NoNumbers(); }
};

// Takes the array's numbers from whoever asks MLX, until deliver().
void promise(const mx::array& a) {
  a.primitive_ptr() = std::make_shared<Promised>();
  a.set_status(mx::array::Status::unscheduled);
}
void deliver(const mx::array& a) {
  a.primitive_ptr() = nullptr;
  a.set_status(mx::array::Status::available);
}
bool promised(const mx::array& a) {
  return a.has_primitive() &&
         dynamic_cast<const Promised*>(&a.primitive()) != nullptr;
}

// Any op as a dry run has it: ours say what they take, and one of MLX's own
// takes over an input or takes memory and computes nothing.
class Described : public mx::Primitive {
 public:
  explicit Described(std::shared_ptr<mx::Primitive> of)
      : Primitive(of->stream()),
        of_(std::move(of)),
        ours_(dynamic_cast<const CpuOp*>(of_.get()) != nullptr) {}
  const char* name() const override { return of_->name(); }
  void eval_gpu(const Arrays&, Arrays&) override { throw NoNumbers(); }

  void eval_cpu(const Arrays& in, Arrays& out) override {
    DryRun* run = DryRun::current();
    // Left over from a graph that was broken off.
    if (run == nullptr) throw NoNumbers();
    try {
      if (ours_)
        of_->eval_cpu(in, out);
      else
        take(*run, in, out);
    } catch (...) {
      run->break_off();
      throw;
    }
  }

 private:
  std::shared_ptr<mx::Primitive> of_;
  bool ours_;

  void take(DryRun& run, const Arrays& in, Arrays& out) {
    const std::string_view own = name();
    const bool view = std::ranges::find(kViews, own) != std::end(kViews);
    if (own == "Contiguous" && in[0].flags().row_contiguous) {
      return out[0].copy_shared_buffer(in[0]);
    }
    if (view && (!needs_rows(own) || in[0].flags().row_contiguous)) {
      return of_->eval_cpu(in, out);
    }
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
};

// Puts what computes nothing in place of the graph's ops and of the numbers of
// its leaves, which are added to `leaves`. Returns how many arrays it has.
std::size_t describe(const Arrays& outputs, Arrays& leaves) {
  std::map<const mx::Primitive*, std::shared_ptr<mx::Primitive>> by_original;
  std::unordered_set<std::uintptr_t> seen;
  Arrays open = outputs;
  while (!open.empty()) {
    const mx::array a = std::move(open.back());
    open.pop_back();
    if (!a.has_primitive() || a.status() != mx::array::Status::unscheduled ||
        !seen.insert(a.id()).second) {
      continue;
    }
    if (promised(a)) {
      deliver(a);
      // What an earlier part made may be taken over, so it is not held.
      if (!a.data_shared_ptr()->is_owned()) leaves.push_back(a);
      continue;
    }
    auto& primitive = a.primitive_ptr();
    if (dynamic_cast<const Described*>(primitive.get()) == nullptr) {
      auto& twin = by_original[primitive.get()];
      if (twin == nullptr) twin = std::make_shared<Described>(primitive);
      primitive = twin;
    }
    open.insert(open.end(), a.inputs().begin(), a.inputs().end());
    open.insert(open.end(), a.siblings().begin(), a.siblings().end());
  }
  return seen.size();
}

// While one lives, leaves are there for a walk.
class Delivered {
 public:
  explicit Delivered(const Arrays& outputs)
      : nodes_(describe(outputs, leaves_)) {}
  ~Delivered() {
    for (const mx::array& a : leaves_) promise(a);
  }
  Delivered(const Delivered&) = delete;
  Delivered& operator=(const Delivered&) = delete;
  std::size_t nodes() const { return nodes_; }

 private:
  Arrays leaves_;
  std::size_t nodes_;
};

class Walking {
 public:
  explicit Walking(DryRun* run) { running = run; }
  ~Walking() { running = nullptr; }
  Walking(const Walking&) = delete;
  Walking& operator=(const Walking&) = delete;
};

}  // namespace

NoNumbers::NoNumbers()
    : Error(
          "[ops.DryRun] a graph that is planned must not be read while it is "
          "built: it has shapes and no numbers"
      ) {}

DryRun::DryRun() : before_this_(std::exchange(built_for, this)) {}
DryRun::~DryRun() {
  built_for = before_this_;
}
DryRun* DryRun::building() {
  return built_for;
}
DryRun* DryRun::current() {
  return running;
}

void DryRun::eval(Arrays outputs) {
  const Delivered graph(outputs);
  nodes_ = std::max(nodes_, graph.nodes());
  const Walking now(this);
  mx::async_eval(outputs);
  outputs.clear();
  let_through(sent_);
  mx::synchronize(mx::default_stream(mx::default_device()));
  note_given_back();
}

std::vector<MemoryEvent> DryRun::events() const {
  std::vector<MemoryEvent> all = events_;
  for (const Live& b : live_) all.push_back({b.buffer});
  return all;
}

void DryRun::asked_scratch(std::size_t bytes) {
  scratch_ = std::max(scratch_, bytes);
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

void DryRun::break_off() {
  {
    const std::lock_guard lock(gates_->mutex);
    gates_->open = std::numeric_limits<long>::max();
    gates_->moved.notify_all();
  }
  gates_ = std::make_shared<Gates>();
  sent_ = before_ = last_ = open_ = 0;
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
  mx::array leaf(
      mx::allocator::Data(no_memory(), [](mx::allocator::Buffer) {}),
      std::move(shape), dtype
  );
  promise(leaf);
  return leaf;
}

void evaluate(Arrays arrays) {
  DryRun* const run = DryRun::building();
  if (run == nullptr) return mx::eval(std::move(arrays));
  std::erase_if(arrays, [](const mx::array& a) {
    return a.status() != mx::array::Status::unscheduled || promised(a);
  });
  run->eval(arrays);
  for (const mx::array& a : arrays) promise(a);
}

}  // namespace hearth::ops
