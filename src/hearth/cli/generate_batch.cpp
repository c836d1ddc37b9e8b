#include "hearth/cli/generate_batch.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <mutex>

#include <fmt/format.h>

#include "hearth/base/env.h"
#include "hearth/base/error.h"
#include "hearth/cli/doctor_report.h"
#include "hearth/cli/generate_prompt.h"
#include "hearth/cli/interrupt.h"
#include "hearth/hardware/profile.h"
#include "hearth/infer/batch_policy.h"

namespace hearth::cli {
namespace {

// What one request has become; filled on the engine's thread.
struct Result {
  Json id;
  std::string text, error;
  std::vector<infer::GeneratedToken> tokens;
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
};

void report(const Context& context, const BatchWork& work, const Counts& c) {
  const std::size_t all = work.lines.size() + work.answered_before;
  const double rate =
      c.seconds > 0 ? static_cast<double>(c.tokens) / c.seconds : 0;
  if (!context.common.json) {
    return context.note(
        fmt::format(
            "{} of {} answered, {} were before, {} failed; {} tokens, {:.1f} "
            "tokens/s",
            c.answered, all, work.answered_before, c.failed, c.tokens, rate
        )
    );
  }
  context.json(
      "hearth.generate/1", {{"answered", c.answered},
                            {"skipped", work.answered_before},
                            {"failed", c.failed},
                            {"made_tokens", c.tokens},
                            {"tokens_per_s", rate},
                            {"batch", c.batch}}
  );
}

class BatchRun : public Counts {
 public:
  BatchRun(
      const Context& context,
      const BatchJob& job,
      const SamplingFlags& sampling,
      const std::shared_ptr<const infer::Grammar>& grammar,
      ModelEngine& live
  )
      : context_(context),
        job_(job),
        live_(live),
        base_(sampling.request(context)) {
    base_.grammar = grammar;
    base_.log_probs = job.log_probs;
    base_.stop_ids = live.model.stop_ids;
  }

  void run(const std::vector<BatchLine>& lines);

 private:
  const Context& context_;
  const BatchJob& job_;
  ModelEngine& live_;
  infer::Request base_;
  Finished finished_;
  std::vector<infer::RequestId> open_;

  infer::Request request_of(const BatchLine& line) const;
  void choose_batch(const std::vector<BatchLine>& lines);
  bool submit(const BatchLine& line, LineFile& out);
  void write(const Result& result, LineFile& out);
  Json line_of(const Result& result) const;
};

infer::Request BatchRun::request_of(const BatchLine& line) const {
  infer::Request out = base_;
  const Prompt prompt =
      line.prompt
          ? text_prompt(live_.model, *line.prompt, job_.system, job_.raw)
          : messages_prompt(live_.model, line.messages);
  out.prompt = prompt.ids;
  out.continues_prompt = !prompt.chat;
  if (line.max_tokens) out.max_tokens = *line.max_tokens;
  if (line.temperature) out.sampling.temperature = *line.temperature;
  if (line.top_p) out.sampling.top_p = *line.top_p;
  if (line.seed) out.sampling.seed = *line.seed;
  if (line.stop) out.stop = *line.stop;
  return out;
}

void BatchRun::choose_batch(const std::vector<BatchLine>& lines) {
  // Below this a measurement takes longer than it can save.
  constexpr std::size_t kWorthMeasuring = 8;
  const auto count = static_cast<int>(lines.size());
  if (job_.batch > 0) {
    batch = job_.batch;
  } else if (lines.size() < kWorthMeasuring) {
    batch = std::max(count, 1);
  } else {
    const auto rule = rule_of_this_machine(context_);
    const auto prompt = request_of(lines.front()).prompt;
    const auto measured =
        infer::measure_batches(*live_.engine, prompt, rule, count);
    batch = infer::choose_batch(measured, rule);
    context_.note(infer::batch_report(measured, batch));
  }
  live_.engine->set_max_batch(batch);
}

Json BatchRun::line_of(const Result& result) const {
  Json out = {{"id", result.id}};
  if (!result.error.empty()) {
    out["error"] = result.error;
    return out;
  }
  out["text"] = result.text;
  out["finish"] = infer::name_of(result.end.finish);
  out["prompt_tokens"] = result.end.prompt_tokens;
  out["made_tokens"] = result.end.made_tokens;
  if (!job_.log_probs) return out;
  Json list = Json::array();
  for (const auto& t : result.tokens) {
    Json one = {{"id", t.id}, {"logprob", t.log_prob}};
    one["top"] = Json::array();
    for (const auto& a : t.top) {
      one["top"].push_back({{"id", a.id}, {"logprob", a.log_prob}});
    }
    list.push_back(std::move(one));
  }
  out["logprobs"] = std::move(list);
  return out;
}

void BatchRun::write(const Result& result, LineFile& out) {
  out.append(to_json_line(line_of(result)));
  ++answered;
  if (!result.error.empty()) ++failed;
  tokens += static_cast<std::uint64_t>(result.end.made_tokens);
}

// False when the line was answered at once, by an error.
bool BatchRun::submit(const BatchLine& line, LineFile& out) {
  auto result = std::make_shared<Result>();
  result->id = line.id;
  try {
    const bool keep = job_.log_probs.has_value();
    const auto id = live_.engine->submit(
        request_of(line), [this, result, keep](const infer::Event& e) {
          if (e.kind == infer::Event::Kind::token) {
            result->text += e.token.text;
            if (keep) result->tokens.push_back(e.token);
          } else if (e.kind == infer::Event::Kind::end) {
            result->end = e, result->error = e.error;
            finished_.push(result);
          }
        }
    );
    open_.push_back(id);
    return true;
  } catch (const UsageError& e) {
    result->error = e.what();
    write(*result, out);
    return false;
  }
}

void BatchRun::run(const std::vector<BatchLine>& lines) {
  choose_batch(lines);
  LineFile out(job_.out);
  const double start = milliseconds_now();
  std::optional<Progress> progress;
  const auto ahead = 2 * static_cast<std::size_t>(batch);
  std::size_t next = 0, waiting = 0;
  bool stopping = false;
  while (waiting > 0 || (next < lines.size() && !stopping)) {
    while (!stopping && next < lines.size() && waiting < ahead) {
      waiting += submit(lines[next++], out) ? 1 : 0;
    }
    if (waiting == 0) continue;
    const auto result = finished_.pop();
    if (InterruptGuard::interrupted() && !stopping) {
      stopping = true;
      for (const auto id : open_) live_.engine->cancel(id);
    }
    if (!result) continue;
    --waiting;
    const bool cut = stopping && result->end.finish == infer::Finish::cancelled;
    if (!cut) write(*result, out);
    if (!progress && milliseconds_now() - start > 2000) {
      progress.emplace(
          Progress::Options{"answering", "requests", lines.size()}
      );
    }
    if (progress) progress->update(static_cast<std::uint64_t>(answered));
  }
  seconds = (milliseconds_now() - start) / 1e3;
}

}  // namespace

BatchWork open_batch(const BatchJob& job) {
  BatchWork out;
  out.lines = parse_batch(read_text(job.in), job.in);
  if (job.force && job.out != "-") std::filesystem::remove(job.out);
  const auto done = take_up(job.out);
  out.answered_before = std::erase_if(out.lines, [&](const BatchLine& l) {
    return done.contains(to_json_line(l.id));
  });
  return out;
}

void run_batch(
    const Context& context,
    const BatchJob& job,
    const BatchWork& work,
    const SamplingFlags& sampling,
    const std::shared_ptr<const infer::Grammar>& grammar,
    ModelEngine& live
) {
  const InterruptGuard guard;
  BatchRun run(context, job, sampling, grammar, live);
  run.run(work.lines);
  report(context, work, run);
  if (InterruptGuard::interrupted()) {
    throw Interrupted(
        "interrupted: what is answered is kept, the same command goes on"
    );
  }
  if (run.failed > 0) {
    throw Error(fmt::format("{} requests failed: see {}", run.failed, job.out));
  }
}

void report_batch_done(const Context& context, const BatchWork& work) {
  report(context, work, {});
}

}  // namespace hearth::cli
