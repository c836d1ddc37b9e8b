#include "hearth/base/memory.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/base/units.h"

namespace hearth {
namespace {

constexpr int kMaxZones = 64;

struct Counter {
  std::string name;
  std::size_t live = 0, peak = 0;
};

// One mutex over all: charges are per buffer, not per element.
struct Ledger {
  std::mutex mutex;
  std::array<Counter, kMaxZones> zones;
  int zone_count = 0;
  std::size_t own = 0, peak = 0, budget = 0;
  int fail_in = 0;
  std::function<std::size_t()> external;

  std::size_t external_live() const { return external ? external() : 0; }
};

Ledger& ledger() {
  static Ledger instance;
  return instance;
}

[[noreturn]] void refuse(
    std::size_t bytes,
    std::size_t used,
    std::size_t budget
) {
  throw OutOfMemory(
      fmt::format(
          "[base.memory] {} more must fit the memory budget of {}, {} are in "
          "use",
          format_bytes(bytes), format_bytes(budget), format_bytes(used)
      ),
      "use a smaller batch or length, checkpointing, or a larger budget"
  );
}

// Throws when `bytes` more do not fit; the lock is held.
void check(Ledger& l, std::size_t bytes) {
  const std::size_t used = l.own + l.external_live();
  if (l.fail_in > 0) {
    --l.fail_in;
    if (l.fail_in == 0) refuse(bytes, used, used);
  }
  if (l.budget != 0 && bytes > l.budget - std::min(used, l.budget)) {
    refuse(bytes, used, l.budget);
  }
  l.peak = std::max(l.peak, used + bytes);
}

}  // namespace

MemoryZone MemoryZone::named(std::string_view name) {
  Ledger& l = ledger();
  const std::lock_guard lock(l.mutex);
  for (int i = 0; i < l.zone_count; ++i) {
    if (l.zones[i].name == name) return MemoryZone(i);
  }
  if (l.zone_count == kMaxZones) {
    throw Error(
        fmt::format(
            "[base.MemoryZone] at most {} zones can exist, '{}' is one more",
            kMaxZones, name
        )
    );
  }
  l.zones[l.zone_count].name = name;
  return MemoryZone(l.zone_count++);
}

std::string_view MemoryZone::name() const {
  return ledger().zones[index_].name;
}

std::size_t MemoryZone::live() const {
  const std::lock_guard lock(ledger().mutex);
  return ledger().zones[index_].live;
}

std::size_t MemoryZone::peak() const {
  const std::lock_guard lock(ledger().mutex);
  return ledger().zones[index_].peak;
}

void charge_memory(MemoryZone zone, std::size_t bytes) {
  Ledger& l = ledger();
  const std::lock_guard lock(l.mutex);
  check(l, bytes);
  l.own += bytes;
  Counter& c = l.zones[zone.index_];
  c.live += bytes;
  c.peak = std::max(c.peak, c.live);
}

void release_memory(MemoryZone zone, std::size_t bytes) noexcept {
  Ledger& l = ledger();
  const std::lock_guard lock(l.mutex);
  l.own -= bytes;
  l.zones[zone.index_].live -= bytes;
}

void require_memory(std::size_t bytes) {
  Ledger& l = ledger();
  const std::lock_guard lock(l.mutex);
  check(l, bytes);
}

void set_memory_budget(std::size_t bytes) {
  const std::lock_guard lock(ledger().mutex);
  ledger().budget = bytes;
}

std::size_t memory_budget() {
  const std::lock_guard lock(ledger().mutex);
  return ledger().budget;
}

void set_external_memory(std::function<std::size_t()> live_bytes) {
  const std::lock_guard lock(ledger().mutex);
  ledger().external = std::move(live_bytes);
}

MemoryUsage memory_usage() {
  Ledger& l = ledger();
  const std::lock_guard lock(l.mutex);
  MemoryUsage u;
  u.own = l.own;
  u.external = l.external_live();
  u.total = u.own + u.external;
  l.peak = std::max(l.peak, u.total);
  u.peak = l.peak;
  for (int i = 0; i < l.zone_count; ++i) {
    u.zones.push_back({l.zones[i].name, l.zones[i].live, l.zones[i].peak});
  }
  return u;
}

void reset_memory_peak() {
  Ledger& l = ledger();
  const std::lock_guard lock(l.mutex);
  l.peak = l.own + l.external_live();
  for (auto& z : l.zones) z.peak = z.live;
}

void fail_memory_charge(int nth) {
  const std::lock_guard lock(ledger().mutex);
  ledger().fail_in = nth;
}

}  // namespace hearth
