#pragma once
// What a graph takes and gives back of memory, found by evaluating it without
// memory and without work. MLX's own evaluator goes through the graph, so its
// order, what it keeps alive and which input an op takes over are what they
// are in a real run; every op's eval_cpu says what it would allocate.
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include <mlx/mlx.h>

#include "hearth/base/error.h"

namespace hearth::ops {
namespace mx = mlx::core;

// A buffer is taken, or given back by its last holder.
struct MemoryEvent {
  int buffer = 0;         // numbered as they are taken
  std::size_t bytes = 0;  // that are taken; 0: it is given back
};

// While one lives, the graphs that this thread builds are for it: what eval()
// goes through of our ops is on record and nothing is computed; results have no
// memory behind them, and nobody may read one. Graphs are built over described
// leaves and weights. As many ops are encoded ahead of the stream's thread as
// the run-ahead limit allows (execution.h): a buffer comes back when the op
// that read it last would surely have finished, which is the most memory a run
// can need.
class DryRun {
 public:
  DryRun();
  ~DryRun();
  DryRun(const DryRun&) = delete;
  DryRun& operator=(const DryRun&) = delete;

  // The one that this thread builds graphs for, or null.
  static DryRun* building();
  // The one that goes through a graph on this thread now, or null.
  static DryRun* current();

  // Goes through the graph behind the arrays, on a CPU stream. What an op
  // throws comes out of here, and nothing of that graph is under way any more.
  void eval(std::vector<mx::array> outputs);
  // Of all that was gone through; what is held still is given back at the end.
  std::vector<MemoryEvent> events() const;
  // The most scratch that an op has asked for (execution.h).
  std::size_t scratch() const { return scratch_; }
  // Arrays of the largest graph, whatever they hold.
  std::size_t nodes() const { return nodes_; }

  // For ops, in this order: an op of ours asks for scratch; it is about to take
  // buffers; the array has a buffer of that size now; the op is sent to the
  // stream. MLX's own wait for nothing and so do not begin.
  void asked_scratch(std::size_t bytes);
  void begin();
  void took(const mx::array& output, std::size_t bytes);
  void sent(mx::Stream stream, bool ours);
  // An op has thrown: MLX waits for the stream before it passes that on, so
  // nothing may wait at a gate there.
  void break_off();

 private:
  struct Live {
    int buffer;
    std::weak_ptr<mx::array::Data> data;
  };
  // Ops that were sent wait at gates on the stream's thread until they would
  // have finished. By their numbers from 1 on: the last that may pass, and the
  // last that has come.
  struct Gates {
    std::mutex mutex;
    std::condition_variable moved;
    long open = 0, come = 0;
  };

  DryRun* before_this_;
  std::vector<MemoryEvent> events_;
  std::vector<Live> live_;
  int taken_ = 0;
  std::size_t scratch_ = 0, nodes_ = 0;
  // The number of ops that were sent, and those of our last two.
  long sent_ = 0, before_ = 0, last_ = 0;
  long open_ = 0;
  std::shared_ptr<Gates> gates_ = std::make_shared<Gates>();

  void let_through(long ops);
  void note_given_back();
};

// A leaf that has a shape and no numbers, for graphs that are never computed.
// Where MLX itself is asked for what such a leaf leads to, it throws NoNumbers.
mx::array described_leaf(mx::Shape shape, mx::Dtype dtype);

struct NoNumbers : Error {
  NoNumbers();
};

// For who evaluates a part of a graph while the rest is being built, as to
// bound what it takes: mx::eval, and under a dry run a part of that.
void evaluate(std::vector<mx::array> arrays);

}  // namespace hearth::ops
