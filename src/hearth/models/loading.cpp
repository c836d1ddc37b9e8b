#include "hearth/models/loading.h"

#include <algorithm>
#include <array>
#include <tuple>

#include <fmt/format.h>

#include "hearth/base/clock.h"
#include "hearth/base/error.h"
#include "hearth/io/file_source.h"
#include "hearth/models/read_choice.h"
#include "hearth/models/stored_fill.h"

namespace hearth::models {
namespace {

std::string layer_of(const std::string& name) {
  constexpr std::string_view kEnd = ".weight";
  return name.ends_with(kEnd) ? name.substr(0, name.size() - kEnd.size())
                              : name;
}

// Some checkpoints were saved from the body of the model, without its prefix.
std::string without_prefix(const std::string& name) {
  for (const std::string_view prefix : {"model.", "transformer."}) {
    if (name.starts_with(prefix)) return name.substr(prefix.size());
  }
  return name;
}

StoredMatrix stored_as(const io::ModelSource& source, const std::string& name) {
  if (name.ends_with(".weight")) return find_matrix(source, layer_of(name));
  StoredMatrix m;
  m.codes = source.find(name);
  return m;
}

}  // namespace

// Times what is done for one tensor after the other and tells of it.
struct Loading::Watch {
  LoadReport& report;
  const LoadOptions& options;
  std::size_t total, shards;
  double start = seconds_now(), at = start;

  // `times` went into that many bytes of a tensor; what else has passed since
  // the last call was for memory.
  void note(
      const nn::Weight& p,
      const io::TensorInfo& t,
      std::size_t bytes,
      LoadTimes times
  ) {
    const double now = seconds_now();
    times.memory = std::max(0.0, now - at - times.sum());
    if (report.shards.empty() || report.shards.back().name != t.file) {
      report.shards.push_back({.name = t.file, .begin = at - start});
    }
    for (LoadPart* part : parts_of(p)) {
      part->bytes += bytes;
      part->seconds += now - at;
      part->times.add(times);
    }
    report.times.add(times);
    report.bytes += bytes;
    at = now;
    if (options.progress && bytes > 0) {
      options.progress(
          {report.bytes, total, report.shards.size(), shards, &report.shards}
      );
    }
  }
  // Nothing more is done for it.
  void finish(const nn::Weight& p, const io::TensorInfo& t) {
    note(p, t, 0, {});
    for (LoadPart* part : parts_of(p)) ++part->tensors;
  }

 private:
  std::array<LoadPart*, 2> parts_of(const nn::Weight& p) {
    return {
        &report.shards.back(), &part_named(report.classes, tensor_class(p.name))
    };
  }
};

StoredMatrix find_stored(
    const io::ModelSource& source,
    const std::string& name
) {
  StoredMatrix m = stored_as(source, name);
  if (m.codes == nullptr) m = stored_as(source, without_prefix(name));
  if (m.codes == nullptr) {
    throw FormatError::at(
        source.path(), 0,
        fmt::format("tensor {} is missing from the model", name)
    );
  }
  return m;
}

Loading::Loading(
    const io::ModelSource& source,
    const LoadOptions& options,
    mx::Dtype compute
)
    : source_(source),
      options_(options),
      plan_(
          options.use,
          compute,
          options.keep_quantized,
          options.quantize,
          options.copies
      ),
      compute_(compute) {}

void Loading::add(nn::Weight& p) {
  const StoredMatrix m = find_stored(source_, p.name);
  check_stored(m, p.shape, p.transposed);
  for (const auto* t : {m.codes, m.scales, m.biases}) {
    if (t == nullptr) continue;
    used_.insert(t->name);
    total_ += t->bytes;
  }
  if (options_.use != Use::described) jobs_.push_back({&p, m});
}

std::vector<std::string> Loading::unused() const {
  std::vector<std::string> names;
  for (const auto& t : source_.tensors()) {
    if (!used_.contains(t.name)) names.push_back(t.name);
  }
  return names;
}

std::vector<io::Slice> Loading::slices_of(const Job& job) const {
  const io::TensorInfo& t = *job.stored.codes;
  const auto rows = static_cast<std::size_t>(job.p->shape.at(0));
  const std::size_t row = t.bytes / rows;
  constexpr auto kGrain = static_cast<std::size_t>(WeightFill::kRowGrain);
  // What is transposed, or put right by the source, comes whole.
  std::size_t step = rows;
  const bool transposed = job.p->transposed && !job.stored.format;
  if (!transposed && io::is_plain(source_, t)) {
    step = std::max(kGrain, options_.slice_bytes / row / kGrain * kGrain);
  }
  std::vector<io::Slice> out;
  for (std::size_t r = 0; r < rows; r += step) {
    out.push_back({&t, r * row, std::min(step, rows - r) * row});
  }
  return out;
}

io::ReadMode Loading::choose_mode() {
  if (options_.read_mode) {
    report_.why = "it was asked for";
    return *options_.read_mode;
  }
  ReadFacts facts{.bytes = total_, .resident = resident_bytes(source_)};
  ReadChoice choice = choose_read(facts);
  if (choice.mode != io::ReadMode::mapped && options_.machine) {
    options_.machine(facts);
    choice = choose_read(facts);
  }
  report_.why = choice.why;
  return choice.mode;
}

void Loading::run() {
  const double start = seconds_now();
  std::ranges::sort(jobs_, [](const Job& a, const Job& b) {
    const auto &x = *a.stored.codes, &y = *b.stored.codes;
    return std::tie(x.file, x.offset) < std::tie(y.file, y.offset);
  });
  std::vector<io::Slice> slices;
  std::set<std::string_view> files;
  for (const Job& job : jobs_) {
    files.insert(job.stored.codes->file);
    const auto more = slices_of(job);
    slices.insert(slices.end(), more.begin(), more.end());
  }
  io::SliceReaderOptions options;
  options.mode = choose_mode();
  options.bytes_per_second = options_.pace;
  report_.how = io::name_of(options.mode);
  io::SliceReader reader(source_, std::move(slices), options);
  report_.window = reader.window_bytes();
  Watch watch{report_, options_, total_, files.size()};
  report_.times.memory += watch.start - start;
  for (const Job& job : jobs_) {
    if (job.stored.format) {
      fill_stored(job, reader, watch);
    } else {
      fill_dense(job, reader, watch);
    }
    watch.finish(*job.p, *job.stored.codes);
  }
  std::ranges::sort(report_.classes, std::ranges::greater{}, &LoadPart::bytes);
  report_.seconds = watch.at - start;
}

// Hands every row to `fill` as it comes.
template <class Fill>
void Loading::fill_rows(
    const Job& job,
    io::SliceReader& reader,
    Watch& watch,
    Fill& fill
) {
  const io::TensorInfo& t = *job.stored.codes;
  const std::size_t row = t.bytes / static_cast<std::size_t>(job.p->shape[0]);
  for (const io::Slice& slice : slices_of(job)) {
    const double waited = reader.waited();
    const FillTimes before = fill.times();
    const auto bytes = reader.next();
    const double begin = seconds_now();
    fill.rows(
        static_cast<long>(slice.begin / row),
        static_cast<long>((slice.begin + slice.bytes) / row), bytes.data()
    );
    const double wall = seconds_now() - begin;
    const FillTimes& after = fill.times();
    // The threads' times, as shares of the wall's.
    LoadTimes times{
        reader.waited() - waited, after.convert - before.convert,
        after.pack - before.pack, after.quantize - before.quantize
    };
    const double sum = times.convert + times.pack + times.quantize;
    const double share = sum > 0 ? wall / sum : 0;
    times.convert *= share;
    times.pack *= share;
    times.quantize *= share;
    watch.note(*job.p, t, slice.bytes, times);
  }
}

void Loading::fill_dense(
    const Job& job,
    io::SliceReader& reader,
    Watch& watch
) {
  nn::Weight& p = *job.p;
  const WeightForms held = plan_.forms(p);
  // Where products are not our own it is rounded whole, from float32: what is
  // rounded is rounded once.
  const bool later = held.quantized && !ops::ours({}, compute_);
  const WeightForms filled = later ? WeightForms{.value = mx::float32} : held;
  WeightFill fill(p, *job.stored.codes, filled);
  fill_rows(job, reader, watch, fill);
  fill.finish();
  if (later) {
    auto codes = std::make_shared<const ops::QuantizedWeight>(
        ops::QuantizedWeight::quantize(p.value(), *held.quantized)
    );
    std::optional<mx::array> rows;
    if (held.value) rows = mx::astype(p.value(), *held.value);
    if (rows) rows->eval();
    p.set(std::move(codes), std::move(rows));
  }
  if (plan_.asked(p) && !p.quantized()) report_.kept_dense.push_back(p.name);
}

// What is read by rows has dense ones; a head may be multiplied in its
// quantised form as well.
void Loading::fill_stored(
    const Job& job,
    io::SliceReader& reader,
    Watch& watch
) {
  nn::Weight& p = *job.p;
  const StoredMatrix& m = job.stored;
  const WeightForms held = plan_.forms(p, m.format);
  StoredFill::Forms forms{held.quantized.has_value(), held.value};
  // Packed from rows that are widened first.
  if (!forms.quantized && !forms.value) forms.value = compute_;
  StoredFill fill(source_, m, p.shape, forms);
  std::size_t beside = 0;
  for (const auto* t : {m.scales, m.biases}) {
    if (t != nullptr) beside += t->bytes;
  }
  if (beside > 0) watch.note(p, *m.codes, beside, {.read = fill.waited()});
  fill_rows(job, reader, watch, fill);
  fill.finish(p);
  const double start = seconds_now();
  plan_.settle(p);
  watch.note(p, *m.codes, 0, {.pack = seconds_now() - start});
  for (const auto* t : {m.codes, m.scales, m.biases}) {
    if (t != nullptr) source_.release(*t);
  }
}

}  // namespace hearth::models
