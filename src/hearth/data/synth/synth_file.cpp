#include "hearth/data/synth/synth_file.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "hearth/base/atomic_file.h"
#include "hearth/base/env.h"
#include "hearth/base/error.h"
#include "hearth/base/hash.h"
#include "hearth/data/synth/synth.h"

namespace hearth::data {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kFingerprintRecords = 256;
constexpr std::size_t kFlush = std::size_t{1} << 20;

std::string file_name(const SynthConfig& config, std::uint64_t count) {
  std::string first;
  for (std::uint64_t i = 0; i < std::min(count, kFingerprintRecords); ++i) {
    append_synth_record(synth_kind(config.kind), config.seed, i, first);
  }
  return fmt::format(
      "{}-n{}-s{}-{:016x}.jsonl", config.kind, count, config.seed, hash64(first)
  );
}

}  // namespace

void SynthConfig::fields(FieldVisitor& v) {
  v("kind", kind, "what is generated", one_of({"stories", "arith", "tools"}));
  v("n", n, "records", at_least(1));
  v("seed", seed, "another seed, other records");
}

std::string synth_file(const SynthConfig& config, const SynthWatch& watch) {
  const auto count = static_cast<std::uint64_t>(config.n);
  const fs::path folder = fs::path(env::cache_folder()) / "synth";
  const fs::path path = folder / file_name(config, count);
  if (fs::exists(path)) return path.string();
  fs::create_directories(folder);
  const SynthKind kind = synth_kind(config.kind);
  AtomicFile file(path.string());
  std::string buffer;
  for (std::uint64_t i = 0; i < count; ++i) {
    append_synth_record(kind, config.seed, i, buffer);
    if (buffer.size() < kFlush && i + 1 < count) continue;
    if (watch.stop && watch.stop()) {
      throw Interrupted("[data.synth_file] interrupted");
    }
    file.write(buffer);
    buffer.clear();
    if (watch.progress) watch.progress(i + 1, count);
  }
  file.commit();
  return path.string();
}

}  // namespace hearth::data
