// Which length of rows a recipe can be trained with in which memory, by the
// planner: nothing is loaded and nothing runs.
//
//   plan RECIPE.yaml VOCABULARY
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include "hearth/train/plan/planner.h"

using namespace hearth;

namespace {

void print_plans(const std::string& file, int vocabulary) {
  std::printf(
      "%8s %8s  %-6s %5s %10s %10s\n", "memory", "length", "fits", "rows",
      "peak", "computed"
  );
  std::printf(
      "%8s %8s  %-6s %5s %10s %10s\n", "MiB", "tokens", "", "", "MiB", "again"
  );
  for (const std::size_t mib : {128, 256, 1024}) {
    for (const std::int64_t length : {256, 1024, 4096}) {
      train::Recipe recipe;
      ConfigReader reader(recipe);
      reader.apply(read_yaml_file(file));
      recipe.train.seq_lengths.clear();
      recipe.data.length = length;
      recipe.train.tokens_per_step = 16384;
      // The planner must know the embedding's rows before there is a tokenizer.
      recipe.model.vocab = vocabulary;
      recipe.check();
      train::PlanMachine machine;
      machine.budget = mib << 20;
      machine.threads = 2;
      const train::Plan plan =
          train::make_plan(recipe, train::planned_model(recipe), machine);
      std::printf(
          "%8zu %8ld  %-6s %5ld %10zu %10s%s%s\n", mib,
          static_cast<long>(length), plan.fits ? "yes" : "no",
          static_cast<long>(plan.settled_rows), plan.memory.total() >> 20,
          plan.checkpointing.c_str(), plan.advice.empty() ? "" : "  try ",
          plan.advice.c_str()
      );
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: plan RECIPE.yaml VOCABULARY\n");
    return 2;
  }
  try {
    print_plans(argv[1], std::atoi(argv[2]));
  } catch (const std::exception& e) {
    std::fprintf(stderr, "plan: %s\n", e.what());
    return 1;
  }
}
