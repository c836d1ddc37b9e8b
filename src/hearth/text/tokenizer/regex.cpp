// Patterns without a scanner, on PCRE2: just-in-time compiled, with bounded
// steps and memory.
#define PCRE2_CODE_UNIT_WIDTH 8
#include <cstdint>

#include <fmt/format.h>
#include <pcre2.h>

#include "hearth/base/error.h"
#include "hearth/text/tokenizer/matcher.h"
#include "hearth/text/tokenizer/regex_syntax.h"
#include "hearth/text/tokenizer/utf8.h"

namespace hearth::text {
namespace {

constexpr std::size_t kMaxPattern = 16 << 10;
constexpr std::uint32_t kMaxSteps = 20'000'000;
constexpr std::size_t kFirstStack = 64 << 10, kMaxStack = 16 << 20;

struct Free {
  void operator()(pcre2_code* p) const { pcre2_code_free(p); }
  void operator()(pcre2_match_data* p) const { pcre2_match_data_free(p); }
  void operator()(pcre2_match_context* p) const { pcre2_match_context_free(p); }
  void operator()(pcre2_jit_stack* p) const { pcre2_jit_stack_free(p); }
};
template <class T>
using Owned = std::unique_ptr<T, Free>;

std::string message(int code) {
  PCRE2_UCHAR text[256];
  pcre2_get_error_message(code, text, sizeof text);
  return reinterpret_cast<const char*>(text);
}

class Regex final : public Matcher {
 public:
  explicit Regex(const std::string& pattern) : pattern_(pattern) {
    if (pattern.size() > kMaxPattern) {
      throw FormatError("pattern is longer than 16 KiB");
    }
    const std::string rewritten = to_pcre2(pattern);
    int error = 0;
    PCRE2_SIZE where = 0;
    code_.reset(pcre2_compile(
        reinterpret_cast<PCRE2_SPTR>(rewritten.data()), rewritten.size(),
        PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C,
        &error, &where, nullptr
    ));
    if (!code_) {
      throw FormatError(
          fmt::format("pattern {:?}: {}", pattern, message(error))
      );
    }
    pcre2_jit_compile(code_.get(), PCRE2_JIT_COMPLETE);
  }

  void find_all(std::string_view text, OnMatch on_match) const override {
    Owned<pcre2_match_data> data(
        pcre2_match_data_create_from_pattern(code_.get(), nullptr)
    );
    Owned<pcre2_match_context> context(pcre2_match_context_create(nullptr));
    Owned<pcre2_jit_stack> stack(
        pcre2_jit_stack_create(kFirstStack, kMaxStack, nullptr)
    );
    if (!data || !context || !stack) throw std::bad_alloc();
    pcre2_set_match_limit(context.get(), kMaxSteps);
    pcre2_jit_stack_assign(context.get(), nullptr, stack.get());
    const PCRE2_SIZE* bounds = pcre2_get_ovector_pointer(data.get());
    std::size_t at = 0, last_end = text.size() + 1;
    while (at <= text.size()) {
      const int result = pcre2_match(
          code_.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(),
          at, PCRE2_NO_UTF_CHECK, data.get(), context.get()
      );
      if (result == PCRE2_ERROR_NOMATCH) return;
      if (result < 0) {
        throw Error(
            fmt::format(
                "[data.regex] pattern {:?} failed: {}", pattern_,
                message(result)
            )
        );
      }
      const std::size_t begin = bounds[0], end = bounds[1];
      // An empty match just after the last one does not count.
      if (begin < end || begin != last_end) on_match(begin, end);
      last_end = end;
      at = end;
      if (begin >= end) {
        if (at >= text.size()) return;
        at += utf8_size(text[at]);
      }
    }
  }

 private:
  std::string pattern_;
  Owned<pcre2_code> code_;
};

class Literal final : public Matcher {
 public:
  explicit Literal(std::string literal) : literal_(std::move(literal)) {}
  void find_all(std::string_view text, OnMatch on_match) const override {
    if (literal_.empty()) return;
    std::size_t at = text.find(literal_);
    while (at != text.npos) {
      on_match(at, at + literal_.size());
      at = text.find(literal_, at + literal_.size());
    }
  }

 private:
  std::string literal_;
};

}  // namespace

std::unique_ptr<Matcher> make_general_matcher(const std::string& pattern) {
  return std::make_unique<Regex>(pattern);
}

std::unique_ptr<Matcher> make_literal_matcher(std::string literal) {
  return std::make_unique<Literal>(std::move(literal));
}

std::unique_ptr<Matcher> make_regex_matcher(const std::string& pattern) {
  if (auto scanner = make_scanner(pattern)) return scanner;
  return make_general_matcher(pattern);
}

}  // namespace hearth::text
