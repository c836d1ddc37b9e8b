#pragma once
// One request to the API while the engine answers it: hears the tokens of all
// its choices, and writes them as they come or all at the end. What it does on
// the engine's thread never waits for a client: where one does not keep up,
// the engine is asked to hold its choices.
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "hearth/infer/engine/engine.h"
#include "hearth/infer/tools/tool_calls.h"
#include "hearth/serve/api/answer_writer.h"
#include "hearth/serve/api/api_error.h"
#include "hearth/serve/api/response_answer.h"
#include "hearth/serve/http/http_reply.h"
#include "hearth/serve/key_shares.h"
#include "hearth/serve/metrics.h"
#include "hearth/serve/running_job.h"

namespace hearth::serve {

// What the engine is asked for: one request for each choice.
struct JobPlan {
  AnswerHead head;
  bool stream = false, include_usage = false;
  bool log_probs = false, token_ids = false;
  int choices_per_prompt = 1;
  std::vector<infer::Request> requests;
  // The prompts that the answers repeat ("echo"); empty where they repeat none.
  std::vector<std::shared_ptr<const PromptEcho>> echoes;
  // For each choice, the choice whose request scores their common prompt;
  // empty: each scores its own. A choice that makes no token and scores nothing
  // is not run.
  std::vector<std::size_t> scored_by;
  // Calls are looked for in this form; none: the text is only text.
  infer::ToolForm tool_form = infer::ToolForm::none;
  std::vector<std::string> tool_names;
  std::vector<std::int32_t> stop_ids;  // what the requests have
  bool one_tool_call = false;          // the answer ends with the first
  HttpHeaders headers;                 // of its answer, beside the host's
  // The answer is one of /v1/responses, and this what it repeats.
  std::optional<ResponseHead> response;
};

struct JobHost {
  infer::Engine* engine = nullptr;
  std::shared_ptr<const text::Tokenizer> tokenizer;
  std::shared_ptr<Metrics> metrics;
  std::string_view route;  // as metrics count answers; must outlive the job
  HttpHeaders headers;     // of every answer
  std::chrono::milliseconds timeout{600'000};
  KeyShares::SharePtr share;  // of its key, while it is under way
};

class GenerationJob : public RunningJob,
                      public std::enable_shared_from_this<GenerationJob> {
 public:
  GenerationJob(JobHost host, JobPlan plan, std::shared_ptr<HttpReply> reply);

  // Hands everything to the engine. ApiError 429 when it has no room, 400 when
  // a request can never run; then nothing of it is left running. effort: what
  // that counts to.
  void start(Effort* effort = nullptr);
  void cut_off() override;

 private:
  struct Choice {
    infer::RequestId id = 0;
    ChoicePart whole;  // all so far; of a stream only what the end needs
    Tokens tokens;     // with log probabilities, not yet written
    std::shared_ptr<const Tokens> prompt;  // scored, the same
    std::size_t offset = 0;
    bool copy = false;  // says what another one says
    bool scored = false, ended = false;
    bool called_once = false;  // and was asked to end for that
    // Events that arrived before the prompt was scored.
    std::vector<infer::Event> early;
    int made = 0;
    Clock::time_point first_token, last_token;
    std::optional<infer::ToolCallReader> tools;
  };

  void submit_all(Effort* effort);
  void begin_stream();
  void hear(std::size_t index, const infer::Event& event);
  void take(std::size_t index, const infer::Event& event);
  void hear_prompt(std::size_t index, const infer::Event& event);
  void time_token(Choice& choice);
  void end_choice(std::size_t index, const infer::Event& event);
  // The choice that scores this one's prompt.
  std::size_t source_of(std::size_t index) const {
    return plan_.scored_by.empty() ? index : plan_.scored_by[index];
  }
  std::shared_ptr<const PromptEcho> echo_of(const Choice& choice) const;
  void hear_token(Choice& choice, const infer::GeneratedToken& token);
  void hear_end(std::size_t index, const infer::Event& event);
  // False, having failed, where the event is no answer.
  bool ended_well(const Choice& choice, const infer::Event& event);
  void finish_choice(Choice& choice, const infer::Event& event);
  void add_text(Choice& choice, std::string_view text);
  // Adds what the reader of tool calls made of a piece of text.
  void add_parts(Choice& choice, const infer::ToolText& parts);
  void add_call(Choice& choice, const infer::ToolCall& call);
  // Adds a piece of a call to a stream.
  void add_piece(Choice& choice, const infer::ToolCallPiece& piece);
  void end_after_call(Choice& choice);
  void write(std::string_view event);
  void write_piece(const ChoicePart& part, LogProbs log_probs = {});
  void pause();
  void go_on();
  LogProbs take_log_probs(Choice& choice);
  void finish_stream();
  void finish_whole();
  void finish_response();
  void fail(const ApiError& error, std::atomic<std::uint64_t>& counter);
  void cancel_all();
  void time_out();
  std::vector<infer::RequestId> unfinished_ids() const;
  void log_end(std::string_view how) const;

  // Given back before the answer ends, so that who hears the end may ask anew.
  KeyShares::SharePtr share_;
  const JobHost host_;
  JobPlan plan_;
  const TextPieces pieces_;
  std::optional<ResponseWriter> response_;
  const std::shared_ptr<HttpReply> reply_;
  const Clock::time_point began_ = Clock::now();

  std::mutex mutex_;
  std::vector<Choice> choices_;
  std::size_t unfinished_ = 0;
  bool first_token_ = false, paused_ = false;
  // Nothing is written any more; and the engine was asked to stop for that.
  bool failed_ = false, timed_out_ = false;
  Usage usage_;
};

}  // namespace hearth::serve
