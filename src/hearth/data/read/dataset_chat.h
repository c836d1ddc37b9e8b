#pragma once
// Messages as people's data has them, turned into the form that chat templates
// read: role and content, calls with arguments as objects, "train": false where
// there is to be no loss.
#include <map>
#include <string>
#include <string_view>

#include "hearth/base/json.h"

namespace hearth::data {

// What a role is called in the data, and what a template calls it.
using RoleNames = std::map<std::string, std::string>;

// Each message is {role, content} or {from, value}, or a bare text where user
// and assistant take turns. Throws FormatError: each of "FIELD" must ...
Json read_chat(Json list, const RoleNames& roles, std::string_view field);

// A list of function schemas, also as the text of one; null for a blank text.
Json read_tools(Json tools, std::string_view field);

// A message, and the mark that none of these carries loss.
Json chat_message(const char* role, std::string content);
void without_loss(Json& messages);
// A system message goes first, where the chat has none yet.
void add_system(Json& messages, const std::string& system);

}  // namespace hearth::data
