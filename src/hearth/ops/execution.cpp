#include "hearth/ops/execution.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <set>

#include <mlx/backend/cpu/encoder.h>

#include "hearth/ops/dry_run.h"

namespace hearth::ops {
namespace {

thread_local const kernels::Table* forced_table = nullptr;
thread_local ThreadPool* forced_pool = nullptr;

// MLX frees what its cache does not hold, at 65 to 70 ms of page faults in a
// training step under its default of 32 MB.
constexpr std::size_t kCacheBytes = std::size_t{4} << 30;

struct StreamState {
  // Ops: sent, with a mark behind them, and passed by such a mark.
  long launched = 0, marked = 0, finished = 0;
  std::shared_ptr<AlignedBuffer> scratch;
};

struct State {
  std::mutex mutex;
  std::condition_variable finished;
  std::map<int, StreamState> streams;
  std::set<std::string> names;
};

// Never destroyed: a stream's thread may outlive static objects.
State& state() {
  static State& instance = *new State;
  return instance;
}

std::atomic<int> ahead_limit{2};

}  // namespace

Execution current_execution() {
  return {
      forced_pool != nullptr ? *forced_pool : shared_pool(),
      forced_table != nullptr ? *forced_table : kernels::best()
  };
}

ScopedExecution::ScopedExecution(const kernels::Table& table, ThreadPool* pool)
    : table_(forced_table), pool_(forced_pool) {
  forced_table = &table;
  if (pool != nullptr) forced_pool = pool;
}

ScopedExecution::~ScopedExecution() {
  forced_table = table_;
  forced_pool = pool_;
}

void set_run_ahead(int ops) {
  ahead_limit = ops;
}
int run_ahead() {
  return ahead_limit;
}

std::shared_ptr<AlignedBuffer> scratch(
    const mx::Stream& stream,
    std::size_t bytes
) {
  if (DryRun* dry = DryRun::current()) {
    dry->asked_scratch(bytes);
    return std::make_shared<AlignedBuffer>();
  }
  static const MemoryZone zone = MemoryZone::named("ops scratch");
  const std::lock_guard lock(state().mutex);
  auto& kept = state().streams[stream.index].scratch;
  if (!kept || kept->size() < bytes) {
    kept.reset();
    kept = std::make_shared<AlignedBuffer>(zone, bytes);
  }
  return kept;
}

std::vector<std::string> launched_ops() {
  const std::lock_guard lock(state().mutex);
  return {state().names.begin(), state().names.end()};
}

void clear_launched_ops() {
  const std::lock_guard lock(state().mutex);
  state().names.clear();
}

namespace internal {

namespace {

void note_finish(StreamState& s, long ops) noexcept {
  {
    const std::lock_guard lock(state().mutex);
    s.finished = std::max(s.finished, ops);
  }
  state().finished.notify_all();
}

}  // namespace

// MLX lets go of an op's inputs in a task of its own behind the op, so what
// tells that there is room is sent by the next op, behind that.
void wait_for_room(mx::Stream stream) {
  const int limit = ahead_limit;
  if (limit <= 0) return;
  std::unique_lock lock(state().mutex);
  StreamState& s = state().streams[stream.index];
  if (s.marked < s.launched) {
    const long ops = s.launched;
    s.marked = ops;
    lock.unlock();
    mx::cpu::get_command_encoder(stream).dispatch([&s, ops]() noexcept {
      note_finish(s, ops);
    });
    lock.lock();
  }
  state().finished.wait(lock, [&] { return s.launched - s.finished < limit; });
}

void note_launch(int stream, const char* name) {
  const std::lock_guard lock(state().mutex);
  ++state().streams[stream].launched;
  state().names.insert(name);
}

void note_name(const char* name) {
  const std::lock_guard lock(state().mutex);
  state().names.insert(name);
}

void join_memory_ledger() {
  static const bool joined = [] {
    set_external_memory([] { return mx::get_active_memory(); });
    // CUDA's cache has the device's memory for its limit.
    if (!mx::cu::is_available()) mx::set_cache_limit(kCacheBytes);
    return true;
  }();
  static_cast<void>(joined);
}

}  // namespace internal
}  // namespace hearth::ops
