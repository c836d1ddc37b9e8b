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

namespace hearth::ops {
namespace mx = mlx::core;

// A buffer is taken, or given back by its last holder.
struct MemoryEvent {
  int buffer = 0;         // numbered as they are taken
  std::size_t bytes = 0;  // that are taken; 0: it is given back
};

// While one lives, what this thread evaluates of our ops is on record and
// nothing is computed: results have no memory behind them, and nobody may read
// one. Graphs are built before or under it, over described leaves and weights.
// As many ops are encoded ahead of the stream's thread as the run-ahead limit
// allows (execution.h): a buffer comes back when the op that read it last
// would surely have finished, which is the most memory a run can need. No
// eval_cpu may throw under it: MLX would wait for the stream, which waits here.
class DryRun {
 public:
  DryRun();
  ~DryRun();
  DryRun(const DryRun&) = delete;
  DryRun& operator=(const DryRun&) = delete;

  // The one of this thread, or null.
  static DryRun* current();

  // Goes through the graph behind the arrays, on a CPU stream, and gives back
  // what is left of it.
  void eval(std::vector<mx::array> outputs);
  const std::vector<MemoryEvent>& events() const { return events_; }

  // For ops, in this order: an op of ours is about to take buffers; the array
  // has a buffer of that size now; the op is sent to the stream. MLX's own
  // wait for nothing and so do not begin.
  void begin();
  void took(const mx::array& output, std::size_t bytes);
  void sent(mx::Stream stream, bool ours);

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

  std::vector<MemoryEvent> events_;
  std::vector<Live> live_;
  int taken_ = 0;
  // The number of ops that were sent, and those of our last two.
  long sent_ = 0, before_ = 0, last_ = 0;
  long open_ = 0;
  std::shared_ptr<Gates> gates_ = std::make_shared<Gates>();

  void let_through(long ops);
  void note_given_back();
};

// A leaf that has a shape and no numbers, for graphs that are never computed.
mx::array described_leaf(mx::Shape shape, mx::Dtype dtype);

}  // namespace hearth::ops
