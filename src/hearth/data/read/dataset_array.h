#pragma once
// Where the records of a JSON file begin that is one list of them, alone or as
// a member of an object: [{...}, ...] or {"version": 1, "data": [{...}, ...]}.
#include <cstddef>
#include <optional>
#include <string_view>

#include "hearth/data/read/dataset.h"

namespace hearth::data {

// The place of the list's bracket; nothing when the text, a file's beginning,
// is none of these.
std::optional<std::size_t> list_of_records(
    std::string_view text,
    const RecordFields& fields
);

// What is wrong with what follows that list, to the end of the file; empty when
// nothing is: blank after a list, and members that hold no records after a
// member.
std::string wrong_after_list(std::string_view rest, bool member);

}  // namespace hearth::data
