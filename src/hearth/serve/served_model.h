#pragma once
// What the server can run, and how a request becomes token ids for it.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hearth/data/chat.h"
#include "hearth/infer/engine.h"
#include "hearth/serve/generation_job.h"
#include "hearth/serve/generation_request.h"

namespace hearth::serve {

// The text side, which a base and its adapters share.
struct ServedText {
  std::shared_ptr<const data::Tokenizer> tokenizer;  // never null
  std::optional<data::ChatTemplates> templates;
  std::vector<std::int32_t> stop_ids;

  // How the template with tools teaches to call them.
  infer::ToolForm tool_form() const;
};

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
