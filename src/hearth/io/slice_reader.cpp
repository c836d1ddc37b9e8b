#include "hearth/io/slice_reader.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <thread>

#include <fcntl.h>

#include <fmt/format.h>

#include "hearth/base/aligned_buffer.h"
#include "hearth/base/clock.h"
#include "hearth/base/error.h"
#include "hearth/base/file_handle.h"
#include "hearth/base/page_advice.h"
#include "hearth/io/file_source.h"

namespace hearth::io {
namespace {

// What direct reads must begin at and be a multiple of.
constexpr std::size_t kPage = 4096;

// Past the page cache where that can be; else as ever.
FileHandle open_file(const std::string& path, ReadMode mode) {
#ifdef O_DIRECT
  if (mode == ReadMode::direct) {
    try {
      return FileHandle::open(path, O_RDONLY | O_DIRECT, "read");
    } catch (const IoError&) {  // a file system that has no direct reads
    }
  }
#else
  (void)mode;
#endif
  return FileHandle::open(path, O_RDONLY, "read");
}

std::byte* page_start(AlignedBuffer& memory) {
  const auto at = reinterpret_cast<std::uintptr_t>(memory.data());
  return memory.data() + ((at + kPage - 1) / kPage * kPage - at);
}

}  // namespace

std::string_view name_of(ReadMode mode) {
  return mode == ReadMode::mapped     ? "mapped"
         : mode == ReadMode::buffered ? "read"
                                      : "read past the page cache";
}

struct SliceReader::State {
  // One place of the ring: the slice that it holds or will hold.
  struct Slot {
    enum class Phase : unsigned char { free, reading, ready };
    AlignedBuffer memory;
    std::byte* base = nullptr;  // at a page's beginning
    Phase phase = Phase::free;
    std::span<const std::byte> bytes;
  };

  const ModelSource& source;
  std::vector<Slice> slices;
  SliceReaderOptions options;
  std::size_t at = 0;  // the slice next() hands out
  double waited = 0;
  TensorData held;  // of the slice handed out, in a mapping
  Clock::time_point start = Clock::now();
  std::size_t paced = 0;

  // The ring. Slices are read in order; slot i % slots is slice i's.
  std::vector<std::size_t> reads;  // the slices that are read, by index
  std::vector<Slot> slots;
  std::size_t next_read = 0;  // into reads, the next that a reader takes
  std::size_t given = 0;      // into reads, those handed out
  std::mutex mutex;
  std::condition_variable changed;
  bool stopping = false;
  std::exception_ptr failure;
  std::map<std::string, FileHandle> files;
  std::vector<std::thread> threads;

  State(
      const ModelSource& from,
      std::vector<Slice> parts,
      const SliceReaderOptions& o
  )
      : source(from), slices(std::move(parts)), options(o) {}

  bool is_read(const Slice& s) const {
    return options.mode != ReadMode::mapped && is_plain(source, *s.tensor);
  }

  void make_ring() {
    std::size_t largest = 0;
    for (std::size_t i = 0; i < slices.size(); ++i) {
      if (!is_read(slices[i])) continue;
      reads.push_back(i);
      largest = std::max(largest, slices[i].bytes);
      const std::string& name = slices[i].tensor->file;
      if (!files.contains(name)) {
        files.emplace(name, open_file(name, options.mode));
      }
    }
    if (reads.empty()) return;
    const auto readers = static_cast<std::size_t>(std::max(1, options.readers));
    slots.resize(std::min(reads.size(), readers + 2));
    for (Slot& slot : slots) {
      // Room to begin and end at whole pages.
      slot.memory =
          AlignedBuffer(MemoryZone::named("loading"), largest + 3 * kPage);
      slot.base = page_start(slot.memory);
    }
    for (std::size_t r = 0; r < std::min(readers, reads.size()); ++r) {
      threads.emplace_back([this] { read_slices(); });
    }
  }

  void stop() {
    {
      const std::lock_guard lock(mutex);
      stopping = true;
      changed.notify_all();
    }
    for (auto& t : threads) t.join();
  }

  void read_slices() {
    std::unique_lock lock(mutex);
    while (!stopping && next_read < reads.size()) {
      if (next_read >= given + slots.size()) {
        changed.wait(lock);
        continue;
      }
      const std::size_t mine = next_read++;
      Slot& slot = slots[mine % slots.size()];
      slot.phase = Slot::Phase::reading;
      lock.unlock();
      std::exception_ptr problem;
      try {
        fill(slot, slices[reads[mine]]);
      } catch (...) {
        problem = std::current_exception();
      }
      lock.lock();
      if (problem && !failure) failure = problem;
      slot.phase = Slot::Phase::ready;
      changed.notify_all();
    }
  }

  void fill(Slot& slot, const Slice& slice) const {
    const std::size_t from = slice.tensor->offset + slice.begin;
    const std::size_t first = from / kPage * kPage;
    const std::size_t end = (from + slice.bytes + kPage - 1) / kPage * kPage;
    const std::size_t got =
        files.at(slice.tensor->file).read_at({slot.base, end - first}, first);
    if (first + got < from + slice.bytes) {
      throw FormatError::at_offset(
          slice.tensor->file, first + got,
          fmt::format("the file ends inside tensor {}", slice.tensor->name)
      );
    }
    slot.bytes = {slot.base + (from - first), slice.bytes};
  }

  std::span<const std::byte> next_of_ring() {
    std::unique_lock lock(mutex);
    Slot& slot = slots[given % slots.size()];
    changed.wait(lock, [&] {
      return failure || slot.phase == Slot::Phase::ready;
    });
    if (failure) std::rethrow_exception(failure);
    return slot.bytes;
  }

  // The slice handed out before is done with.
  void give_back() {
    if (at == 0) return;
    const Slice& before = slices[at - 1];
    if (is_read(before)) {
      const std::lock_guard lock(mutex);
      slots[given % slots.size()].phase = Slot::Phase::free;
      ++given;
      changed.notify_all();
      return;
    }
    // A mapping's pages; what the source made itself goes with `held`.
    if (is_plain(source, *before.tensor)) drop_pages(part_of(before));
    held = {};
  }

  std::span<const std::byte> part_of(const Slice& slice) const {
    return source.data(*slice.tensor).bytes.subspan(slice.begin, slice.bytes);
  }

  std::span<const std::byte> next_of_mapping() {
    const Slice& slice = slices[at];
    held = source.data(*slice.tensor);
    const auto bytes = held.bytes.subspan(slice.begin, slice.bytes);
    if (!is_plain(source, *slice.tensor)) return bytes;
    if (at + 1 < slices.size() && is_plain(source, *slices[at + 1].tensor)) {
      expect_pages(part_of(slices[at + 1]));
    }
    // At once, rather than fault by fault while others wait.
    map_pages(bytes);
    return bytes;
  }

  void keep_pace(std::size_t bytes) {
    if (options.bytes_per_second <= 0) return;
    paced += bytes;
    const double due = static_cast<double>(paced) / options.bytes_per_second;
    const double late = due - seconds_since(start);
    if (late <= 0) return;
    std::this_thread::sleep_for(std::chrono::duration<double>(late));
  }
};

SliceReader::SliceReader(
    const ModelSource& source,
    std::vector<Slice> slices,
    const SliceReaderOptions& options
)
    : state_(std::make_unique<State>(source, std::move(slices), options)) {
  try {
    state_->make_ring();
  } catch (...) {
    // The system refused a thread: see WorkerQueue.
    state_->stop();
    throw;
  }
}

SliceReader::~SliceReader() {
  state_->give_back();
  state_->stop();
}

std::span<const std::byte> SliceReader::next() {
  State& s = *state_;
  const Clock::time_point begin = Clock::now();
  s.give_back();
  const Slice& slice = s.slices.at(s.at);
  s.keep_pace(slice.bytes);
  const auto bytes = s.is_read(slice) ? s.next_of_ring() : s.next_of_mapping();
  ++s.at;
  s.waited += seconds_since(begin);
  return bytes;
}

double SliceReader::waited() const {
  return state_->waited;
}

std::size_t SliceReader::window_bytes() const {
  std::size_t n = 0;
  for (const auto& slot : state_->slots) n += slot.memory.size();
  return n;
}

}  // namespace hearth::io
