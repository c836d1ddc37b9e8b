// The tables that were compiled in, and which of them this processor runs.
#include <array>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hearth/base/env.h"
#include "hearth/base/error.h"
#include "hearth/base/spelling.h"
#include "hearth/kernels/table.h"

namespace hearth::kernels {

// clang-format off
namespace generic { extern const Table table; }
#if HEARTH_HAS_AVX2
namespace avx2 { extern const Table table; }
namespace avx512f { extern const Table table; }
namespace avx512 { extern const Table table; }
namespace amx { extern const Table table; }
#endif
#if HEARTH_HAS_NEON
namespace neon { extern const Table table; }
#endif
// clang-format on

std::span<const Table* const> tables() noexcept {
  static constexpr const Table* kAll[] = {
      &generic::table,
#if HEARTH_HAS_AVX2
      &avx2::table,    &avx512f::table, &avx512::table, &amx::table,
#endif
#if HEARTH_HAS_NEON
      &neon::table,
#endif
  };
  return kAll;
}

std::span<const Table* const> usable_tables() noexcept {
  static const std::vector<const Table*> usable = [] {
    std::vector<const Table*> found;
    for (const Table* t : tables()) {
      if (t->supported()) found.push_back(t);
    }
    return found;
  }();
  return usable;
}

const Table& table_named(std::string_view isa) {
  std::vector<std::string> known, usable;
  for (const Table* t : tables()) known.emplace_back(t->isa);
  for (const Table* t : usable_tables()) {
    if (t->isa == isa) return *t;
    usable.emplace_back(t->isa);
  }
  for (const std::string& name : known) {
    if (name != isa) continue;
    throw UsageError(
        fmt::format(
            "[kernels.table_named] this processor must support the instruction "
            "set, got '{}'; it runs {}",
            isa, fmt::join(usable, ", ")
        )
    );
  }
  throw UsageError(
      fmt::format(
          "[kernels.table_named] the instruction set must be one of {}, got "
          "'{}'{}",
          fmt::join(known, ", "), isa, did_you_mean(isa, known)
      )
  );
}

const Table& best() {
  static const Table* const chosen = [] {
    const auto wanted = env::get(env::kIsa);
    return wanted ? &table_named(*wanted) : usable_tables().back();
  }();
  return *chosen;
}

}  // namespace hearth::kernels
