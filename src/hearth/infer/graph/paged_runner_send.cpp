// Steps of the runner whose tokens the device chooses.
#include <algorithm>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/infer/engine/runner_parts.h"
#include "hearth/infer/graph/device_sampler.h"
#include "hearth/infer/graph/ints.h"
#include "hearth/infer/graph/paged_runner.h"
#include "hearth/profile/zone.h"

namespace hearth::infer {

// Tokens that the host knows, and of the others those that the device chose.
mx::array PagedRunner::ids_of(std::span<const DrawnRow> rows, int count) const {
  std::vector<int> ids(index(count)), from(index(count)),
      known(index(count), 1);
  bool all_known = true;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    if (rows[r].id) {
      ids[r] = *rows[r].id;
      continue;
    }
    all_known = false;
    known[r] = 0;
    const auto at =
        device_ ? std::ranges::find(device_->sequences, rows[r].sequence)
                : std::vector<SequenceId>::const_iterator{};
    if (!device_ || at == device_->sequences.end()) {
      throw UsageError(
          fmt::format(
              "[infer.Runner] the token of sequence {} must be given: the "
              "last step chose none for it",
              rows[r].sequence
          )
      );
    }
    from[r] = static_cast<int>(at - device_->sequences.begin());
  }
  auto given = ints(ids, {count});
  if (all_known) return given;
  return mx::where(
      mx::astype(ints(known, {count}), mx::bool_), given,
      mx::take(device_->chosen.ids, ints(from, {count}), 0)
  );
}

// What of a step the host knows of its rows.
PagedRunner::Sent PagedRunner::look_at(std::span<const DrawnRow> rows) const {
  Sent out;
  out.rows = DecodeStep::rows_for(static_cast<int>(rows.size()));
  out.places.resize(index(out.rows));
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const DrawnRow& row = rows[r];
    const auto& sequence = pages_.find(row.sequence);
    out.who.push_back(row.sequence);
    out.places[r] = sequence.length;
    out.sequences.push_back(&sequence);
    out.longest = std::max(out.longest, sequence.length + 1);
    out.draws.push_back(row.draw);
    if (row.draw.temperature > 0) {
      out.form = std::max(
          out.form, row.draw.ranked() ? StepForm::ranked : StepForm::drawn
      );
    }
    out.goes_on = out.goes_on && !row.id;
    if (adapter_of(sequence) != adapter_of(*out.sequences.front())) {
      throw UsageError("[infer.Runner.send] rows must have one adapter");
    }
  }
  out.goes_on = out.goes_on && device_ && device_->sequences == out.who;
  return out;
}

void PagedRunner::send(std::span<const DrawnRow> rows) {
  const profile::Zone zone("infer.send");
  std::vector<RunnerPart> parts;
  std::vector<std::pair<SequenceId, int>> wanted;
  constexpr std::int32_t kSome = 0;
  for (const auto& row : rows) {
    const std::int32_t& id = row.id ? *row.id : kSome;
    parts.push_back({row.sequence, {&id, 1}, LogitsOf::last});
    wanted.emplace_back(row.sequence, 1);
  }
  check_parts(parts, {vocabulary(), context(), [&](SequenceId id) {
                        return length(id);
                      }});
  Sent now = look_at(rows);
  const auto ids = now.goes_on ? device_->chosen.ids : ids_of(rows, now.rows);
  reserve(wanted);
  const int most = decode_.pages_for(now.longest);
  auto table = table_of(now.sequences, now.rows, most);
  // What is there from the last step need not be brought to the device.
  const bool stand = now.goes_on && device_->lengths == now.places;
  if (!stand) DevicePages::settle();
  StepRows step{
      ids,
      stand ? device_->chosen.lengths : ints(now.places, {now.rows}),
      stand && device_->table == table ? device_->pages
                                       : ints(table, {now.rows, most}),
      {}
  };
  if (now.form != StepForm::likely) {
    step.drawn.push_back(draw_rows(now.draws, now.rows));
  }
  auto chosen =
      decode_.choose(step, now.form, adapter_of(*now.sequences.front()));
  mx::async_eval(chosen.tokens, chosen.ids, chosen.lengths);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    ++pages_.find(rows[r].sequence).length;
    // Rows that fill the step up stay where they are.
    ++now.places[r];
  }
  flights_.push_back({chosen.tokens, rows.size()});
  device_.emplace(
      Device{
          std::move(now.who), std::move(now.places), std::move(table),
          std::move(chosen), step.pages
      }
  );
}

std::vector<std::int32_t> PagedRunner::receive() {
  if (flights_.empty()) {
    throw UsageError("[infer.Runner.receive] nothing was sent");
  }
  Flight flight = std::move(flights_.front());
  flights_.pop_front();
  flight.tokens.eval();
  const auto* first = flight.tokens.data<std::uint32_t>();
  return {first, first + flight.rows};
}

}  // namespace hearth::infer
