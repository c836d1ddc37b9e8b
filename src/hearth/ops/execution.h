#pragma once
// What every CPU op runs with: the kernel table, the thread pool, scratch
// memory, and the limit on how far MLX may run ahead of the stream's thread.
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include <mlx/mlx.h>

#include "hearth/base/aligned_buffer.h"
#include "hearth/base/thread_pool.h"
#include "hearth/kernels/table.h"

namespace hearth::ops {
namespace mx = mlx::core;

// What launched work is handed: it asks for nothing else.
struct Execution {
  ThreadPool& pool;
  const kernels::Table& kernels;
};

// The table and pool that ops evaluated by this thread use: kernels::best()
// and shared_pool() unless a ScopedExecution says otherwise.
Execution current_execution();

// Forces a table, and a pool where one is given, for what the calling thread
// evaluates while it lives. Everything launched under it must have finished
// before a given pool is destroyed.
class ScopedExecution {
 public:
  explicit ScopedExecution(
      const kernels::Table& table,
      ThreadPool* pool = nullptr
  );
  ~ScopedExecution();
  ScopedExecution(const ScopedExecution&) = delete;
  ScopedExecution& operator=(const ScopedExecution&) = delete;

 private:
  const kernels::Table* table_;
  ThreadPool* pool_;
};

// MLX encodes, and so allocates, some 50 ops before the stream's thread runs
// them, while memory comes back only as ops finish. At most this many of our
// ops on a stream are encoded and not finished; more costs memory, fewer costs
// time. 0 means no limit. The default is 2.
void set_run_ahead(int ops);
int run_ahead();

// Scratch of at least that size for work launched on that stream. Ops of one
// stream run one after the other and share it; hold the pointer in the
// launched work. It is kept from call to call, as fresh pages cost more than
// most ops. Call from eval_cpu: throws OutOfMemory.
std::shared_ptr<AlignedBuffer> scratch(
    const mx::Stream& stream,
    std::size_t bytes
);

// Names of the ops that were launched since the last clear, each once; for
// tests that ask what a case has covered.
std::vector<std::string> launched_ops();
void clear_launched_ops();

namespace internal {

// Waits until the stream has room under the run-ahead limit. An op counts until
// its inputs are given back, so that a step takes the same memory each time.
void wait_for_room(mx::Stream stream);
void note_launch(int stream, const char* name);
void note_name(const char* name);
// Once a process: MLX's bytes join our ledger and its cache is given room.
void join_memory_ledger();

}  // namespace internal
}  // namespace hearth::ops
