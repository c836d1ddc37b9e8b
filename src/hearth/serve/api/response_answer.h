#pragma once
// Answers of /v1/responses: one object with a list of items, whole or as the
// events that build it up. Pure: text and calls in, JSON out.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "hearth/base/json.h"
#include "hearth/infer/tools/tool_calls.h"
#include "hearth/serve/api/answer.h"
#include "hearth/serve/api/api_error.h"

namespace hearth::serve {

struct ResponseHead {
  std::string id;
  std::int64_t created = 0;
  Json echo;  // what the request said, as every answer repeats it
};

// Each function returns the events for what it was told, in order and numbered;
// for an answer that is not streamed the caller drops them.
class ResponseWriter {
 public:
  explicit ResponseWriter(ResponseHead head) : head_(std::move(head)) {}

  std::string begin();
  // log_probs: null, or a list of chat_log_probs()'s.
  std::string text(std::string_view more, const Json& log_probs);
  // `id` for a call whose model gave none.
  std::string piece(const infer::ToolCallPiece& piece, const std::string& id);
  // cut: it reached its limit.
  std::string end(bool cut, const Usage& usage);
  std::string error(const ApiError& error);
  // Call it after end().
  const Json& whole() const { return whole_; }

 private:
  std::string event(const char* type, const Json& fields);
  std::string open_text();
  std::string close_text(const char* status);
  std::string close_call(const char* status);
  Json response(const char* status) const;
  // Fields that say which item, or which part of its content, it is about.
  Json at_item() const;
  Json at_text() const;
  Json text_part() const;

  ResponseHead head_;
  std::int64_t number_ = 0;  // of the next event
  Json output_ = Json::array();
  // The item that is open, last of those in output_.
  enum class Open : unsigned char { nothing, text, call };
  Open open_ = Open::nothing;
  std::string text_;  // its text or arguments
  Json log_probs_ = Json::array();
  Json whole_;
};

}  // namespace hearth::serve
