#pragma once
// JSON schemas as rules. Every keyword is either obeyed, known to say nothing
// about the value, or refused with its name and place.
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hearth/base/json.h"
#include "hearth/infer/grammar/expr.h"
#include "hearth/infer/grammar/json_parts.h"

namespace hearth::infer::grammar {

constexpr const char* kSchemaWho = "[infer.grammar_of_schema]";

// UsageError "who what, at #/place".
[[noreturn]] void fail_schema(std::string_view what, std::string_view path);

// The types a schema may have: bits of a set.
enum JsonType : unsigned {
  kNull = 1,
  kBoolean = 2,
  kInteger = 4,
  kNumber = 8,  // those that are not whole; a number is both
  kString = 16,
  kArray = 32,
  kObject = 64,
  kAnyType = 127
};

class SchemaReader {
 public:
  explicit SchemaReader(const Json& root) : root_(root) {}
  // Adds the rules of the schema and of all it refers to; the rule to call.
  // `rules` may have others, and must outlive the reader.
  int read(Rules& rules);

  ExprPtr value(const Json& schema, const std::string& path);

 private:
  struct Waiting {
    int rule;
    Json schema;
    std::string path;
  };

  ExprPtr typed(const Json& schema, unsigned types, const std::string& path);
  ExprPtr one_type(const Json& schema, JsonType type, const std::string& path);
  ExprPtr branches(const Json& schema, const std::string& path);
  ExprPtr listed(const Json& schema, const std::string& path);
  ExprPtr referred(const Json& schema, const std::string& path);

  ExprPtr object(const Json& schema, const std::string& path);
  ExprPtr members(
      std::vector<std::pair<ExprPtr, bool>> pairs,
      const ExprPtr& extra,
      const std::string& path
  );
  ExprPtr array(const Json& schema, const std::string& path);
  ExprPtr string(const Json& schema, const std::string& path);
  ExprPtr integer(const Json& schema, const std::string& path);
  ExprPtr number(const Json& schema, const std::string& path);

  // Of a value of which nothing is said.
  const AnyJson& any_rules();

  // A rule for a schema that stands in several places of an expression.
  ExprPtr rule_of(const Json& schema, const std::string& path);

  // One schema that says what both say; throws where that cannot be written.
  Json merged(const Json& a, const Json& b, const std::string& path);
  // Without $ref and allOf at its top.
  Json plain(const Json& schema, const std::string& path, int depth = 0);
  const Json& target(const std::string& reference, const std::string& path);

  const Json& root_;
  Rules* rules_ = nullptr;
  std::optional<AnyJson> any_;
  std::map<std::string, int> references_;
  std::vector<Waiting> waiting_;
  int depth_ = 0, merges_ = 0;
  std::size_t seen_ = 0;
};

// The types it admits: by "type", else by the keywords it has; kAnyType where
// it has none that belong to a type.
unsigned types_of(const Json& schema, const std::string& path);
unsigned type_of(const Json& value);

// Why a value of one may be a value of the other as well; empty when none can.
std::string overlap(const Json& a, const Json& b);

// A whole number that is not negative, at most `most`; `otherwise` where the
// keyword is absent.
int count_of(
    const Json& schema,
    const char* keyword,
    int otherwise,
    const std::string& path
);

}  // namespace hearth::infer::grammar
