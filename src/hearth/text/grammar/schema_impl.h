#pragma once
// JSON schemas as rules. Every keyword is either obeyed, known to say nothing
// about the value, or, where that is asked for, left out when it cannot be
// held; else it is refused with its name and place.
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hearth/base/effort.h"
#include "hearth/base/json.h"
#include "hearth/text/grammar/expr.h"
#include "hearth/text/grammar/json_parts.h"
#include "hearth/text/grammar/schema_names.h"

namespace hearth::text::grammar {

constexpr const char* kSchemaWho = "[infer.grammar_of_schema]";

// UsageError "who what, at #/place".
[[noreturn]] void fail_schema(std::string_view what, std::string_view path);

// path/name for messages, shortened: names have any length, and every schema
// has a path.
std::string place_in(const std::string& path, std::string_view name);
std::string place_in(const std::string& path, const char* list, std::size_t i);

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

// The ends of a range of numbers, as they are written: "-12.5".
struct NumberBounds {
  struct End {
    bool there = false;
    bool excluded = false;
    std::string digits;
  };
  End least, most;
};

class SchemaReader {
 public:
  // Both must outlive the reader. Where it is not strict, what a grammar cannot
  // express is left out.
  SchemaReader(const Json& root, bool strict, Effort& effort)
      : root_(root), strict_(strict), effort_(effort) {}
  // Adds the rules of the schema and of all it refers to; the rule to call.
  // `rules` may have others, and must outlive the reader.
  int read(Rules& rules);

  ExprPtr value(const Json& schema, const std::string& path);

 private:
  struct Waiting {
    int rule;
    const Json* schema;  // in the root
    std::string path;
  };
  // Counts how deep merging goes while it lives.
  class Deeper;

  // Refuses it, or leaves it out where that is wanted.
  void unheld(std::string_view what, std::string_view path) const {
    if (strict_) fail_schema(what, path);
  }
  // Without the keywords nobody knows, where those are left out; nothing where
  // there are none.
  std::optional<Json> without_unknown(
      const Json& schema,
      const std::string& path
  ) const;

  // As newer drafts say it, where 'items' is a list; nothing where it is none.
  std::optional<Json> with_prefix_items(
      const Json& schema,
      const std::string& path
  ) const;
  // A whole number that is not negative; `otherwise` where the keyword is
  // absent, or more than can be held.
  int count_of(
      const Json& schema,
      const char* keyword,
      int otherwise,
      const std::string& path
  ) const;

  ExprPtr typed(const Json& schema, unsigned types, const std::string& path);
  ExprPtr one_type(const Json& schema, JsonType type, const std::string& path);
  ExprPtr branches(const Json& schema, const std::string& path);
  // Throws where two branches of 'oneOf' may hold for one value.
  void check_apart(const std::vector<Json>& branches, const std::string& path);
  // What the discriminator says of a branch.
  Json marked(const Json& discriminator, const Json& branch) const;
  ExprPtr listed(const Json& schema, const std::string& path);
  ExprPtr referred(const Json& schema, const std::string& path);

  ExprPtr object(const Json& schema, const std::string& path);
  ExprPtr members(
      std::vector<std::pair<ExprPtr, bool>> pairs,
      const ExprPtr& extra,
      const std::string& path
  );
  ExprPtr array(const Json& schema, const std::string& path);
  // Whether its parts leave no value; false where that is not plain to see.
  bool holds_nothing(const Json& schema, const std::string& path);
  ExprPtr elements(
      const std::vector<ExprPtr>& first,
      const ExprPtr& item,
      int min,
      int max,
      const std::string& path
  );
  ExprPtr string(const Json& schema, const std::string& path);
  // Null where it cannot be held and that is left out.
  ExprPtr patterned(const std::string& pattern, const std::string& path);
  // whole: only whole numbers are between them.
  NumberBounds bounds_of(
      const Json& schema,
      bool whole,
      const std::string& path
  ) const;
  ExprPtr integer(const Json& schema, const std::string& path);
  ExprPtr number(const Json& schema, const std::string& path);
  // The grammar of a number with 'multipleOf'.
  ExprPtr number_of(const Json& schema, const std::string& path);

  // The rules of a value about which the schema says nothing.
  const AnyJson& any_rules();

  // A rule for a schema that stands in several places of an expression.
  ExprPtr rule_of(const Json& schema, const std::string& path);

  // One schema that says what both say; throws where that cannot be written.
  Json merged(Json a, const Json& b, const std::string& path);
  void merge_keyword(
      Json& into,
      const std::string& name,
      const Json& value,
      const std::string& path
  );
  void merge_properties(Json& mine, const Json& value, const std::string& path);
  void merge_arrays(Json& a, const Json& b, const std::string& path);
  void check_closed(const Json& a, const Json& b, const std::string& path);
  // The schema without $ref and allOf at its top.
  Json plain(const Json& schema, const std::string& path);
  const Json& target(const std::string& reference, const std::string& path);
  const Json* member(const Json& object, const std::string& name);

  const Json& root_;
  const bool strict_;
  Effort& effort_;
  Rules* rules_ = nullptr;
  std::optional<AnyJson> any_;
  std::map<std::string, int> references_;
  std::vector<Waiting> waiting_;
  // Of objects with many members, by which references go.
  std::map<const Json*, Members> members_;
  int depth_ = 0, merge_depth_ = 0, merges_ = 0;
  std::size_t seen_ = 0;
};

// Whether the keyword may stand in a schema without changing what it says.
bool says_nothing(std::string_view keyword);

// The types it admits: by "type", else by the keywords it has; kAnyType where
// it has none that belong to a type.
unsigned types_of(const Json& schema, const std::string& path);
unsigned type_of(const Json& value);

// Why a value of one may be a value of the other as well; empty when none can.
std::string overlap(const Json& a, const Json& b, Effort& effort);

// The values that 'const' or 'enum' list; nothing where neither is there.
std::optional<std::vector<const Json*>> listed_values(const Json& schema);

}  // namespace hearth::text::grammar
