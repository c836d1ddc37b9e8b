#pragma once
// A runner whose logits are arithmetic: what comes next depends on all tokens
// of a sequence and on nothing else, so every way to schedule must give the
// same text. It keeps the rules of Runner and counts what was asked of it.
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "hearth/base/error.h"
#include "hearth/infer/engine/runner.h"

namespace hearth::infer {

class FakeRunner : public Runner {
 public:
  struct Options {
    int vocabulary = 32, context = 256, page_tokens = 4, pages = 64;
    int width = 8;  // of hidden states
    // Logits are multiplied by this: a draft that is nearly the model.
    float sharpness = 1;
    // Called before each step, with the number of its parts.
    std::function<void(std::size_t)> before_step;
  };
  explicit FakeRunner(Options options) : o_(std::move(options)) {}

  int vocabulary() const override { return o_.vocabulary; }
  int context() const override { return o_.context; }
  bool batch_invariant() const override { return true; }
  KvPool pool() const override {
    return {o_.page_tokens, 64, o_.pages, o_.pages - used_pages()};
  }
  SequenceId open(int adapter = -1) override {
    if (adapter > 0) throw UsageError("[infer.FakeRunner] no such adapter");
    sequences_[++last_] = {{}, {}, adapter};
    return last_;
  }
  SequenceId fork(SequenceId from, int tokens) override {
    const Held& old = sequences_.at(from);
    if (tokens > length(from)) throw UsageError("fork past the end");
    const int whole = tokens / o_.page_tokens;
    if (tokens % o_.page_tokens != 0 && pool().free_pages < 1) {
      throw OutOfMemory("[infer.FakeRunner] no page for the copy");
    }
    Held made{
        {old.ids.begin(), old.ids.begin() + tokens},
        {old.pages.begin(), old.pages.begin() + whole},
        old.adapter
    };
    if (tokens % o_.page_tokens != 0) {
      made.pages.push_back(std::make_shared<int>());
    }
    sequences_[++last_] = std::move(made);
    ++forks;
    return last_;
  }
  void close(SequenceId s) override { sequences_.erase(sequences_.find(s)); }
  int length(SequenceId s) const override {
    return static_cast<int>(sequences_.at(s).ids.size());
  }
  void truncate(SequenceId s, int tokens) override {
    Held& h = sequences_.at(s);
    h.ids.resize(static_cast<std::size_t>(tokens));
    h.pages.resize(static_cast<std::size_t>(pages_of(tokens)));
  }
  int pages_for(SequenceId s, int more) const override {
    const Held& h = sequences_.at(s);
    return pages_of(length(s) + more) - static_cast<int>(h.pages.size());
  }
  int pages_held(std::span<const SequenceId> sequences) const override {
    std::set<const int*> all;
    for (const SequenceId s : sequences) {
      for (const auto& p : sequences_.at(s).pages) all.insert(p.get());
    }
    return static_cast<int>(all.size());
  }
  std::span<const float> step(std::span<const RunnerPart> parts) override {
    int need = 0;
    for (const auto& p : parts) {
      need += pages_for(p.sequence, static_cast<int>(p.ids.size()));
    }
    if (need > pool().free_pages) {
      throw OutOfMemory("[infer.FakeRunner] no pages");
    }
    if (o_.before_step) o_.before_step(parts.size());
    rows_.clear();
    states_.clear();
    std::vector<SequenceId> once;
    for (const auto& p : parts) {
      if (std::ranges::find(once, p.sequence) != once.end()) {
        throw UsageError("a sequence may be in one part only");
      }
      once.push_back(p.sequence);
      feed(p);
    }
    most_parts = std::max(most_parts, parts.size());
    ++steps;
    return rows_;
  }
  int width() const override { return o_.width; }
  std::span<const float> states() const override { return states_; }
  std::size_t open_sequences() const { return sequences_.size(); }

  // The logits after a text: pseudo-random, one clear favourite.
  static std::vector<float> logits_after(
      std::span<const std::int32_t> ids,
      int vocabulary,
      int adapter = -1
  ) {
    std::uint32_t h = 2166136261U + static_cast<std::uint32_t>(adapter + 1);
    for (const auto id : ids) {
      h = (h ^ static_cast<std::uint32_t>(id)) * 16777619U;
    }
    std::vector<float> row;
    for (int v = 0; v < vocabulary; ++v) {
      h = h * 1664525U + 1013904223U;
      row.push_back(static_cast<float>(h >> 20) / 1024.0f);
    }
    return row;
  }

  std::size_t most_parts = 0, fed = 0;
  int steps = 0, forks = 0;

 private:
  struct Held {
    std::vector<std::int32_t> ids;
    std::vector<std::shared_ptr<int>> pages;
    int adapter;
  };
  int pages_of(int tokens) const {
    return (tokens + o_.page_tokens - 1) / o_.page_tokens;
  }
  int used_pages() const {
    std::vector<const int*> all;
    for (const auto& [id, h] : sequences_) {
      for (const auto& p : h.pages) all.push_back(p.get());
    }
    std::ranges::sort(all);
    const auto same = std::ranges::unique(all);
    return static_cast<int>(same.begin() - all.begin());
  }
  void feed(const RunnerPart& p) {
    Held& h = sequences_.at(p.sequence);
    if (length(p.sequence) + static_cast<int>(p.ids.size()) > o_.context) {
      throw UsageError("[infer.FakeRunner] past the context");
    }
    for (std::size_t i = 0; i < p.ids.size(); ++i) {
      h.ids.push_back(p.ids[i]);
      const bool last = i + 1 == p.ids.size();
      if (p.states) {
        const auto row = logits_after(h.ids, o_.width, h.adapter);
        states_.insert(states_.end(), row.begin(), row.end());
      }
      if (p.logits == LogitsOf::none) continue;
      if (p.logits == LogitsOf::last && !last) continue;
      const auto row = logits_after(h.ids, o_.vocabulary, h.adapter);
      for (const float v : row) rows_.push_back(v * o_.sharpness);
    }
    fed += p.ids.size();
    while (static_cast<int>(h.pages.size()) < pages_of(length(p.sequence))) {
      h.pages.push_back(std::make_shared<int>());
    }
  }

  Options o_;
  std::map<SequenceId, Held> sequences_;
  SequenceId last_ = 0;
  std::vector<float> rows_, states_;
};

}  // namespace hearth::infer
