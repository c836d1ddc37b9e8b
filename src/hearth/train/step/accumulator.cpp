#include "hearth/train/step/accumulator.h"

#include <algorithm>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/ops/arithmetic/op.h"

namespace hearth::train {
namespace {

// An array of our own to add to: gradients of unused parameters are
// broadcasts of one zero.
mx::array owned(const mx::array& g) {
  if (g.flags().row_contiguous && g.data_size() == g.size()) return g;
  auto copy = mx::contiguous(g);
  copy.eval();
  return copy;
}

// Every trained matrix has a home, empty now.
void open_homes(const std::vector<nn::Weight*>& parameters) {
  if (!ops::on_cpu({})) return;
  const auto zone = MemoryZone::named("gradients");
  for (nn::Weight* p : parameters) {
    if (p->shape.size() != 2) continue;
    if (!p->home) p->home = std::make_shared<ops::GradientHome>(p->shape, zone);
    p->home->clear();
  }
}

void add(
    const std::vector<nn::Weight*>& parameters,
    Gradients& total,
    Gradients& part
) {
  for (auto& g : part.arrays) g = owned(g);
  total.loss_sum += part.loss_sum;
  total.weight_sum += part.weight_sum;
  if (total.arrays.empty()) {
    total.arrays = std::move(part.arrays);
    return;
  }
  for (std::size_t i = 0; i < part.arrays.size(); ++i) {
    if (parameters[i]->home) continue;
    ops::accumulate(total.arrays[i], part.arrays[i], 1);
  }
}

[[noreturn]] void give_up(const data::Batch& batch, const OutOfMemory& e) {
  throw OutOfMemory(
      fmt::format(
          "one row of {} tokens does not fit in memory: {}", batch.length,
          e.what()
      ),
      "shorten data.length, set train.checkpointing=all, use lora, or a "
      "smaller model"
  );
}

}  // namespace

std::uint32_t whole_groups(
    std::uint32_t rows,
    std::uint32_t together,
    std::uint32_t batch_rows
) {
  rows = std::clamp(rows, together, std::max(together, batch_rows));
  rows -= rows % together;
  return rows;
}

std::uint32_t fewer_rows(std::uint32_t rows, std::uint32_t together) {
  return (rows / together + 1) / 2 * together;
}

Gradients accumulate(
    const models::Decoder& model,
    const Objective& objective,
    const data::Batch& batch,
    std::uint32_t& rows,
    const AccumulateOptions& options
) {
  Gradients total;
  const auto parameters = model.parameters().trainable();
  open_homes(parameters);
  const std::uint32_t together = objective.row_group();
  rows = whole_groups(rows, together, batch.rows);
  for (std::uint32_t begin = 0; begin < batch.rows;) {
    std::vector<MicroBatch> group;
    std::uint32_t end = begin;
    while (end < batch.rows &&
           static_cast<int>(group.size()) < options.eval_interval) {
      const std::uint32_t next = std::min(end + rows, batch.rows);
      group.push_back(
          make_micro_batch(objective, batch, end, next, options.noise)
      );
      end = next;
    }
    try {
      Gradients part = gradients_of(
          model, objective, group, options.compute, options.loss_scale
      );
      add(parameters, total, part);
      begin = end;
    } catch (const OutOfMemory& e) {
      mx::clear_cache();
      if (rows <= together) give_up(batch, e);
      const std::uint32_t before = rows;
      rows = fewer_rows(rows, together);
      if (options.shrunk) options.shrunk(before, rows, e.what());
      // What was summed at home may hold a part of what failed.
      total = {};
      open_homes(parameters);
      begin = 0;
    }
  }
  return total;
}

}  // namespace hearth::train
