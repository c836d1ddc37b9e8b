#pragma once
// hearth bench train --ablate.
#include "hearth/cli/command.h"

namespace hearth::cli {

struct AblateFlags {
  std::vector<std::string> recipe;  // a recipe and overrides; empty: our own
  std::int64_t tokens = 245760;
  double limit = 0;    // seconds; rows that would start later are left out
  std::string filter;  // a regex over the rows
};

void bench_ablate(Context& context, const AblateFlags& flags);

}  // namespace hearth::cli
