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
#include "hearth/io/hf_folder_writer.h"
#include "hearth/io/model_source.h"
#include "hearth/io/peft_adapter.h"

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

void copy_model(
    const std::string& path,
    const std::string& out,
    std::uint64_t most
) {
  const auto model = hearth::io::open_model(path);
  std::vector<hearth::io::TensorToWrite> tensors;
  for (const auto& tensor : model->tensors()) {
    tensors.push_back(hearth::io::copy_of(*model, tensor));
  }
  hearth::io::HfFolderOptions options;
  options.shard_bytes = most;
  options.carry_from = path;
  hearth::io::write_hf_folder(
      out, model->config(), model->generation_config(), std::move(tensors),
      options
  );
}

void copy_adapter(const std::string& path, const std::string& out) {
  using hearth::io::PeftAdapter;
  const PeftAdapter in = PeftAdapter::open(path);
  const auto as_is = [&](const hearth::io::TensorInfo& tensor) {
    return hearth::io::tensor_of(
        tensor.name, tensor.type, tensor.shape, in.data(tensor).bytes
    );
  };
  std::vector<hearth::io::PeftModuleToWrite> modules;
  Json scales = Json::object();
  for (const auto& module : in.modules()) {
    modules.push_back({module.name, as_is(module.a), as_is(module.b), {}});
    if (module.magnitude) modules.back().magnitude = as_is(*module.magnitude);
    scales[module.name] = in.config().scale_of(module.name);
  }
  std::vector<hearth::io::TensorToWrite> saved;
  for (const auto& tensor : in.saved()) saved.push_back(as_is(tensor));
  hearth::io::write_peft_adapter(out, in.config(), modules, saved);
  std::puts(hearth::to_json_text(scales).c_str());
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  try {
    if (words.size() == 3 && words[0] == "dump") {
      dump(words[1], words[2]);
    } else if (words.size() == 4 && words[0] == "copy") {
      copy_model(words[1], words[2], std::stoull(words[3]));
    } else if (words.size() == 3 && words[0] == "adapter") {
      copy_adapter(words[1], words[2]);
    } else {
      std::fputs("usage: dump | copy | adapter\n", stderr);
      return 2;
    }
    return 0;
  } catch (const hearth::Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
