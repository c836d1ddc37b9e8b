#pragma once
// Scoped timing zones. Off by default and then one relaxed load each; on, a
// zone costs two clock readings and an append to its thread's own list.
#include <cstdint>
#include <string>
#include <vector>

namespace hearth::profile {

// Times the scope it lives in. The name must outlive the profile: a literal.
class Zone {
 public:
  explicit Zone(const char* name) noexcept;
  ~Zone();
  Zone(const Zone&) = delete;
  Zone& operator=(const Zone&) = delete;

 private:
  const char* name_;
  std::int64_t start_ns_;  // -1: zones were off
};

// Starts a new recording and drops the one before.
void start_zones();
void stop_zones();
bool zones_on() noexcept;

struct ZoneTotal {
  std::string name;
  std::int64_t count = 0;
  double seconds = 0;       // time inside, zones within it included
  double self_seconds = 0;  // without the zones within it
};
// Most time first.
std::vector<ZoneTotal> zone_totals();

// The recording as trace-event JSON, which Perfetto and Chrome open. Each
// thread keeps at most a million events; what came later is in the totals and
// counted in the file as dropped.
void write_trace(const std::string& path);

}  // namespace hearth::profile
