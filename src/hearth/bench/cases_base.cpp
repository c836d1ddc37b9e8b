// The floor everything stands on: what it costs to start a parallel job, to
// read memory, to draw random numbers.
#include <memory>

#include "hearth/base/aligned_buffer.h"
#include "hearth/base/random.h"
#include "hearth/base/thread_pool.h"
#include "hearth/bench/cases.h"
#include "hearth/kernels/table.h"

namespace hearth::bench {
namespace {

constexpr std::size_t kBytes = std::size_t{512} << 20;

BenchCase pool_dispatch() {
  constexpr int kJobs = 1000;
  BenchCase c;
  c.name = "thread pool: one empty parallel_for";
  c.unit = "jobs/s";
  c.work = kJobs;
  c.prepare = [] {
    return [] {
      for (int i = 0; i < kJobs; ++i) {
        shared_pool().parallel_for(64, 1, [](std::size_t, std::size_t) {});
      }
    };
  };
  return c;
}

BenchCase memory_read(const CaseContext& context) {
  BenchCase c;
  c.name = "memory: read 512 MiB";
  c.unit = "GB/s";
  c.work = static_cast<double>(kBytes);
  c.peak = context.read_gb_s();
  c.isa = kernels::best().isa;
  c.prepare = [] {
    auto buffer =
        std::make_shared<AlignedBuffer>(MemoryZone::named("bench"), kBytes);
    for (std::byte& b : buffer->as<std::byte>()) b = std::byte{1};
    return [buffer] {
      shared_pool().parallel_for(
          kBytes, 4096, [&](std::size_t begin, std::size_t end) {
            kernels::best().peak->read(
                buffer->data() + begin, static_cast<long>(end - begin)
            );
          }
      );
    };
  };
  return c;
}

BenchCase random_blocks() {
  constexpr int kBlocks = 1 << 20;
  BenchCase c;
  c.name = "random: Philox blocks, one thread";
  c.unit = "GB/s";
  c.work = 16.0 * kBlocks;
  c.prepare = [] {
    return [] {
      std::uint32_t sum = 0;
      for (int i = 0; i < kBlocks; ++i) {
        sum += random_block(RandomKey(7), static_cast<std::uint64_t>(i))[0];
      }
      asm volatile("" : : "r"(sum));
    };
  };
  return c;
}

}  // namespace

std::vector<BenchCase> base_cases(const CaseContext& context) {
  return {pool_dispatch(), memory_read(context), random_blocks()};
}

}  // namespace hearth::bench
