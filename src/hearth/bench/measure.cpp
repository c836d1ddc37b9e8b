#include "hearth/bench/measure.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>

#include <fmt/format.h>

#include "hearth/base/aligned_buffer.h"
#include "hearth/base/clock.h"
#include "hearth/base/env.h"
#include "hearth/base/progress.h"
#include "hearth/base/thread_pool.h"
#include "hearth/kernels/table.h"

namespace hearth::bench {
namespace {

using hardware::Peaks;
constexpr int kTries = 5;
// Others who use the machine take a second or two of it at a time: the better
// of two rounds that lie a few seconds apart is what the machine can do.
constexpr int kRounds = 2;
constexpr double kSecondsATry = 0.05;

double seconds_of(FunctionRef<void()> work) {
  const auto start = Clock::now();
  work();
  return seconds_since(start);
}

void record(Peaks& peaks, const hardware::ArithmeticPeak& now) {
  for (auto& p : peaks.arithmetic) {
    if (p.isa != now.isa || p.dtype != now.dtype || p.threads != now.threads) {
      continue;
    }
    p.gops = std::max(p.gops, now.gops);
    return;
  }
  peaks.arithmetic.push_back(now);
}

void record(Peaks& peaks, const hardware::BandwidthPeak& now) {
  for (auto& p : peaks.bandwidth) {
    if (p.kind != now.kind || p.threads != now.threads) continue;
    p.gb_s = std::max(p.gb_s, now.gb_s);
    return;
  }
  peaks.bandwidth.push_back(now);
}

// Operations per second of one loop on every thread of the pool.
double loop_rate(kernels::PeakLoop loop, ThreadPool& pool) {
  // Long enough that starting the threads does not show.
  long rounds = 1000;
  while (true) {
    const double t = seconds_of([&] { loop(rounds); });
    if (t > kSecondsATry / 4) {
      rounds =
          static_cast<long>(static_cast<double>(rounds) * kSecondsATry / t) + 1;
      break;
    }
    rounds *= 4;
  }
  double best = 0;
  for (int i = 0; i < kTries; ++i) {
    std::vector<double> done(static_cast<std::size_t>(pool.size()));
    const double t = seconds_of([&] {
      pool.run([&](int w) {
        done[static_cast<std::size_t>(w)] = loop(rounds);
      });
    });
    double operations = 0;
    for (const double d : done) operations += d;
    best = std::max(best, operations / t);
  }
  return best;
}

void measure_arithmetic(ThreadPool& pool, Peaks& peaks, Progress& progress) {
  struct Loop {
    const char* dtype;
    kernels::PeakLoop kernels::PeakKernels::* member;
  };
  static constexpr Loop kLoops[] = {
      {"fp32", &kernels::PeakKernels::fp32},
      {"bf16", &kernels::PeakKernels::bf16},
      {"int8", &kernels::PeakKernels::int8},
  };
  for (const kernels::Table* table : kernels::usable_tables()) {
    for (const Loop& l : kLoops) {
      const kernels::PeakLoop loop = table->peak->*l.member;
      if (loop == nullptr) continue;
      progress.update(
          0, fmt::format("{} {}, {} threads", table->isa, l.dtype, pool.size())
      );
      record(
          peaks,
          hardware::ArithmeticPeak{
              table->isa, l.dtype, pool.size(), loop_rate(loop, pool) * 1e-9
          }
      );
    }
  }
}

// Half of it is the source and half the target of a copy.
AlignedBuffer bandwidth_buffer(const hardware::Machine& machine) {
  const std::size_t cache =
      std::max(machine.cpu.l3_bytes, machine.cpu.l2_bytes);
  std::size_t bytes = std::max<std::size_t>(8 * cache, std::size_t{512} << 20);
  bytes = std::min(bytes, hardware::safe_memory(machine).bytes / 2);
  bytes = bytes / 4096 * 4096;
  AlignedBuffer buffer(MemoryZone::named("bench"), bytes);
  std::memset(buffer.data(), 1, bytes);  // pages that exist
  return buffer;
}

void measure_bandwidth(AlignedBuffer& buffer, ThreadPool& pool, Peaks& peaks) {
  const auto read = kernels::usable_tables().back()->peak->read;
  const std::size_t half = buffer.size() / 2;
  std::byte* const data = buffer.data();
  double best_read = 0, best_copy = 0;
  volatile unsigned long sink = 0;
  for (int i = 0; i < kTries; ++i) {
    const double tr = seconds_of([&] {
      pool.parallel_for(buffer.size(), 4096, [&](std::size_t a, std::size_t b) {
        sink = read(data + a, static_cast<long>(b - a));
      });
    });
    best_read = std::max(best_read, static_cast<double>(buffer.size()) / tr);
    const double tc = seconds_of([&] {
      pool.parallel_for(half, 4096, [&](std::size_t a, std::size_t b) {
        std::memcpy(data + half + a, data + a, b - a);
      });
    });
    best_copy = std::max(best_copy, 2 * static_cast<double>(half) / tc);
  }
  const int threads = pool.size();
  record(peaks, hardware::BandwidthPeak{"read", threads, best_read * 1e-9});
  record(peaks, hardware::BandwidthPeak{"copy", threads, best_copy * 1e-9});
}

void measure_round(
    ThreadPool& pool,
    AlignedBuffer& buffer,
    Peaks& peaks,
    Progress& progress
) {
  measure_arithmetic(pool, peaks, progress);
  progress.update(0, fmt::format("memory, {} threads", pool.size()));
  measure_bandwidth(buffer, pool, peaks);
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

}  // namespace

std::string machine_id(const hardware::Machine& machine) {
  return fmt::format(
      "{}, {} cores, {}", machine.cpu.model, machine.cpu.physical_cores,
      machine.cpu.architecture
  );
}

double busy_cores() {
  double load = 0;
  return ::getloadavg(&load, 1) == 1 ? load : 0;
}

hardware::Peaks measure_peaks(const hardware::Machine& machine) {
  Progress progress({.title = "measuring", .unit = "", .total = 0});
  Peaks peaks;
  peaks.date = utc_now();
  peaks.machine = machine_id(machine);
  // AMX needs its permission before threads exist: usable_tables() asks.
  (void)kernels::usable_tables();
  ThreadPool one(1);
  AlignedBuffer buffer = bandwidth_buffer(machine);
  for (int round = 0; round < kRounds; ++round) {
    measure_round(one, buffer, peaks, progress);
    if (shared_pool().size() > 1) {
      measure_round(shared_pool(), buffer, peaks, progress);
    }
  }
  measure_training(peaks, progress);
  progress.update(0, "disk");
  std::error_code ignored;
  std::filesystem::create_directories(env::cache_folder(), ignored);
  peaks.disk_read_gb_s =
      measure_disk_read(env::cache_folder(), peaks.disk_note);
  progress.finish();
  return peaks;
}

}  // namespace hearth::bench
