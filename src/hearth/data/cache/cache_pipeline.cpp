#include "hearth/data/cache/cache_pipeline.h"

#include <utility>

#include <fmt/format.h>

#include "hearth/base/error.h"

namespace hearth::data {

EncodePipeline::EncodePipeline(
    const std::vector<DataFile>& files,
    const ReadSettings& read,
    const ExampleEncoder& encoder,
    InputPosition from,
    int threads
)
    : files_(files),
      read_(read),
      encoder_(encoder),
      from_(from),
      window_(static_cast<std::uint64_t>(threads) * 2),
      working_(threads) {
  try {
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
  } catch (...) {
    // The system refused a thread: see WorkerQueue.
    stop();
    throw;
  }
}

EncodePipeline::~EncodePipeline() {
  stop();
}

void EncodePipeline::stop() {
  {
    std::lock_guard lock(result_mutex_);
    stopped_ = true;
  }
  room_.notify_all();
  for (auto& thread : threads_) thread.join();
}

// The next chunk of any file, with its place in the order.
bool EncodePipeline::pull(
    RawChunk& raw,
    EncodedChunk& out,
    std::uint64_t& number
) {
  std::lock_guard lock(input_mutex_);
  if (input_done_) return false;
  number = issued_++;
  try {
    input_done_ = !pull_from_file(raw, out);
  } catch (...) {
    input_done_ = true;
    throw;
  }
  return !input_done_;
}

bool EncodePipeline::pull_from_file(RawChunk& raw, EncodedChunk& out) {
  for (; from_.file < files_.size(); ++from_.file, from_.at = {}) {
    if (!reader_) {
      reader_ =
          std::make_unique<RecordReader>(files_[from_.file], read_, from_.at);
    }
    if (reader_->next(raw)) {
      out.file = from_.file;
      out.stored = reader_->stored_position();
      return true;
    }
    reader_.reset();
  }
  return false;
}

void EncodePipeline::encode(
    RecordParser& parser,
    Record& record,
    const RawChunk& raw,
    EncodedChunk& out
) const {
  out.records.clear();
  out.records.reserve(raw.records.size());
  for (const auto& r : raw.records) {
    EncodedRecord& e = out.records.emplace_back();
    e.line = r.line;
    e.next = r.next;
    e.bytes = r.end - r.begin;
    if (r.too_long) {
      e.problem = fmt::format("a line must fit {} bytes", read_.max_line_bytes);
      continue;
    }
    if (!r.problem.empty()) {
      e.problem = r.problem;
      continue;
    }
    const std::string_view bytes(raw.bytes.data() + r.begin, e.bytes);
    try {
      parser.parse(bytes, files_[out.file].format, record);
      encoder_.encode(record, e.documents);
      e.replaced = record.replaced;
      e.shape = record.shape;
      e.present = record.present;
      e.empty_prompt = record.empty_prompt();
      e.unused.swap(record.unused);
    } catch (const UsageError& error) {
      e.problem = error.what();
      e.documents.clear();
    }
  }
}

// False when the pipeline was stopped meanwhile.
bool EncodePipeline::put(std::uint64_t number, Slot slot) {
  std::unique_lock lock(result_mutex_);
  room_.wait(lock, [&] { return stopped_ || number < taken_ + window_; });
  results_.emplace(number, std::move(slot));
  ready_.notify_one();
  return !stopped_;
}

void EncodePipeline::work() {
  RecordParser parser(read_);
  Record record;
  RawChunk raw;
  for (bool go = true; go;) {
    Slot slot;
    std::uint64_t number = 0;
    try {
      if (!pull(raw, slot.chunk, number)) break;
      encode(parser, record, raw, slot.chunk);
    } catch (...) {
      slot.error = std::current_exception();
      go = false;
    }
    go = put(number, std::move(slot)) && go;
  }
  std::lock_guard lock(result_mutex_);
  --working_;
  ready_.notify_one();
}

bool EncodePipeline::next(EncodedChunk& out) {
  std::unique_lock lock(result_mutex_);
  ready_.wait(lock, [&] {
    return results_.count(taken_) > 0 || working_ == 0;
  });
  auto found = results_.find(taken_);
  if (found == results_.end()) return false;
  Slot slot = std::move(found->second);
  results_.erase(found);
  ++taken_;
  room_.notify_all();
  if (slot.error) std::rethrow_exception(slot.error);
  out = std::move(slot.chunk);
  return true;
}

}  // namespace hearth::data
