#include "hearth/serve/api/response_answer.h"

#include <fmt/format.h>

#include "hearth/serve/random_id.h"

namespace hearth::serve {
namespace {

std::string new_id(const char* kind) {
  return fmt::format(
      "{}_{:016x}{:016x}", kind, random_number(), random_number()
  );
}

Json usage_of(const Usage& usage) {
  return {
      {"input_tokens", usage.prompt},
      {"input_tokens_details", {{"cached_tokens", usage.cached}}},
      {"output_tokens", usage.made},
      {"output_tokens_details", {{"reasoning_tokens", 0}}},
      {"total_tokens", usage.prompt + usage.made}
  };
}

}  // namespace

std::string ResponseWriter::event(const char* type, const Json& fields) {
  Json out = {{"type", type}, {"sequence_number", number_++}};
  out.update(fields);
  return fmt::format("event: {}\ndata: {}\n\n", type, to_json_line(out));
}

Json ResponseWriter::response(const char* status) const {
  Json out = {{"id", head_.id},
              {"object", "response"},
              {"created_at", head_.created},
              {"status", status},
              {"error", nullptr},
              {"incomplete_details", nullptr}};
  out.update(head_.echo);
  out["output"] = output_;
  out["usage"] = nullptr;
  return out;
}

std::string ResponseWriter::begin() {
  const Json so_far = response("in_progress");
  // Events are numbered in the order in which they are made.
  std::string out = event("response.created", {{"response", so_far}});
  out += event("response.in_progress", {{"response", so_far}});
  return out;
}

Json ResponseWriter::at_item() const {
  return {
      {"item_id", output_.back()["id"]}, {"output_index", output_.size() - 1}
  };
}

Json ResponseWriter::at_text() const {
  Json out = at_item();
  out["content_index"] = 0;
  return out;
}

Json ResponseWriter::text_part() const {
  return {
      {"type", "output_text"},
      {"text", text_},
      {"annotations", Json::array()},
      {"logprobs", log_probs_}
  };
}

std::string ResponseWriter::open_text() {
  if (open_ == Open::text) return {};
  std::string out = close_call("completed");
  text_.clear();
  log_probs_ = Json::array();
  open_ = Open::text;
  output_.push_back(
      {{"id", new_id("msg")},
       {"type", "message"},
       {"role", "assistant"},
       {"status", "in_progress"},
       {"content", Json::array()}}
  );
  out += event(
      "response.output_item.added",
      {{"output_index", output_.size() - 1}, {"item", output_.back()}}
  );
  Json part = at_text();
  part["part"] = text_part();
  return out + event("response.content_part.added", part);
}

std::string ResponseWriter::text(std::string_view more, const Json& log_probs) {
  std::string out = open_text();
  text_ += more;
  Json delta = at_text();
  delta["delta"] = more;
  delta["logprobs"] = log_probs.is_array() ? log_probs : Json::array();
  for (const Json& one : delta["logprobs"]) log_probs_.push_back(one);
  return out + event("response.output_text.delta", delta);
}

std::string ResponseWriter::close_text(const char* status) {
  if (open_ != Open::text) return {};
  open_ = Open::nothing;
  Json done = at_text();
  done["text"] = text_;
  done["logprobs"] = log_probs_;
  std::string out = event("response.output_text.done", done);
  Json part = at_text();
  part["part"] = text_part();
  out += event("response.content_part.done", part);
  Json& item = output_.back();
  item["content"] = Json::array({text_part()});
  item["status"] = status;
  return out + event(
                   "response.output_item.done",
                   {{"output_index", output_.size() - 1}, {"item", item}}
               );
}

std::string ResponseWriter::close_call(const char* status) {
  if (open_ != Open::call) return {};
  open_ = Open::nothing;
  Json& item = output_.back();
  Json done = at_item();
  done["name"] = item["name"];
  done["arguments"] = text_;
  item["arguments"] = text_;
  item["status"] = status;
  std::string out = event("response.function_call_arguments.done", done);
  out += event(
      "response.output_item.done",
      {{"output_index", output_.size() - 1}, {"item", item}}
  );
  return out;
}

std::string ResponseWriter::piece(
    const infer::ToolCallPiece& piece,
    const std::string& id
) {
  std::string out;
  if (piece.begins) {
    out = close_text("completed");
    out += close_call("completed");
    open_ = Open::call;
    text_.clear();
    output_.push_back(
        {{"id", new_id("fc")},
         {"type", "function_call"},
         {"call_id", piece.id.empty() ? id : piece.id},
         {"name", piece.name},
         {"arguments", ""},
         {"status", "in_progress"}}
    );
    out += event(
        "response.output_item.added",
        {{"output_index", output_.size() - 1}, {"item", output_.back()}}
    );
  }
  if (!piece.arguments.empty()) {
    text_ += piece.arguments;
    Json delta = at_item();
    delta["delta"] = piece.arguments;
    out += event("response.function_call_arguments.delta", delta);
  }
  return piece.ends ? out + close_call("completed") : out;
}

std::string ResponseWriter::end(bool cut, const Usage& usage) {
  const char* status = cut ? "incomplete" : "completed";
  std::string out = close_text(status);
  out += close_call(status);
  // An answer has a message, be it empty.
  if (output_.empty()) {
    out += open_text();
    out += close_text(status);
  }
  whole_ = response(status);
  if (cut) whole_["incomplete_details"] = {{"reason", "max_output_tokens"}};
  whole_["usage"] = usage_of(usage);
  return out + event(
                   cut ? "response.incomplete" : "response.completed",
                   {{"response", whole_}}
               );
}

std::string ResponseWriter::error(const ApiError& error) {
  Json fields = parse_json(error_body(error), "error");
  const Json inner = fields["error"];
  for (const char* key : {"code", "message", "param"}) {
    fields[key] = inner[key];
  }
  return event("error", fields);
}

}  // namespace hearth::serve
