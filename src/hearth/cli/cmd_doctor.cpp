#include "hearth/cli/command.h"
namespace hearth::cli {
void cmd_doctor(Context&, const std::vector<std::string>&) {}
void cmd_bench(Context&, const std::vector<std::string>&) {}
}
