#pragma once
// A pool of equal pages with a count of users each, and sequences as lists of
// them. It knows bytes, not what they mean; who writes a token asks for room
// first and finds a page that nobody else uses.
#include <cstddef>
#include <functional>
#include <map>
#include <vector>

#include "hearth/base/aligned_buffer.h"
#include "hearth/infer/engine/runner.h"

namespace hearth::infer {

// Pages that are not in memory of the host's.
struct PagesElsewhere {
  // Makes sure that the pages below that number are there. Throws OutOfMemory.
  std::function<void(int pages)> reach;
  std::function<void(int from, int to)> copy;
};

class KvPages {
 public:
  KvPages(
      int pages,
      int page_tokens,
      std::size_t page_bytes,
      PagesElsewhere elsewhere = {}
  );

  KvPool pool() const;

  struct Sequence {
    std::vector<int> pages;
    std::vector<std::byte*> at;  // the same as addresses; null elsewhere
    int length = 0, adapter = -1;
  };
  // Throw UsageError when there is none of that number.
  Sequence& find(SequenceId id);
  const Sequence& find(SequenceId id) const;

  SequenceId open(int adapter);
  // Shares whole pages and copies the rest. Throws OutOfMemory before anything
  // is changed.
  SequenceId fork(SequenceId from, int tokens);
  void close(SequenceId id);
  void truncate(SequenceId id, int tokens);
  // Pages that reserve() would take.
  int pages_for(const Sequence& sequence, int more) const;
  // As Runner::pages_held().
  int pages_held(std::span<const SequenceId> sequences) const;
  // Makes room for that many tokens after the last; a page that others use is
  // copied before it is written. The pool must have the pages. Throws
  // OutOfMemory, having changed nothing that is seen, when the machine's
  // budget refuses.
  void reserve(Sequence& sequence, int more);

 private:
  int page_tokens_;
  std::size_t page_bytes_;
  PagesElsewhere elsewhere_;
  std::vector<int> users_;        // of each page
  std::vector<std::byte*> data_;  // null until first used
  std::vector<int> free_;         // the next to take last
  std::vector<AlignedBuffer> slabs_;
  SequenceId next_ = 0;
  std::map<SequenceId, Sequence> sequences_;

  int pages_of(int tokens) const;
  // Whether the page that the next token goes to is there and shared.
  bool must_copy(const Sequence& sequence) const;
  int take();
  void copy(int from, int to);
  void give_back(int page);
};

}  // namespace hearth::infer
