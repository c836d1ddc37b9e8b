#include "hearth/cli/command.h"
namespace hearth::cli {
void cmd_data_synth(Context&, const std::vector<std::string>&) {}
}  // namespace hearth::cli
