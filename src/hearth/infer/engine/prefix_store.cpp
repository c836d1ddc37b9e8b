#include "hearth/infer/engine/prefix_store.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <utility>

#include <fcntl.h>

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/base/file_handle.h"
#include "hearth/base/log.h"
#include "hearth/base/temporary_name.h"
#include "hearth/infer/engine/prefix_cache.h"

namespace hearth::infer {
namespace {

namespace fs = std::filesystem;

// Shorter ones are computed as fast as they are read.
constexpr int kLeastPages = 2;
// At most so many files of a folder are looked at.
constexpr std::size_t kMostFiles = 4096;
constexpr char kMagic[8] = {'H', 'R', 'T', 'H', 'K', 'V', '0', '1'};
constexpr const char* kEnding = ".kv";

// A file: this head, the tokens, the pages, and the hash of all of it.
struct Head {
  char magic[8];
  std::uint64_t name_high, name_low, page_bytes;
  std::uint32_t page_tokens, pages;

  std::size_t tokens() const { return std::size_t{pages} * page_tokens; }
  std::size_t page_offset() const {
    return sizeof(Head) + tokens() * sizeof(std::int32_t);
  }
  std::size_t hash_offset() const { return page_offset() + pages * page_bytes; }
};

template <typename T>
std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

void read_all(
    const FileHandle& file,
    std::span<std::byte> out,
    std::size_t offset
) {
  if (file.read_at(out, offset) != out.size()) {
    throw FormatError(
        fmt::format("[infer.PrefixStore] {} must be longer", file.path())
    );
  }
}

// Returns nothing when the file is not one of ours.
std::optional<Head> read_head(const FileHandle& file) {
  Head head{};
  read_all(file, std::as_writable_bytes(std::span(&head, 1)), 0);
  const bool ours = std::memcmp(head.magic, kMagic, sizeof kMagic) == 0;
  return ours ? std::optional(head) : std::nullopt;
}

bool fits(const Head& head, const KvPool& pool) {
  return head.page_bytes == pool.page_bytes &&
         std::cmp_equal(head.page_tokens, pool.page_tokens) &&
         std::cmp_less_equal(head.pages, pool.pages);
}

std::vector<std::int32_t> read_tokens(
    const FileHandle& file,
    const Head& head
) {
  std::vector<std::int32_t> out(head.tokens());
  read_all(file, std::as_writable_bytes(std::span(out)), sizeof(Head));
  return out;
}

// What a process was writing when it was killed.
void remove_if_left_over(const fs::path& path) {
  if (!is_temporary_name(path.filename().string())) return;
  if (path.stem().extension() != kEnding) return;
  try {
    if (!is_being_written(path.string())) fs::remove(path);
  } catch (const std::exception&) {  // another process was faster
  }
}

}  // namespace

PrefixStore::PrefixStore(
    Runner& runner,
    std::string folder,
    std::size_t max_bytes
)
    : runner_(runner), folder_(std::move(folder)), max_bytes_(max_bytes) {
  std::error_code failed;
  fs::create_directories(folder_, failed);
  if (failed) {
    throw IoError(
        fmt::format(
            "[infer.PrefixStore] {} must be a folder that can be written: {}",
            folder_, failed.message()
        )
    );
  }
  if (!fingerprint_of(-1)) {
    throw UsageError(
        "[infer.PrefixStore] prompts can be kept on disk only where a model "
        "runs on the CPU without a graph, which this one does not"
    );
  }
  list();
}

// The name tells of every weight. A page of tokens from all over the vocabulary
// tells how it is computed: instruction set, products, how pages are kept.
std::optional<Hash128> PrefixStore::fingerprint_of(int adapter) {
  const auto known = fingerprints_.find(adapter);
  if (known != fingerprints_.end()) return known->second;
  const KvPool pool = runner_.pool();
  if (pool.free_pages < 1) return std::nullopt;
  const auto weights = runner_.weights_name(adapter);
  if (!weights) return std::nullopt;
  const int count = std::min(pool.page_tokens, runner_.context());
  std::vector<std::int32_t> ids;
  for (int i = 0; i < count; ++i) {
    ids.push_back(
        static_cast<std::int32_t>(
            std::int64_t{runner_.vocabulary()} * i / count
        )
    );
  }
  const SequenceId sequence = runner_.open(adapter);
  const RunnerPart part{sequence, ids, LogitsOf::last};
  std::span<const float> logits;
  try {
    logits = runner_.step({&part, 1});
  } catch (const OutOfMemory&) {
    runner_.close(sequence);
    return std::nullopt;
  }
  ContentHash hash;
  hash.field(weights->hex());
  hash.field(runner_.batch_invariant() ? 1U : 0U);
  hash.bytes(logits.data(), logits.size_bytes());
  const auto pages = runner_.page_bytes(sequence);
  for (const auto page : pages) hash.bytes(page.data(), page.size());
  runner_.close(sequence);
  if (pages.empty()) return std::nullopt;
  return fingerprints_[adapter] = hash.digest();
}

std::optional<Hash128> PrefixStore::name_of(const PrefixGroup& group) {
  const auto fingerprint = fingerprint_of(group.adapter);
  if (!fingerprint || group.scope == Hash128{}) return fingerprint;
  ContentHash hash;
  hash.field(fingerprint->hex()).field(group.scope.hex());
  return hash.digest();
}

void PrefixStore::list() {
  std::error_code failed;
  for (const auto& item : fs::directory_iterator(folder_, failed)) {
    remove_if_left_over(item.path());
    if (item.path().extension() != kEnding) continue;
    if (entries_.size() == kMostFiles) break;
    try {
      const auto file =
          FileHandle::open(item.path().string(), O_RDONLY, "read");
      const auto head = read_head(file);
      if (!head) continue;
      // Another model's has no tokens here, and leaves in its turn.
      const bool usable = fits(*head, runner_.pool());
      // A file's time is counted in 128 bits where the system is macOS.
      const auto used = std::chrono::duration_cast<std::chrono::nanoseconds>(
          item.last_write_time().time_since_epoch()
      );
      entries_.push_back(
          {item.path().string(),
           {head->name_high, head->name_low},
           usable ? read_tokens(file, *head) : std::vector<std::int32_t>(),
           static_cast<std::size_t>(item.file_size()),
           used.count()}
      );
      clock_ = std::max(clock_, entries_.back().used);
    } catch (const std::exception&) {  // another process's, or damaged
    }
  }
}

std::size_t PrefixStore::bytes() const {
  std::size_t sum = 0;
  for (const Entry& e : entries_) sum += e.bytes;
  return sum;
}

PrefixStore::Entry* PrefixStore::best(
    std::span<const std::int32_t> tokens,
    const PrefixGroup& group,
    int& most
) {
  const auto fingerprint = name_of(group);
  Entry* found = nullptr;
  most = 0;
  for (Entry& e : entries_) {
    if (!fingerprint || e.fingerprint != *fingerprint) continue;
    const int n = common_prefix(e.tokens, tokens);
    if (n > most) found = &e, most = n;
  }
  const int page = runner_.pool().page_tokens;
  most = most / page * page;
  return most > 0 ? found : nullptr;
}

int PrefixStore::find(
    std::span<const std::int32_t> tokens,
    const PrefixGroup& group
) {
  int most = 0;
  best(tokens, group, most);
  return most;
}

void PrefixStore::remove(const Entry& entry) {
  std::error_code ignored;
  fs::remove(entry.path, ignored);
  const std::string path = entry.path;
  std::erase_if(entries_, [&](const Entry& e) { return e.path == path; });
}

SequenceId PrefixStore::read(
    std::span<const std::int32_t> tokens,
    int count,
    const PrefixGroup& group
) {
  int most = 0;
  Entry* entry = best(tokens, group, most);
  if (entry == nullptr || most < count) return -1;
  const SequenceId sequence = runner_.open(group.adapter);
  try {
    const auto file = FileHandle::open(entry->path, O_RDONLY, "read");
    const auto head = read_head(file);
    if (!head || !fits(*head, runner_.pool())) {
      throw FormatError("it was replaced");
    }
    const auto held = read_tokens(file, *head);
    if (held != entry->tokens) throw FormatError("it was replaced");
    const auto pages = runner_.restore(sequence, count);
    // The whole file is hashed; pages that are not wanted are read into a
    // buffer that is thrown away.
    Hash64 hash;
    hash.update(&*head, sizeof(Head));
    hash.update(held.data(), held.size() * sizeof(std::int32_t));
    std::vector<std::byte> aside(head->page_bytes);
    for (std::size_t i = 0; i < head->pages; ++i) {
      const std::span<std::byte> to = i < pages.size() ? pages[i] : aside;
      read_all(file, to, head->page_offset() + i * head->page_bytes);
      hash.update(to.data(), to.size());
    }
    std::uint64_t wanted = 0;
    read_all(
        file, std::as_writable_bytes(std::span(&wanted, 1)), head->hash_offset()
    );
    if (wanted != hash.digest()) throw FormatError("its bytes are not right");
  } catch (const std::exception& e) {
    runner_.close(sequence);
    log_warning("prompt {} on disk is not used: {}", entry->path, e.what());
    remove(*entry);
    return -1;
  }
  entry->used = ++clock_;
  std::error_code ignored;
  fs::last_write_time(entry->path, fs::file_time_type::clock::now(), ignored);
  return sequence;
}

void PrefixStore::make_room(std::size_t wanted) {
  while (!entries_.empty() && bytes() + wanted > max_bytes_) {
    remove(*std::ranges::min_element(entries_, {}, &Entry::used));
  }
}

// Not synced: a crash leaves a file whose hash is wrong, and a prompt is
// computed once more.
void PrefixStore::save(const Entry& entry, SequenceId sequence) const {
  const KvPool pool = runner_.pool();
  Head head{};
  std::memcpy(head.magic, kMagic, sizeof kMagic);
  head.name_high = entry.fingerprint.high;
  head.name_low = entry.fingerprint.low;
  head.page_bytes = pool.page_bytes;
  head.page_tokens = static_cast<std::uint32_t>(pool.page_tokens);
  head.pages =
      static_cast<std::uint32_t>(entry.tokens.size() / head.page_tokens);
  auto file = create_temporary(entry.path, 0600);
  const std::string temporary = file.path();
  try {
    Hash64 hash;
    const auto put = [&](std::span<const std::byte> bytes) {
      file.write(bytes);
      hash.update(bytes.data(), bytes.size());
    };
    put(bytes_of(head));
    put(std::as_bytes(std::span(entry.tokens)));
    const auto pages = runner_.page_bytes(sequence);
    for (std::size_t i = 0; i < head.pages; ++i) put(pages[i]);
    const std::uint64_t digest = hash.digest();
    file.write(bytes_of(digest));
    // Locked until it has its name, so that nobody takes it for left over.
    fs::rename(temporary, entry.path);
    file.close();
  } catch (...) {
    std::error_code ignored;
    fs::remove(temporary, ignored);
    throw;
  }
}

void PrefixStore::write(
    SequenceId sequence,
    std::span<const std::int32_t> tokens,
    const PrefixGroup& group
) {
  const KvPool pool = runner_.pool();
  const int whole = static_cast<int>(tokens.size()) / pool.page_tokens;
  const int count = whole * pool.page_tokens;
  if (!writes_ || whole < kLeastPages) return;
  const auto kept = tokens.first(static_cast<std::size_t>(count));
  const auto fingerprint = name_of(group);
  if (!fingerprint || find(kept, group) == count) return;
  ContentHash name;
  name.bytes(kept.data(), kept.size_bytes());
  Entry entry{
      fmt::format(
          "{}/{}-{}{}", folder_, fingerprint->hex().substr(0, 16),
          name.digest().hex(), kEnding
      ),
      *fingerprint,
      {kept.begin(), kept.end()},
      sizeof(Head) + kept.size_bytes() +
          static_cast<std::size_t>(whole) * pool.page_bytes + 8,
      ++clock_
  };
  if (entry.bytes > max_bytes_) return;
  try {
    make_room(entry.bytes);
    save(entry, sequence);
  } catch (const std::exception& e) {
    writes_ = false;
    log_warning("prompts are no longer kept on disk: {}", e.what());
    return;
  }
  // What it holds the whole beginning of is of no more use.
  std::vector<Entry> shorter;
  for (const Entry& e : entries_) {
    const bool held = e.fingerprint == entry.fingerprint &&
                      common_prefix(e.tokens, entry.tokens) ==
                          static_cast<int>(e.tokens.size());
    if (held) shorter.push_back(e);
  }
  for (const Entry& e : shorter) remove(e);
  entries_.push_back(std::move(entry));
}

}  // namespace hearth::infer
