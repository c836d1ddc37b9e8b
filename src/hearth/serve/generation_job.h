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

#include "hearth/infer/engine.h"
#include "hearth/infer/tool_calls.h"
#include "hearth/serve/answer.h"
#include "hearth/serve/api_error.h"
#include "hearth/serve/http_reply.h"
#include "hearth/serve/metrics.h"

namespace hearth::serve {

// What a request became: one request to the engine a choice.
struct JobPlan {
  AnswerHead head;
  bool stream = false, include_usage = false;
  bool log_probs = false, token_ids = false;
  int choices_per_prompt = 1;
  std::vector<infer::Request> requests;
  std::vector<PromptEcho> echoes;  // what each choice's text begins with
  // Calls are looked for in this form; none: the text is only text.
  infer::ToolForm tool_form = infer::ToolForm::none;
  std::vector<std::string> tool_names;
  std::vector<std::int32_t> stop_ids;  // what the requests have
  bool one_tool_call = false;          // the answer ends with the first
};

struct JobHost {
  infer::Engine* engine = nullptr;
  std::shared_ptr<const data::Tokenizer> tokenizer;
  std::shared_ptr<Metrics> metrics;
  std::string_view route;  // as metrics count answers; must outlive the job
  HttpHeaders headers;     // of every answer
  std::chrono::milliseconds timeout{600'000};
};

class GenerationJob : public std::enable_shared_from_this<GenerationJob> {
 public:
  GenerationJob(JobHost host, JobPlan plan, std::shared_ptr<HttpReply> reply);

  // Hands everything to the engine. ApiError 429 when it has no room, 400 when
  // a request can never run; then nothing of it is left running.
  void start();
  // Ends the answer with an error that says the server stops.
  void cut_off();

 private:
  struct Choice {
    infer::RequestId id = 0;
    ChoicePart whole;  // all so far; of a stream only what the end needs
    Tokens tokens;     // with log probabilities, not yet written
    std::size_t offset = 0;
    bool scored_prompt = false, ended = false;
    std::optional<infer::ToolCallReader> tools;
  };

  void submit_all();
  void begin_stream();
  void hear(std::size_t index, const infer::Event& event);
  void hear_prompt(Choice& choice, const infer::Event& event);
  void hear_token(Choice& choice, const infer::GeneratedToken& token);
  void hear_end(std::size_t index, const infer::Event& event);
  // False, having failed, where the event is no answer.
  bool ended_well(const Choice& choice, const infer::Event& event);
  void finish_choice(Choice& choice, const infer::Event& event);
  void add_text(Choice& choice, std::string_view text);
  // What a reader of calls made of a piece of text.
  void add_parts(Choice& choice, const infer::ToolText& parts);
  void add_call(Choice& choice, const infer::ToolCall& call);
  void write(std::string_view event);
  void write_piece(const ChoicePart& part);
  void pause();
  void go_on();
  Json take_log_probs(Choice& choice);
  void finish_stream();
  void finish_whole();
  void fail(const ApiError& error, std::atomic<std::uint64_t>& counter);
  void cancel_all();
  void time_out();
  std::vector<infer::RequestId> unfinished_ids() const;
  void log_end(std::string_view how) const;

  const JobHost host_;
  JobPlan plan_;
  const TextPieces pieces_;
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
