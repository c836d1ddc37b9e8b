// What `io` reads and writes, for tools/check_model_files.py to hold against
// the packages that own the formats.
//
//   dump MODEL FILE      JSON of the model on stdout, all tensors' bytes in
//   FILE
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "hearth/base/error.h"
#include "hearth/base/json.h"
#include "hearth/io/model_source.h"

namespace {

using hearth::Json;

void dump(const std::string& path, const std::string& bytes_path) {
  const auto model = hearth::io::open_model(path);
  std::ofstream out(bytes_path, std::ios::binary);
  Json tensors = Json::array();
  for (const auto& tensor : model->tensors()) {
    const auto data = model->data(tensor);
    out.write(
        reinterpret_cast<const char*>(data.bytes.data()),
        static_cast<std::streamsize>(data.bytes.size())
    );
    tensors.push_back({
        {"name", tensor.name},
        {"type", hearth::io::name_of(tensor.type)},
        {"shape", tensor.shape},
        {"bytes", data.bytes.size()},
        {"transposed", tensor.transposed},
    });
  }
  const Json all = {
      {"config", model->config()},
      {"generation_config", model->generation_config()},
      {"tensors", tensors}
  };
  std::puts(hearth::to_json_text(all).c_str());
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  try {
    if (words.size() == 3 && words[0] == "dump") {
      dump(words[1], words[2]);
      return 0;
    }
    std::fputs("usage: dump MODEL FILE\n", stderr);
    return 2;
  } catch (const hearth::Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
