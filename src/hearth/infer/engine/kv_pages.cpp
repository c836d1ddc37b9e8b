#include "hearth/infer/engine/kv_pages.h"

#include <algorithm>
#include <cstring>

#include "hearth/infer/engine/runner_parts.h"

namespace hearth::infer {

KvPages::KvPages(
    int pages,
    int page_tokens,
    std::size_t page_bytes,
    PagesElsewhere elsewhere
)
    : page_tokens_(page_tokens),
      page_bytes_(page_bytes),
      elsewhere_(std::move(elsewhere)),
      users_(index(pages)),
      data_(index(pages)) {
  free_.resize(index(pages));
  for (int i = 0; i < pages; ++i) free_[index(i)] = pages - 1 - i;
}

KvPool KvPages::pool() const {
  return {
      page_tokens_, page_bytes_, static_cast<int>(users_.size()),
      static_cast<int>(free_.size())
  };
}

KvPages::Sequence& KvPages::find(SequenceId id) {
  const auto at = sequences_.find(id);
  if (at == sequences_.end()) throw_no_sequence(id);
  return at->second;
}
const KvPages::Sequence& KvPages::find(SequenceId id) const {
  const auto at = sequences_.find(id);
  if (at == sequences_.end()) throw_no_sequence(id);
  return at->second;
}

int KvPages::pages_of(int tokens) const {
  return (tokens + page_tokens_ - 1) / page_tokens_;
}

// Memory comes in slabs of some megabytes, so that large pages of the system
// hold it; a page keeps its place in it for good.
int KvPages::take() {
  const int page = free_.back();
  if (elsewhere_.reach) {
    elsewhere_.reach(page + 1);
  } else if (data_[index(page)] == nullptr) {
    constexpr std::size_t kSlab = std::size_t{16} << 20;
    const std::size_t wanted = std::max<std::size_t>(kSlab / page_bytes_, 1);
    std::vector<int> fresh;
    for (auto at = free_.rbegin(); at != free_.rend(); ++at) {
      if (fresh.size() == wanted) break;
      if (data_[index(*at)] == nullptr) fresh.push_back(*at);
    }
    slabs_.emplace_back(
        MemoryZone::named("kv cache"), fresh.size() * page_bytes_
    );
    for (std::size_t i = 0; i < fresh.size(); ++i) {
      data_[index(fresh[i])] = slabs_.back().data() + i * page_bytes_;
    }
  }
  free_.pop_back();
  users_[index(page)] = 1;
  return page;
}

void KvPages::copy(int from, int to) {
  if (elsewhere_.copy) return elsewhere_.copy(from, to);
  std::memcpy(data_[index(to)], data_[index(from)], page_bytes_);
}

void KvPages::give_back(int page) {
  if (--users_[index(page)] == 0) free_.push_back(page);
}

SequenceId KvPages::open(int adapter) {
  sequences_[next_].adapter = adapter;
  return next_++;
}

SequenceId KvPages::fork(SequenceId from, int tokens) {
  const Sequence& old = find(from);
  check_cut("a fork", tokens, old.length);
  const auto whole = index(tokens / page_tokens_);
  const bool rest = tokens % page_tokens_ != 0;
  if (rest && free_.empty()) throw_pool_full(1, pool());
  Sequence fresh;
  fresh.length = tokens, fresh.adapter = old.adapter;
  fresh.pages.assign(old.pages.begin(), old.pages.begin() + long(whole));
  fresh.at.assign(old.at.begin(), old.at.begin() + long(whole));
  if (rest) {
    const int page = take();
    fresh.pages.push_back(page);
    fresh.at.push_back(data_[index(page)]);
    copy(old.pages[whole], page);
  }
  for (std::size_t i = 0; i < whole; ++i) ++users_[index(fresh.pages[i])];
  sequences_.emplace(next_, std::move(fresh));
  return next_++;
}

void KvPages::close(SequenceId id) {
  for (const int page : find(id).pages) give_back(page);
  sequences_.erase(id);
}

void KvPages::truncate(SequenceId id, int tokens) {
  Sequence& s = find(id);
  check_cut("truncate", tokens, s.length);
  const auto keep = index(pages_of(tokens));
  while (s.pages.size() > keep) {
    give_back(s.pages.back());
    s.pages.pop_back(), s.at.pop_back();
  }
  s.length = tokens;
}

bool KvPages::must_copy(const Sequence& s) const {
  const auto at = index(s.length / page_tokens_);
  return at < s.pages.size() && users_[index(s.pages[at])] > 1;
}

int KvPages::pages_for(const Sequence& s, int more) const {
  if (more <= 0) return 0;
  const int there = static_cast<int>(s.pages.size());
  return std::max(pages_of(s.length + more) - there, 0) +
         (must_copy(s) ? 1 : 0);
}

int KvPages::pages_held(std::span<const SequenceId> sequences) const {
  std::vector<bool> held(users_.size());
  int count = 0;
  for (const SequenceId id : sequences) {
    for (const int page : find(id).pages) {
      if (held[index(page)]) continue;
      held[index(page)] = true;
      ++count;
    }
  }
  return count;
}

void KvPages::reserve(Sequence& s, int more) {
  if (more <= 0) return;
  if (must_copy(s)) {
    const auto at = index(s.length / page_tokens_);
    const int page = take();
    copy(s.pages[at], page);
    give_back(s.pages[at]);
    s.pages[at] = page, s.at[at] = data_[index(page)];
  }
  const auto need = index(pages_of(s.length + more));
  while (s.pages.size() < need) {
    const int page = take();
    s.pages.push_back(page);
    s.at.push_back(data_[index(page)]);
  }
}

}  // namespace hearth::infer
