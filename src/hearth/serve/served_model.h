#pragma once
// The models that the server offers, and what a request asks of the engine.
#include <memory>
#include <string>
#include <vector>

#include "hearth/infer/engine/engine.h"
#include "hearth/serve/api/embedding_request.h"
#include "hearth/serve/api/response_request.h"
#include "hearth/serve/embedding_job.h"
#include "hearth/serve/generation_job.h"
#include "hearth/serve/served_text.h"

namespace hearth::serve {

// A name that the "model" of a request may have.
struct ServedModel {
  std::string id;
  std::shared_ptr<infer::Engine> engine;
  int adapter = -1;
  std::shared_ptr<const ServedText> text;
  std::int64_t created = 0;
  infer::Pooling pooling = infer::Pooling::mean;  // of its embeddings
};

// Throws ApiError 400 where the answer could hold more log probabilities, or
// more of the prompts' text, than one answer may. context: tokens that a prompt
// and its answer may have.
void check_log_probs(const JobPlan& plan, int context);

// What the engine is asked for. ApiError where the request does not fit the
// model.
JobPlan plan_chat(const ServedModel& model, const ChatRequest& request);
JobPlan plan_response(const ServedModel& model, const ResponseRequest& request);
JobPlan plan_completion(
    const ServedModel& model,
    const CompletionRequest& request
);
EmbeddingPlan plan_embeddings(
    const ServedModel& model,
    const EmbeddingRequest& request,
    Effort& effort
);

}  // namespace hearth::serve
