#pragma once
// What the server can run, and what a request asks of it.
#include <memory>
#include <string>
#include <vector>

#include "hearth/infer/engine.h"
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
};

// What the engine is asked for. ApiError where the request does not fit the
// model.
JobPlan plan_chat(const ServedModel& model, const ChatRequest& request);
JobPlan plan_completion(
    const ServedModel& model,
    const CompletionRequest& request
);

}  // namespace hearth::serve
