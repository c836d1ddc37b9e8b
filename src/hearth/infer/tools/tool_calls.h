#pragma once
// Calls of tools in a model's answer: found in the form its template teaches,
// while the text is still coming; and the grammar that demands such a call.
//
//   ToolCallReader reader(tool_form_of(template_text), names);
//   for each piece of text: show(reader.feed(piece).text)
//   reader.finish()
//
// Nothing is lost: a call that turns out broken comes back as text, unless the
// answer was cut off within it.
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hearth/base/json.h"
#include "hearth/infer/generated.h"
#include "hearth/text/grammar/grammar.h"
#include "hearth/text/tokenizer/tokenizer.h"

namespace hearth::infer {

enum class ToolForm : unsigned char {
  none,    // the template knows no tools
  hermes,  // <tool_call>{"name":…, "arguments":…}</tool_call>; Qwen 2.5 and 3
           // too
  llama,   // {"name":…, "parameters":…}, also after <|python_tag|>, where
           // name.call(key=value) may stand instead
  mistral  // [TOOL_CALLS] [{"name":…, "arguments":…}], or name{…} without list
};

const char* tool_form_name(ToolForm form);
// The form of calls that a chat template teaches, found by the marks in its
// text.
ToolForm tool_form_of(std::string_view chat_template);

struct ToolCall {
  std::string name;
  std::string arguments;  // an object, as JSON text
  std::string id;         // where the model gave one; else empty
  friend bool operator==(const ToolCall&, const ToolCall&) = default;
};

// A piece of a call. A piece with a name and an id begins the next call; a
// piece with arguments belongs to the call that began last.
struct ToolCallPiece {
  bool begins = false, ends = false;
  std::string name = {}, id = {}, arguments = {};
};

// What may be shown now, and the calls that are complete now; of a reader that
// tells them in pieces, the pieces.
struct ToolText {
  std::string text;
  std::vector<ToolCall> calls;
  std::vector<ToolCallPiece> pieces;
  bool cut = false;  // a call was begun and is not whole
};

class ToolCallTeller;

class ToolCallReader {
 public:
  // `names` of the tools on offer. The llama form has no mark around a call,
  // so there a call must name one of them (any, when there are none).
  // in_pieces: calls are told as they come, and what was told of one stays
  // told, though it turn out broken.
  explicit ToolCallReader(
      ToolForm form,
      std::vector<std::string> names = {},
      bool in_pieces = false
  );
  ~ToolCallReader();
  ToolCallReader(ToolCallReader&&) noexcept;
  ToolCallReader& operator=(ToolCallReader&&) noexcept;

  ToolText feed(std::string_view text);
  // The same for a token as it was made. Special tokens are no text (what they
  // have was held back and stands before them); one that marks calls
  // ("<|python_tag|>", "[TOOL_CALLS]") and does not end the answer is read as
  // its spelling, and not shown where no call comes of it.
  ToolText feed(
      const GeneratedToken& token,
      const text::Tokenizer& tokenizer,
      std::span<const std::int32_t> stop_ids
  );
  // The answer is over: what was held back and is no call is text. cut: it
  // reached its limit, so that a call which is not whole was to be one.
  ToolText finish(bool cut = false);

 private:
  // How far the JSON value that is being held back has been looked through.
  struct Scan {
    std::size_t at = 0;
    int depth = 0;
    bool begun = false, quoted = false, escaped = false;
    // The position behind the value that begins at `from`; npos while the value
    // is incomplete.
    std::size_t end(std::string_view text, std::size_t from);
  };
  // What the held text begins with: so many bytes of calls or of plain text;
  // of neither while more is needed.
  struct Attempt {
    std::size_t size = 0;
    std::vector<ToolCall> calls;
    bool told = false;  // in pieces, all of it
  };

  void advance(bool last, ToolText& out);
  void tell(bool last, Attempt& found, ToolText& out);
  std::size_t find_open(bool last, std::size_t& sure) const;
  bool drop_begun_call();
  Attempt attempt(bool last);
  Attempt attempt_hermes(bool last);
  Attempt attempt_llama(bool last);
  Attempt attempt_mistral(bool last);
  Attempt attempt_mistral_pair(std::size_t begin, bool last);
  bool offered(const std::string& name) const;
  void hold(std::string_view text, bool hidden);
  void show(std::size_t size, ToolText& out);
  void drop(std::size_t size);

  ToolForm form_;
  std::vector<std::string> names_;
  std::string held_;
  std::vector<bool> hidden_;  // of each byte held: it is never shown
  std::string space_;         // blanks that are shown once a word follows
  bool at_edge_ = true;  // nothing but blanks since the beginning or a call
  bool called_ = false;
  Scan scan_;
  std::unique_ptr<ToolCallTeller> teller_;  // null: calls are whole
};

// A call in OpenAI's form; `id` where the model gave none.
Json tool_call_json(const ToolCall& call, const std::string& id);

// Reads a whole answer at once.
ToolText read_tool_calls(
    std::string_view answer,
    ToolForm form,
    const std::vector<std::string>& names = {}
);

// The names of OpenAI's `tools`: [{"type": "function", "function": {"name",
// "parameters"}}]. Throws UsageError for what is not that.
std::vector<std::string> tool_names(const Json& tools);

// The text with which a call begins in this form; empty where the form has no
// mark.
std::string_view tool_call_mark(ToolForm form);

// One call or, with `several`, more, and nothing else, in the model's form;
// arguments by each tool's schema ({} where it lists no parameters). `name`
// narrows it to one tool; empty: any of them. Throws UsageError for a name
// that is not on offer and for what grammar_of_schema refuses.
std::shared_ptr<const text::Grammar> grammar_of_tool_call(
    ToolForm form,
    const Json& tools,
    std::string_view name = {},
    bool several = false,
    const text::GrammarOptions& options = {}
);
// The same for what follows the first mark, where the form has one. Tools that
// are not strict take any object. A tool that says "strict" is held strictly
// whatever the options say.
std::shared_ptr<const text::Grammar> grammar_after_tool_call_mark(
    ToolForm form,
    const Json& tools,
    bool several,
    const text::GrammarOptions& options = {}
);

// Calls as the function above has them, with their mark, or else one JSON value
// of this schema; any object, where it is null.
std::shared_ptr<const text::Grammar> grammar_of_calls_or_json(
    ToolForm form,
    const Json& tools,
    const Json* schema,
    bool several,
    const text::GrammarOptions& options = {}
);
// Calls, or text that cannot be mistaken for the beginning of one: for a form
// without a mark.
std::shared_ptr<const text::Grammar> grammar_of_calls_or_text(
    ToolForm form,
    const Json& tools,
    bool several,
    const text::GrammarOptions& options = {}
);

}  // namespace hearth::infer
