#pragma once
// The splits of a data set by its files' names.
#include <string>
#include <vector>

#include "hearth/data/read/dataset.h"

namespace hearth::data {

// Where a source has files called train: takes those called valid or test out
// of it. The former become a held-out source, after all others.
void split_folders(std::vector<DataSource>& sources);

// "a.csv and b.png are", "a.csv, b.png, c.png and 9 more are".
std::string list_of_files(const std::vector<std::string>& paths);

}  // namespace hearth::data
