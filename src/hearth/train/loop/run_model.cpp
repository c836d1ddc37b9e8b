#include "hearth/train/loop/run_model.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>

#include <fmt/format.h>

#include "hearth/base/atomic_file.h"
#include "hearth/base/error.h"
#include "hearth/base/shell_word.h"
#include "hearth/io/hf_folder_writer.h"
#include "hearth/models/adapters.h"
#include "hearth/models/save.h"
#include "hearth/text/tokenizer/gguf_tokenizer_files.h"
#include "hearth/train/loop/checkpoint.h"
#include "hearth/train/loop/merged_source.h"
#include "hearth/train/loop/run_source.h"

namespace hearth::train {
namespace {

namespace fs = std::filesystem;

fs::path model_folder(const std::string& run) {
  return fs::path(run) / "model";
}

Json config_with_dtype(const Session& s) {
  Json config = s.model_config;
  config["dtype"] = s.compute == mx::float32 ? "float32" : "bfloat16";
  config.erase("torch_dtype");
  const auto gates = s.model->gates();
  if (!gates.empty()) config["gate"]["step"] = gates.front()->step();
  return config;
}

// Where something else stands, or nothing.
void put_file(const fs::path& path, const std::string& text) {
  std::error_code missing;
  const bool there = fs::is_regular_file(path, missing) &&
                     fs::file_size(path, missing) == text.size();
  if (there && read_text_file(path.string()) == text) return;
  write_file_atomically(path.string(), text);
}

long step_of(const RunReference& r) {
  const auto steps = checkpoint_steps(r.run);
  const auto refuse = [&](const std::string& what) {
    throw UsageError(
        fmt::format("{} {}; it has {}", r.run, what, fmt::join(steps, ", "))
    );
  };
  if (steps.empty()) refuse("must have a checkpoint, but has none yet");
  if (r.which == "best") {
    const auto best = best_checkpoint(r.run);
    if (!best) return steps.back();
    if (std::ranges::find(steps, best->step) == steps.end()) {
      refuse(fmt::format("has no checkpoint of its best step {}", best->step));
    }
    return best->step;
  }
  if (r.which == "last") return steps.back();
  long step = 0;
  const auto& w = r.which;
  const auto end = w.data() + w.size();
  if (std::from_chars(w.data(), end, step).ptr != end) {
    refuse(
        fmt::format("@ must be followed by best, last or a step, got {}", w)
    );
  }
  if (std::ranges::find(steps, step) == steps.end()) {
    refuse(fmt::format("has no checkpoint of step {}", step));
  }
  return step;
}

// What PEFT is to load below the adapter: for a run whose best weights are
// meant, the folder that has them.
std::string base_name(const std::string& from) {
  const auto run = parse_run_reference(from);
  if (!run || run_recipe(run->run).lora) return from;
  const auto best = best_checkpoint(run->run);
  const bool same = best && step_of(*run) == best->step;
  return same ? model_folder(run->run).string() : from;
}

}  // namespace

RunReference at_step(const RunReference& reference) {
  return {reference.run, std::to_string(step_of(reference))};
}

std::string text_of(const RunReference& reference) {
  return reference.run + "@" + reference.which;
}

Recipe run_recipe(const std::string& run) {
  Recipe recipe;
  ConfigReader reader(recipe);
  reader.apply(read_yaml_file((fs::path(run) / "config.yaml").string()));
  return recipe;
}

void describe_model(const Session& s, const std::string& run) {
  const fs::path folder = model_folder(run);
  fs::create_directories(folder);
  remove_unfinished(folder.string());
  // One that is there belongs to the weights beside it.
  if (!fs::exists(folder / "config.json")) {
    write_file_atomically(
        (folder / "config.json").string(), to_json_text(config_with_dtype(s))
    );
  }
  for (const auto& file : data::tokenizer_files(s.data.tokenizer)) {
    if (file.ends_with(".gguf")) {
      for (const auto& [name, text] : text::gguf_tokenizer_files(file)) {
        put_file(folder / name, text);
      }
      continue;
    }
    put_file(folder / fs::path(file).filename(), read_text_file(file));
  }
}

void write_model(const Session& s, const std::string& run) {
  if (s.recipe.lora) {
    return models::save_adapter(
        *s.model, base_name(s.recipe.model.from),
        (fs::path(run) / "adapter").string(), true
    );
  }
  const fs::path folder = model_folder(run);
  io::HfFolderOptions options;
  options.force = true;
  options.carry_from = folder.string();
  io::write_hf_folder(
      folder.string(), config_with_dtype(s),
      s.base ? s.base->generation_config() : Json::object(),
      models::tensors_to_write(*s.model, s.compute), options
  );
}

std::optional<RunReference> parse_run_reference(const std::string& word) {
  RunReference r{word, "best"};
  const std::size_t at = word.rfind('@');
  std::error_code out_of_reach;  // then it is not known to be a run
  if (at != std::string::npos && !fs::exists(word, out_of_reach)) {
    r = {word.substr(0, at), word.substr(at + 1)};
  }
  const bool run =
      fs::is_regular_file(fs::path(r.run) / "config.yaml", out_of_reach) &&
      fs::is_directory(model_folder(r.run), out_of_reach);
  if (!run) return {};
  return r;
}

std::shared_ptr<const io::ModelSource> open_run_source(const RunReference& r) {
  const Recipe recipe = run_recipe(r.run);
  if (recipe.lora) return open_base(recipe.model.from);
  const long step = step_of(r);
  const std::string checkpoint = checkpoint_path(r.run, step);
  auto stands = gate_step(checkpoint);
  // Checkpoints of earlier versions do not tell.
  if (!stands && recipe.model.gate) stands = recipe.model.gate->step + step;
  return std::make_shared<RunSource>(
      model_folder(r.run).string(), checkpoint, stands
  );
}

std::shared_ptr<const io::ModelSource> open_base(const std::string& word) {
  const auto run = parse_run_reference(word);
  if (!run) return io::open_model(word);
  if (!run_recipe(run->run).lora) return open_run_source(*run);
  return std::make_shared<MergedSource>(
      load_run_model(*run, {.use = models::Use::described})
  );
}

models::LoadedModel load_run_model(
    const RunReference& r,
    const models::LoadOptions& options
) {
  const Recipe recipe = run_recipe(r.run);
  models::LoadOptions as_trained = options;
  // Adapters belong to the base they were trained over.
  if (!as_trained.quantize) as_trained.quantize = base_format(recipe);
  auto model = models::load_model(open_run_source(r), as_trained);
  if (!recipe.lora) return model;
  models::attach_adapters(*model.decoder, *model.source, *recipe.lora);
  const auto adapters = model.decoder->parameters().trainable();
  const std::string checkpoint = checkpoint_path(r.run, step_of(r));
  Checkpoint::load(checkpoint).copy_weights(adapters);
  for (nn::Weight* p : adapters) p->trainable = false;
  // They were trained while the base's gates moved on.
  if (const auto stands = gate_step(checkpoint)) {
    for (nn::Gate* gate : model.decoder->gates()) gate->set_step(*stands);
  }
  return model;
}

std::string run_checkpoint(const RunReference& r) {
  return checkpoint_path(r.run, step_of(r));
}

std::string run_tokenizer(const RunReference& r) {
  std::string own = model_folder(r.run).string();
  if (!data::tokenizer_files(own).empty()) return own;
  const Recipe recipe = run_recipe(r.run);
  const YamlNode& named = recipe.data.tokenizer;
  if (named.kind == YamlNode::Kind::kScalar) return named.scalar;
  if (!recipe.model.from.empty()) return recipe.model.from;
  throw FormatError(
      fmt::format("{} must hold the run's tokenizer, got none", own),
      fmt::format("hearth train --resume {} puts it there", shell_word(r.run))
  );
}

}  // namespace hearth::train
