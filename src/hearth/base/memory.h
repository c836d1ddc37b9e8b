#pragma once
// Byte accounting. Memory that this process's arrays take is charged to named
// zones before it is allocated, and a budget refuses a charge that would pass
// it: Linux kills instead of failing, so we have to fail first.
//
// Memory that another allocator holds on our behalf (MLX's) is reported by a
// gauge; memory_usage() is the one sum that planner, dynamic batching and
// profilers read.
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace hearth {

// Zones are few and live for the whole process. The same name gives the same
// zone.
class MemoryZone {
 public:
  static MemoryZone named(std::string_view name);
  std::string_view name() const;
  std::size_t live() const;
  std::size_t peak() const;

 private:
  friend void charge_memory(MemoryZone, std::size_t);
  friend void release_memory(MemoryZone, std::size_t) noexcept;
  explicit MemoryZone(int index) : index_(index) {}
  int index_;
};

// Throws OutOfMemory, having changed nothing, when the budget does not hold it.
void charge_memory(MemoryZone zone, std::size_t bytes);
void release_memory(MemoryZone zone, std::size_t bytes) noexcept;
// Throws as a charge of that size would, and charges nothing: for memory that
// an external allocator is about to take.
void require_memory(std::size_t bytes);

// 0 means no budget.
void set_memory_budget(std::size_t bytes);
std::size_t memory_budget();

// What an external allocator holds now, such as MLX's active bytes.
void set_external_memory(std::function<std::size_t()> live_bytes);

struct ZoneUsage {
  std::string name;
  std::size_t live = 0, peak = 0;
};
struct MemoryUsage {
  std::size_t own = 0;       // charged and live
  std::size_t external = 0;  // the gauge's reading
  std::size_t total = 0;     // own + external
  std::size_t peak = 0;      // highest total seen at a charge or reading
  std::vector<ZoneUsage> zones;
};
MemoryUsage memory_usage();
void reset_memory_peak();

// For tests of what happens out of memory: the nth charge from now fails as
// if the budget were spent. 0 turns it off.
void fail_memory_charge(int nth);

}  // namespace hearth
