#include "hearth/profile/zone.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <tuple>

#include <fmt/format.h>

#include "hearth/base/atomic_file.h"
#include "hearth/base/clock.h"
#include "hearth/base/json.h"

namespace hearth::profile {
namespace {

constexpr std::size_t kMaxEvents = 1'000'000;

std::int64_t now_ns() {
  const auto t = Clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(t).count();
}

struct Event {
  const char* name;
  std::int64_t start, end;
};

struct Sum {
  std::int64_t count = 0, total = 0, self = 0;
};

// The events of one thread. Its mutex is contended only while a report is made.
struct ThreadLog {
  std::mutex mutex;
  int id = 0;
  std::vector<Event> events;
  std::int64_t dropped = 0;
  std::map<std::string_view, Sum> sums;
  std::vector<std::int64_t> inner;  // per open zone: time of zones within it
};

struct Recorder {
  std::atomic<bool> on{false};
  std::mutex mutex;
  std::vector<std::shared_ptr<ThreadLog>> logs;
  std::int64_t start = 0;
};

Recorder& recorder() {
  static Recorder instance;
  return instance;
}

ThreadLog& thread_log() {
  // Shared with the recorder, so that a thread's part outlives the thread.
  thread_local const std::shared_ptr<ThreadLog> log = [] {
    auto made = std::make_shared<ThreadLog>();
    const std::lock_guard lock(recorder().mutex);
    made->id = static_cast<int>(recorder().logs.size()) + 1;
    recorder().logs.push_back(made);
    return made;
  }();
  return *log;
}

}  // namespace

bool zones_on() noexcept {
  return recorder().on.load(std::memory_order_relaxed);
}

Zone::Zone(const char* name) noexcept
    : name_(name), start_ns_(zones_on() ? now_ns() : -1) {
  if (start_ns_ < 0) return;
  ThreadLog& log = thread_log();
  const std::lock_guard lock(log.mutex);
  log.inner.push_back(0);
}

Zone::~Zone() {
  if (start_ns_ < 0) return;
  const std::int64_t end = now_ns(), took = end - start_ns_;
  ThreadLog& log = thread_log();
  const std::lock_guard lock(log.mutex);
  // A recording that was restarted inside this zone has forgotten it.
  if (log.inner.empty()) return;
  const std::int64_t inner = log.inner.back();
  log.inner.pop_back();
  if (!log.inner.empty()) log.inner.back() += took;
  Sum& sum = log.sums[name_];
  ++sum.count;
  sum.total += took;
  sum.self += took - inner;
  if (log.events.size() < kMaxEvents) {
    log.events.push_back({name_, start_ns_, end});
  } else {
    ++log.dropped;
  }
}

void start_zones() {
  Recorder& r = recorder();
  const std::lock_guard lock(r.mutex);
  for (const auto& log : r.logs) {
    const std::lock_guard inner(log->mutex);
    log->events.clear();
    log->sums.clear();
    log->inner.clear();
    log->dropped = 0;
  }
  r.start = now_ns();
  r.on.store(true);
}

void stop_zones() {
  recorder().on.store(false);
}

std::vector<ZoneTotal> zone_totals() {
  std::map<std::string_view, Sum> sums;
  Recorder& r = recorder();
  const std::lock_guard lock(r.mutex);
  for (const auto& log : r.logs) {
    const std::lock_guard inner(log->mutex);
    for (const auto& [name, sum] : log->sums) {
      Sum& s = sums[name];
      s.count += sum.count;
      s.total += sum.total;
      s.self += sum.self;
    }
  }
  std::vector<ZoneTotal> totals;
  for (const auto& [name, s] : sums) {
    totals.push_back(
        {std::string(name), s.count, static_cast<double>(s.total) * 1e-9,
         static_cast<double>(s.self) * 1e-9}
    );
  }
  std::sort(totals.begin(), totals.end(), [](const auto& a, const auto& b) {
    return std::tie(b.seconds, a.name) < std::tie(a.seconds, b.name);
  });
  return totals;
}

void write_trace(const std::string& path) {
  Recorder& r = recorder();
  AtomicFile file(path);
  file.write("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n");
  const std::lock_guard lock(r.mutex);
  std::int64_t dropped = 0;
  std::string block;
  for (const auto& log : r.logs) {
    const std::lock_guard inner(log->mutex);
    dropped += log->dropped;
    for (const Event& e : log->events) {
      block += fmt::format(
          "{{\"ph\":\"X\",\"pid\":1,\"tid\":{},\"name\":{},\"ts\":{:.3f},"
          "\"dur\":{:.3f}}},\n",
          log->id, to_json_line(Json(e.name)),
          static_cast<double>(e.start - r.start) * 1e-3,
          static_cast<double>(e.end - e.start) * 1e-3
      );
      if (block.size() > (1 << 20)) {
        file.write(block);
        block.clear();
      }
    }
  }
  file.write(block);
  file.write(
      fmt::format(
          "{{\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\",\"args\":"
          "{{\"name\":\"hearth\"}}}}\n],\"otherData\":{{\"dropped_events\":{}}}"
          "}}\n",
          dropped
      )
  );
  file.commit();
}

}  // namespace hearth::profile
