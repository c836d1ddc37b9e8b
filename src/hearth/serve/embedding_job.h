#pragma once
// One request to /v1/embeddings while the engine answers it: a request to the
// engine for each text, a few at a time, so that a long list takes no place of
// others in the queue.
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "hearth/serve/api/api_error.h"
#include "hearth/serve/generation_job.h"
#include "hearth/serve/running_job.h"

namespace hearth::serve {

// Enough to fill a step with short texts.
inline constexpr std::size_t kTextsAtOnce = 16;

struct EmbeddingPlan {
  std::string model;
  bool base64 = false;
  std::size_t dimensions = 0;  // of each vector
  std::size_t at_once = kTextsAtOnce;
  std::vector<infer::Request> requests;
};

class EmbeddingJob : public RunningJob,
                     public std::enable_shared_from_this<EmbeddingJob> {
 public:
  EmbeddingJob(
      JobHost host,
      EmbeddingPlan plan,
      std::shared_ptr<HttpReply> reply
  );

  // Hands the first texts to the engine. ApiError 429 when it has no room.
  void start();
  void cut_off() override;

 private:
  struct Part {
    infer::RequestId id = 0;
    bool under_way = false;
    std::string vector;  // as the answer has it
  };

  // The caller of these holds the mutex.
  void submit_more();
  void hear(std::size_t index, const infer::Event& event);
  void keep(Part& part, std::vector<float> vector);
  bool ended_well(const Part& part, const infer::Event& event);
  void finish();
  void fail(const ApiError& error, std::atomic<std::uint64_t>& counter);
  void cancel_all();

  // Given back before the answer ends, so that who hears the end may ask anew.
  KeyShares::SharePtr share_;
  const JobHost host_;
  EmbeddingPlan plan_;
  const std::shared_ptr<HttpReply> reply_;
  const Clock::time_point began_ = Clock::now();

  std::mutex mutex_;
  std::vector<Part> parts_;
  std::size_t submitted_ = 0, under_way_ = 0, done_ = 0;
  // Nothing is written any more; and the engine was asked to stop for that.
  bool failed_ = false, timed_out_ = false;
  int prompt_tokens_ = 0;
};

}  // namespace hearth::serve
