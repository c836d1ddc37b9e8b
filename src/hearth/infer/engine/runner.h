#pragma once
// Runs one model over many sequences at once: token ids in, logits out. Keys
// and values lie in pages of one pool with a byte budget. One thread at a time
// may call it; it knows neither text, nor sampling, nor who asks.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "hearth/base/hash.h"
#include "hearth/infer/draw.h"

namespace hearth::infer {

using SequenceId = std::int32_t;

// The pool of keys and values. A page holds page_tokens tokens of all layers.
struct KvPool {
  int page_tokens = 0;
  std::size_t page_bytes = 0;
  int pages = 0, free_pages = 0;
};

enum class LogitsOf : unsigned char { none, last, all };

// What one sequence is fed in a step.
struct RunnerPart {
  SequenceId sequence = 0;
  std::span<const std::int32_t> ids;
  LogitsOf logits = LogitsOf::last;
  // These ids belong to a prompt. Quantised weights are then multiplied as for
  // long prompts even where few ids are fed, so that a prompt whose beginning
  // was kept continues with the same numbers as one that is fed whole.
  bool prompt = false;
  // The hidden states of these tokens are wanted: Runner::states() gives them.
  bool states = false;
};

// One token of a sequence in a step whose next tokens the runner chooses.
struct DrawnRow {
  SequenceId sequence = 0;
  // None: the one that the last send() chose for this sequence.
  std::optional<std::int32_t> id;
  Draw draw;
};

class Runner {
 public:
  Runner() = default;
  virtual ~Runner() = default;
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  virtual int vocabulary() const = 0;
  // Tokens the model was made for.
  virtual int context() const = 0;
  virtual KvPool pool() const = 0;
  // Whether a row's logits depend on its own sequence alone: neither on other
  // rows of the step nor on how the sequence was cut into steps.
  virtual bool batch_invariant() const { return false; }

  // An empty sequence. adapter: -1 for the base, else the index of one that
  // the runner was made with.
  virtual SequenceId open(int adapter = -1) = 0;
  // A sequence that begins with the first `tokens` tokens of another, which
  // stays as it is. Whole pages are shared, the rest is copied.
  virtual SequenceId fork(SequenceId from, int tokens) = 0;
  virtual void close(SequenceId sequence) = 0;
  virtual int length(SequenceId sequence) const = 0;
  // Forgets all tokens from that one on.
  virtual void truncate(SequenceId sequence, int tokens) = 0;
  // Pages that step() would take from the pool for that many more tokens.
  virtual int pages_for(SequenceId sequence, int more_tokens) const = 0;
  // Pages that these sequences hold together; one that several share counts
  // once.
  virtual int pages_held(std::span<const SequenceId> sequences) const = 0;

  // Names what computes: config and weights, an adapter's too. Two runners that
  // give pages of other numbers have other names. Nothing where pages are not
  // bytes.
  virtual std::optional<Hash128> weights_name(int /*adapter*/) {
    return std::nullopt;
  }
  // The bytes of a sequence's pages, in order, until the next call; none where
  // pages are not bytes. What they mean is the runner's own.
  virtual std::vector<std::span<const std::byte>> page_bytes(
      SequenceId /*sequence*/
  ) const {
    return {};
  }
  // Makes an empty sequence one of `tokens` tokens in whole pages, whose bytes
  // the caller then puts where it is told. The pool must have the pages.
  virtual std::vector<std::span<std::byte>> restore(
      SequenceId /*sequence*/,
      int /*tokens*/
  ) {
    return {};
  }

  // Feeds every part and returns float32 rows [rows, vocabulary]: of each part
  // in order no row, its last token's, or one a token. They stay valid until
  // the next call. A sequence may be in one part only. Throws UsageError for
  // ids that are no tokens or pass the context, and OutOfMemory before
  // anything is changed when the pool has too few pages.
  virtual std::span<const float> step(std::span<const RunnerPart> parts) = 0;

  // Whether tokens can be chosen where the logits are, and steps be sent before
  // the last one's tokens are known: then these two work.
  virtual bool chooses() const { return false; }
  // Feeds every row and begins to choose what comes after it. Throws as step()
  // does, before anything is changed.
  virtual void send(std::span<const DrawnRow> /*rows*/) {}
  // The tokens that the earliest send() whose tokens were not received yet has
  // chosen, one for each of its rows. Waits for them.
  virtual std::vector<std::int32_t> receive() { return {}; }

  // Floats that a token's hidden state has; 0 where there are none to be had.
  virtual int width() const { return 0; }
  // The hidden states, as the head reads them, of the parts of the last step
  // that asked for them: float32 rows [tokens, width] in the order of the
  // parts, valid until the next step.
  virtual std::span<const float> states() const { return {}; }
};

}  // namespace hearth::infer
