#pragma once
// The syntax tree of a template. Positions are byte offsets into the source
// with normalised newlines; a name is also a number, for quick lookup.
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "hearth/text/template/value.h"

namespace hearth::text::jinja {

struct Expr;
struct Stmt;
using ExprPtr = std::unique_ptr<Expr>;
using StmtPtr = std::unique_ptr<Stmt>;
using Block = std::vector<StmtPtr>;

enum class ExprKind : std::uint8_t {
  kConstant,   // constant
  kName,       // text, id
  kNamespace,  // text, id, attribute in `extra`: a target of set only
  kList,
  kTuple,
  kDict,       // key, value, key, value ...
  kAttribute,  // items[0].text
  kItem,       // items[0][items[1]]
  kSlice,      // items[0][items[1]:items[2]:items[3]], absent ones null
  kCall,       // items[0](items[1:], named, star, double_star)
  kFilter,     // items[0] (null in a filter block) | text(items[1:], ...)
  kTest,       // items[0] is text(items[1:], ...)
  kBinary,     // items[0] text items[1]
  kConcat,     // items joined by ~
  kCompare,    // items[0] operators[0] items[1] operators[1] items[2] ...
  kAnd,
  kOr,
  kNot,
  kNegate,
  kPlus,
  kCondition,  // items[1] if items[0] else items[2] (may be null)
};

struct Expr {
  ExprKind kind;
  std::uint32_t offset;
  int id = -1;
  int depth = 1;
  std::string text;
  std::string extra;
  Value constant;
  std::vector<ExprPtr> items;
  std::vector<std::pair<std::string, ExprPtr>> named;
  std::vector<std::string> operators;
  ExprPtr star, double_star;
};

enum class StmtKind : std::uint8_t {
  kOutput,       // exprs, each printed
  kIf,           // exprs are the tests, blocks their bodies, then the else
  kFor,          // target, exprs: iterable, test (may be null); body, else
  kSet,          // target, exprs[0]
  kSetBlock,     // target, exprs[0]: filter or null; body
  kMacro,        // name, parameters; body
  kCallBlock,    // exprs[0]: the call, parameters; body
  kFilterBlock,  // exprs[0]; body
  kWith,         // targets in parameters' order: exprs; body
  kGeneration,   // body
  kScope,        // body in a scope of its own
  kBreak,
  kContinue,
};

struct MacroParameter {
  std::string name;
  int id;
  ExprPtr otherwise;
};

struct Stmt {
  StmtKind kind;
  std::uint32_t offset;
  int id = -1;
  std::string name;
  // Which of the special names a macro's body mentions.
  bool uses_caller = false, uses_varargs = false, uses_kwargs = false;
  ExprPtr target;
  std::vector<ExprPtr> targets;
  std::vector<ExprPtr> exprs;
  std::vector<MacroParameter> parameters;
  std::vector<Block> blocks;
};

struct Tree {
  std::string source;  // with normalised newlines
  std::vector<std::string> names;
  Block body;
  bool has_generation = false;
};

// Line and column, from 1; columns count code points.
std::pair<int, int> position_of(const Tree& tree, std::uint32_t offset);

Tree parse_template(std::string_view source);

}  // namespace hearth::text::jinja
