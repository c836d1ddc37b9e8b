#include "hearth/cli/infer/answer_text.h"

#include <fmt/format.h>

#include "hearth/base/error.h"
#include "hearth/serve/api/log_probs_writer.h"

namespace hearth::cli {

infer::ToolForm tool_form(const infer::TextModel& model, const Json& tools) {
  if (tools.is_null()) return infer::ToolForm::none;
  const auto form =
      infer::tool_form_of(model.need_template().choose(true).source());
  if (form != infer::ToolForm::none) return form;
  throw UsageError(
      fmt::format("the chat template of {} knows no tools", model.path)
  );
}

AnswerText::AnswerText(const infer::TextModel& model, const Json& tools)
    : model_(model) {
  const auto form = tool_form(model, tools);
  if (form == infer::ToolForm::none) return;
  reader_.emplace(form, infer::tool_names(tools));
}

std::string AnswerText::push(const infer::GeneratedToken& token) {
  if (!reader_) {
    text_ += token.text;
    return token.text;
  }
  return take(reader_->feed(token, *model_.tokenizer, model_.stop_ids));
}

std::string AnswerText::finish() {
  return reader_ ? take(reader_->finish()) : std::string();
}

std::string AnswerText::take(const infer::ToolText& part) {
  text_ += part.text;
  for (const auto& call : part.calls) {
    if (calls_.is_null()) calls_ = Json::array();
    calls_.push_back(
        infer::tool_call_json(call, fmt::format("call_{}", calls_.size()))
    );
  }
  return part.text;
}

std::string finish_name(infer::Finish finish, const Json& calls) {
  return calls.is_null() ? std::string(infer::name_of(finish)) : "tool_calls";
}

Json log_probs_json(
    const std::vector<infer::GeneratedToken>& tokens,
    const text::Tokenizer* tokenizer
) {
  const auto entry = [&](std::int32_t id, float log_prob) {
    Json out = {{"id", id}};
    if (tokenizer != nullptr) out["token"] = serve::token_text(*tokenizer, id);
    out["logprob"] = log_prob;
    return out;
  };
  Json list = Json::array();
  for (const auto& t : tokens) {
    Json one = entry(t.id, t.log_prob);
    one["top"] = Json::array();
    for (const auto& a : t.top) one["top"].push_back(entry(a.id, a.log_prob));
    list.push_back(std::move(one));
  }
  return list;
}

}  // namespace hearth::cli
