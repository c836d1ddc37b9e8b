#include "hearth/cli/infer/generate_batch.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>

#include <fmt/format.h>

#include "hearth/base/clock.h"
#include "hearth/base/env.h"
#include "hearth/base/error.h"
#include "hearth/cli/infer/answer_text.h"
#include "hearth/cli/infer/generate_prompt.h"
#include "hearth/cli/interrupt.h"
#include "hearth/cli/measure/doctor_report.h"
#include "hearth/hardware/profile.h"
#include "hearth/infer/engine/batch_policy.h"

namespace hearth::cli {
namespace {

// The result of one request, filled on the engine's thread.
struct Result {
  const BatchLine* line = nullptr;
  std::optional<AnswerText> text;
  std::vector<infer::GeneratedToken> tokens;
  std::optional<std::uint64_t> seed;  // where tokens were drawn
  bool log_probs = false;
  std::string error;
  infer::Event end;
};
using ResultPtr = std::shared_ptr<Result>;

// Finished requests on their way to this thread.
class Finished {
 public:
  void push(ResultPtr result) {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(result));
    changed_.notify_one();
  }
  // Null when none comes for a while.
  ResultPtr pop() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::milliseconds(100), [&] {
      return !queue_.empty();
    });
    if (queue_.empty()) return nullptr;
    auto out = std::move(queue_.front());
    queue_.pop_front();
    return out;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<ResultPtr> queue_;
};

infer::BatchRule rule_of_this_machine(const Context& context) {
  const auto all = hardware::load_profiles(env::config_folder() + "/profiles");
  const auto& policy =
      hardware::profile_named(all, gather_report(context.common.device).profile)
          .batch_policy;
  infer::BatchRule rule;
  rule.sizes = policy.offline;
  rule.min_gain_pct = policy.min_gain_pct;
  rule.max_p95_penalty_pct = policy.max_p95_penalty_pct;
  return rule;
}

struct Counts {
  int answered = 0, failed = 0, batch = 1;
  std::uint64_t tokens = 0;
  double seconds = 0;
  std::optional<Guesses> guesses;
};

void report(
    const Context& context,
    std::size_t asked,
    const AnswersFile::Before& before,
    const Counts& c
) {
  const double rate =
      c.seconds > 0 ? static_cast<double>(c.tokens) / c.seconds : 0;
  if (!context.common.json) {
    if (c.guesses && context.common.verbose) context.note(c.guesses->text());
    return context.note(
        fmt::format(
            "{} of {} answered, {} were before, {} failed; {} tokens, {:.1f} "
            "tokens/s",
            c.answered, asked + before.answered, before.answered, c.failed,
            c.tokens, rate
        )
    );
  }
  Json document = {{"answered", c.answered}, {"skipped", before.answered},
                   {"failed", c.failed},     {"made_tokens", c.tokens},
                   {"tokens_per_s", rate},   {"batch", c.batch}};
  if (c.guesses) document["guesses"] = c.guesses->json();
  context.json("hearth.generate.batch/1", document);
}

class BatchRun : public Counts {
 public:
  BatchRun(
      const Context& context,
      const BatchJob& job,
      const std::vector<BatchLine>& lines,
      AnswersFile& answers,
      ModelEngine& live
  )
      : context_(context),
        job_(job),
        lines_(lines),
        answers_(answers),
        live_(live) {}

  void run();

 private:
  const Context& context_;
  const BatchJob& job_;
  const std::vector<BatchLine>& lines_;
  AnswersFile& answers_;
  ModelEngine& live_;
  // The engine may still call back when this one is gone.
  std::shared_ptr<Finished> finished_ = std::make_shared<Finished>();
  std::vector<infer::RequestId> open_;

  static bool going() { return !InterruptGuard::interrupted(); }
  const Json& tools_of(const BatchLine& line) const {
    return line.tools.is_null() ? job_.tools : line.tools;
  }
  infer::Request request_of(const BatchLine& line) const;
  std::vector<std::int32_t> any_prompt() const;
  void choose_batch();
  bool submit(const BatchLine& line);
  void write(const Result& result);
  Json answer_of(const Result& result) const;
};

infer::Request BatchRun::request_of(const BatchLine& line) const {
  infer::Request out = job_.asked;
  const Prompt prompt =
      line.prompt
          ? text_prompt(
                live_.model, *line.prompt, job_.system, tools_of(line), job_.raw
            )
          : messages_prompt(
                live_.model, line.messages, job_.system, tools_of(line)
            );
  out.prompt = prompt.ids;
  out.continues_prompt = !prompt.chat;
  out.stop_ids = live_.model.stop_ids;
  line.apply(out);
  return out;
}

// The prompt of the first line that can be asked; a few are tried.
std::vector<std::int32_t> BatchRun::any_prompt() const {
  constexpr std::size_t kTried = 16;
  for (std::size_t i = 0; i < std::min(lines_.size(), kTried); ++i) {
    try {
      auto prompt = request_of(lines_[i]).prompt;
      if (!prompt.empty()) return prompt;
    } catch (const UsageError&) {
      // The answer of that line will say what is wrong.
    }
  }
  return {};
}

void BatchRun::choose_batch() {
  // Below this a measurement takes longer than it can save.
  constexpr int kWorthMeasuring = 8;
  const auto count = static_cast<int>(
      std::min(lines_.size(), static_cast<std::size_t>(INT32_MAX))
  );
  const auto prompt = job_.batch > 0 || count < kWorthMeasuring
                          ? std::vector<std::int32_t>()
                          : any_prompt();
  if (job_.batch > 0) {
    batch = job_.batch;
  } else if (prompt.empty()) {
    batch = std::clamp(count, 1, kWorthMeasuring);
  } else {
    const auto rule = rule_of_this_machine(context_);
    const auto measured =
        infer::measure_batches(*live_.engine, prompt, rule, count, going);
    batch = infer::choose_batch(measured, rule);
    if (going()) context_.note(infer::batch_report(measured, batch));
  }
  live_.engine->set_max_batch(batch);
}

Json BatchRun::answer_of(const Result& result) const {
  Json out = {{"id", result.line->id}};
  if (!result.error.empty()) {
    out["error"] = result.error;
    return out;
  }
  out["text"] = result.text->text();
  out["finish"] = finish_name(result.end.finish, result.text->calls());
  if (!result.text->calls().is_null()) {
    out["tool_calls"] = result.text->calls();
  }
  out["prompt_tokens"] = result.end.prompt_tokens;
  out["made_tokens"] = result.end.made_tokens;
  if (result.seed) out["seed"] = *result.seed;
  out["ids"] = Json::array();
  for (const auto& t : result.tokens) out["ids"].push_back(t.id);
  if (result.log_probs) {
    out["logprobs"] =
        log_probs_json(result.tokens, live_.model.tokenizer.get());
  }
  return out;
}

void BatchRun::write(const Result& result) {
  answers_.append(*result.line, answer_of(result));
  ++(result.error.empty() ? answered : failed);
  tokens += static_cast<std::uint64_t>(result.end.made_tokens);
}

// False when the line was answered at once, by an error.
bool BatchRun::submit(const BatchLine& line) {
  auto result = std::make_shared<Result>();
  result->line = &line;
  try {
    infer::Request request = request_of(line);
    result->text.emplace(live_.model, tools_of(line));
    result->log_probs = request.log_probs.has_value();
    if (request.sampling.temperature > 0) result->seed = request.sampling.seed;
    const auto id = live_.engine->submit(
        std::move(request),
        [finished = finished_, result](const infer::Event& e) {
          if (e.kind == infer::Event::Kind::token) {
            result->text->push(e.token);
            result->tokens.push_back(e.token);
          } else if (e.kind == infer::Event::Kind::end) {
            result->text->finish();
            result->end = e, result->error = plain_message(e.error);
            finished->push(result);
          }
        }
    );
    open_.push_back(id);
    return true;
  } catch (const UsageError& e) {
    result->error = plain_message(e.what());
    write(*result);
    return false;
  }
}

void BatchRun::run() {
  choose_batch();
  answers_.begin();
  const double start = milliseconds_now();
  std::optional<Progress> progress;
  // What waits is at the engine before a place is free, well within what it
  // takes: an answer is heard before its place is given back.
  const auto running = static_cast<std::size_t>(batch);
  const auto ahead =
      running + std::min(running, infer::EngineOptions().max_queue / 2);
  std::size_t next = 0, waiting = 0;
  bool stopping = !going();
  while (waiting > 0 || (next < lines_.size() && !stopping)) {
    while (!stopping && next < lines_.size() && waiting < ahead) {
      waiting += submit(lines_[next++]) ? 1 : 0;
    }
    if (waiting == 0) continue;
    const auto result = finished_->pop();
    if (!going() && !stopping) {
      stopping = true;
      for (const auto id : open_) live_.engine->cancel(id);
    }
    if (!result) continue;
    --waiting;
    const bool cut = stopping && result->end.finish == infer::Finish::cancelled;
    if (!cut) write(*result);
    if (!progress && milliseconds_now() - start > 2000) {
      progress.emplace(
          Progress::Options{"answering", "requests", lines_.size()}
      );
    }
    if (progress) {
      progress->update(
          static_cast<std::uint64_t>(answered) +
          static_cast<std::uint64_t>(failed)
      );
    }
  }
  seconds = (milliseconds_now() - start) / 1e3;
  if (live_.guessing) guesses = live_.guesses();
}

}  // namespace

std::vector<BatchLine> read_batch(const BatchJob& job) {
  const std::string file = job.in == "-" ? "<stdin>" : job.in;
  auto lines = parse_batch(read_text(job.in), file);
  for (const BatchLine& line : lines) {
    const auto refuse = [&](const char* what) {
      throw FormatError::at(file, line.line, what);
    };
    if (job.raw && !line.messages.is_null()) {
      refuse("--raw continues a text, but these are messages of a chat");
    }
    if (job.raw && !line.tools.is_null()) {
      refuse("tools need the chat template, which --raw leaves out");
    }
    if (job.asked.grammar && !line.tools.is_null()) {
      refuse("a grammar for the text leaves no room for a tool call");
    }
  }
  return lines;
}

void run_batch(
    const Context& context,
    const BatchJob& job,
    const std::vector<BatchLine>& lines,
    const AnswersFile::Before& before,
    AnswersFile& answers,
    ModelEngine& live
) {
  const InterruptGuard guard;
  BatchRun run(context, job, lines, answers, live);
  run.run();
  report(context, lines.size(), before, run);
  if (InterruptGuard::interrupted()) {
    throw Interrupted(
        "interrupted: what is answered is kept, the same command goes on"
    );
  }
  if (run.failed > 0) {
    throw Error(
        fmt::format("{} requests failed: see {}", run.failed, job.out),
        "the same command asks them again"
    );
  }
}

void report_batch_done(
    const Context& context,
    const AnswersFile::Before& before
) {
  report(context, 0, before, {});
}

}  // namespace hearth::cli
