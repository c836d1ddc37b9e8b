#pragma once
// What records look like, told by the names of their fields: a row of one
// table for each form that people's data has. To add a form, add its row in
// dataset_shape.cpp, and its example to docs/data.md, which the tests read.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "hearth/data/read/dataset.h"

namespace hearth::data {

// What a field is used as.
enum class FieldUse {
  kText,
  kPrompt,      // a text, or messages that carry no loss
  kInput,       // what a prompt is about; follows it
  kCompletion,  // a text or messages
  kSystem,      // a system message of its own
  kChat,        // messages
  kRequest,     // an object with messages and tools
  kTools,
  kChosen,  // a text, a message, or messages
  kRejected,
  kLabel,  // whether the completion is a wanted one
};

struct ShapeField {
  FieldUse use;
  std::string name;
  bool needed = true;
};

struct RecordShape {
  std::string name;  // what people call it
  std::vector<ShapeField> fields;

  bool has(FieldUse use) const;
  // "Alpaca: instruction + input → prompt, output → completion", of the fields
  // whose bits are set. Empty where each is called what it is used as.
  std::string line(std::uint32_t present) const;
};

// All of them, in the order in which they are tried: those of the given names
// first.
std::vector<RecordShape> record_shapes(const RecordFields& names);

// Whether some form has a field of this name without which an answer lacks what
// it answers to: a prompt, a system message, a chat, a pair.
bool is_known_field(std::string_view name);

// The setting that may read such a record: "data.fields={prompt: question,
// completion: answer}". Empty where the names give no hint.
std::string guess_fields(const std::vector<std::string>& texts);

}  // namespace hearth::data
