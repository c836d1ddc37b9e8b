// CacheBuilder: encoded examples into shards, with a journal to resume from.
#include <filesystem>

#include <fmt/format.h>

#include "hearth/base/atomic_file.h"
#include "hearth/base/error.h"
#include "hearth/base/log.h"
#include "hearth/base/thread_pool.h"
#include "hearth/data/cache/cache_builder_impl.h"
#include "hearth/data/cache/cache_impl.h"

namespace hearth::data {
namespace {

namespace fs = std::filesystem;

// A shard is closed by these too, so that its tables stay small in memory.
constexpr std::uint64_t kMostDocuments = std::uint64_t{1} << 20;
constexpr std::uint64_t kMostSpans = std::uint64_t{1} << 22;

const char* mask_name(MaskMode mode) {
  if (mode == MaskMode::kAll) return "all";
  return mode == MaskMode::kAssistant ? "assistant" : "last";
}

}  // namespace

bool CacheBuilder::resume() {
  const std::string file = path(kJournalName);
  bool found = false;
  if (fs::exists(file)) {
    try {
      Journal old = Journal::from_json(read_json_file(file));
      found = old.key == journal_.key && old.source <= sources_.size();
      for (const auto& s : old.shards) {
        found = found && fs::exists(path(s.file));
      }
      if (found) journal_ = std::move(old);
    } catch (const std::exception& e) {
      log_warning("the journal of {} cannot be used: {}", folder_, e.what());
    }
  }
  clean();
  return found;
}

// Removes what a killed build left: shards that no journal vouches for.
void CacheBuilder::clean() const {
  for (const auto& entry : fs::directory_iterator(folder_)) {
    const std::string name = entry.path().filename().string();
    if (!entry.is_regular_file()) continue;
    const bool ours = name.find(".tok") != std::string::npos ||
                      name.starts_with(std::string(kJournalName) + ".tmp") ||
                      name.starts_with(std::string(kManifestName) + ".tmp");
    bool kept = !ours;
    for (const auto& s : journal_.shards) kept = kept || s.file == name;
    if (!kept) fs::remove(entry.path());
  }
}

io::TokenShardWriter& CacheBuilder::writer(
    const DataSource& source,
    int split
) {
  auto& w = writers_[split];
  if (w) return *w;
  bool spans = false;
  for (const auto& f : source.files) {
    spans = spans || f.format != FileFormat::kText;
  }
  names_[split] = fmt::format(
      "s{:03}-{}-{:05}.tok", journal_.source, split ? "valid" : "train",
      journal_.shards.size()
  );
  w = std::make_unique<io::TokenShardWriter>(
      path(names_[split]), encoder_.text().vocabulary(),
      (spans ? io::kHasSpans : 0u) | (journal_.pairs == 1 ? io::kPairs : 0u),
      key_
  );
  return *w;
}

void CacheBuilder::add(
    const DataSource& source,
    const EncodedDocument& d,
    int split
) {
  CacheReport& r = journal_.report;
  io::TokenShardWriter& w = writer(source, split);
  w.add(d.ids, d.spans, d.hash);
  r.documents += 1;
  r.tokens += d.ids.size();
  r.trained_tokens += d.trained();
  r.truncated += d.truncated;
  r.empty += d.ids.empty();
  r.unread_tools += d.unread_tools;
  r.untrained += d.spans.empty() && !d.ids.empty();
  r.valid_documents += split;
  r.valid_tokens += split ? d.ids.size() : 0;
  r.count_length(d.ids.size());
}

// False when the source has given all it may.
bool CacheBuilder::take(
    const DataSource& source,
    const DataFile& file,
    EncodedRecord& record
) {
  CacheReport& r = journal_.report;
  journal_.position.at = record.next;
  const int pairs = record.documents.size() == 2;
  if (record.problem.empty() && journal_.pairs >= 0 &&
      pairs != journal_.pairs) {
    record.problem = "a source must hold preferences only, or none";
  }
  if (!record.problem.empty()) {
    if (settings_.read.on_bad_line == BadLinePolicy::kFatal) {
      throw FormatError::at(
          file.path, static_cast<long>(record.line), record.problem
      );
    }
    r.add_bad_line({file.path, record.line, record.problem});
    return true;
  }
  journal_.pairs = pairs;
  r.records += 1;
  r.bytes += record.bytes;
  new_bytes_ += record.bytes;
  r.replaced_characters += record.replaced;
  if (file.format != FileFormat::kText) count_form(record);
  const bool valid =
      source.held_out ||
      split_of(record.documents[0].hash, settings_.valid_share) ==
          Split::kValid;
  for (const auto& d : record.documents) add(source, d, valid);
  ++journal_.taken;
  if (full()) {
    close_shards();
    write_journal();
  }
  return settings_.limit == 0 || journal_.taken < settings_.limit;
}

void CacheBuilder::count_form(const EncodedRecord& record) {
  CacheReport& r = journal_.report;
  const auto [found, is_new] =
      forms_.try_emplace({record.shape, record.present});
  if (is_new) {
    found->second = shapes_.at(record.shape).line(record.present);
  }
  if (!found->second.empty()) ++r.forms[found->second];
  for (const auto& field : record.unused) r.add_unused(field);
  r.empty_prompts += record.empty_prompt;
}

bool CacheBuilder::full() const {
  for (const auto& w : writers_) {
    if (w && (w->tokens() >= settings_.shard_tokens ||
              w->documents() >= kMostDocuments || w->spans() >= kMostSpans)) {
      return true;
    }
  }
  return false;
}

// Closes the open shards of both splits at once: the journal then needs one
// position only. Where that happens depends on the documents alone.
void CacheBuilder::close_shards() {
  for (int split = 0; split < 2; ++split) {
    auto& w = writers_[split];
    if (!w) continue;
    const auto info = w->finish();
    journal_.shards.push_back(
        {names_[split], journal_.source, split ? Split::kValid : Split::kTrain,
         info.documents, info.tokens, w->checksum()}
    );
    w.reset();
  }
}

void CacheBuilder::write_journal() const {
  write_file_atomically(path(kJournalName), to_json_text(journal_.to_json()));
}

void CacheBuilder::tell(const DataSource& source, const EncodedChunk& chunk) {
  if (!options_.progress) return;
  std::uint64_t stored = before_ + chunk.stored;
  for (std::size_t i = 0; i < chunk.file; ++i) stored += source.files[i].bytes;
  options_.progress(stored, total_, journal_.report.tokens);
}

void CacheBuilder::run_source(const DataSource& source) {
  const int threads = options_.threads > 0 ? options_.threads : usable_cores();
  const bool limited = settings_.limit > 0 && journal_.taken >= settings_.limit;
  if (!limited) {
    EncodePipeline pipeline(
        source.files, settings_.read, encoder_, journal_.position, threads
    );
    EncodedChunk chunk;
    for (bool more = true; more && pipeline.next(chunk);) {
      if (options_.stop && options_.stop()) {
        throw Interrupted(
            "[data.prepare_cache] interrupted; prepare again to go on"
        );
      }
      journal_.position.file = chunk.file;
      for (auto& record : chunk.records) {
        more = take(source, source.files[chunk.file], record);
        if (!more) break;
      }
      tell(source, chunk);
    }
  }
  for (const auto& f : source.files) before_ += f.bytes;
}

void CacheBuilder::run() {
  for (std::size_t i = 0; i < journal_.source; ++i) {
    for (const auto& f : sources_[i].files) before_ += f.bytes;
  }
  while (journal_.source < sources_.size()) {
    run_source(sources_[journal_.source]);
    close_shards();
    journal_.next_source();
    write_journal();
  }
  finish();
}

// Nobody asks a model to answer nothing: the prompt has another name.
void CacheBuilder::refuse_empty_prompts() const {
  std::string fields;
  for (const auto& [field, count] : journal_.report.unused) {
    fields += fmt::format("{}\"{}\"", fields.empty() ? "" : ", ", field);
  }
  throw UsageError(
      fmt::format(
          "[data.prepare_cache] records must have a prompt, it is empty in all "
          "{}{}",
          journal_.report.records,
          fields.empty() ? "" : "; they also have " + fields
      ),
      "data.fields={prompt: NAME} says where it is; text without a prompt is "
      "data.fields={text: NAME}"
  );
}

void CacheBuilder::finish() {
  CacheReport& r = journal_.report;
  if (r.empty_prompts == r.records && r.records > 0) {
    fs::remove(path(kJournalName));
    refuse_empty_prompts();
  }
  if (r.documents == 0) {
    // There is nothing to go on from.
    fs::remove(path(kJournalName));
    std::string first;
    if (!r.first_bad_lines.empty()) {
      const BadLine& b = r.first_bad_lines[0];
      first = fmt::format("; the first, {}:{}: {}", b.file, b.line, b.what);
    }
    throw UsageError(
        fmt::format(
            "[data.prepare_cache] the data must hold a usable record, got none "
            "({} bad lines{})",
            r.bad_lines, first
        )
    );
  }
  r.duplicates = count_duplicates(folder_, journal_.shards);
  CacheManifest m;
  m.key = journal_.key;
  m.tokenizer = encoder_.text().hash().hex();
  m.chat_template = encoder_.chat() ? encoder_.chat()->hash().hex() : "";
  m.tokenizer_path = encoder_.text().path();
  m.template_path = encoder_.chat() ? encoder_.chat()->path() : "";
  m.vocabulary = encoder_.text().vocabulary();
  m.mask = mask_name(encoder_.settings().mask);
  for (const auto& s : sources_) {
    SourceEntry entry{s.name, {}};
    for (const auto& f : s.files) entry.files.push_back(f.path);
    m.sources.push_back(std::move(entry));
  }
  m.shards = journal_.shards;
  m.report = r;
  write_file_atomically(path(kManifestName), to_json_text(m.to_json()));
  fs::remove(path(kJournalName));
}

}  // namespace hearth::data
