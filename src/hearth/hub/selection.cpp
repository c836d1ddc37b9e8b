#include "hearth/hub/selection.h"

#include <algorithm>

#include <fmt/format.h>
#include <fnmatch.h>

#include "hearth/base/error.h"
#include "hearth/base/quoted.h"
#include "hearth/base/units.h"

namespace hearth::hub {
namespace {

using Files = std::vector<RemoteFile>;

bool any_matches(
    const std::vector<std::string>& globs,
    const std::string& name
) {
  return std::ranges::any_of(globs, [&](const std::string& glob) {
    return glob_matches(glob, name);
  });
}

bool at_top(const std::string& name) {
  return name.find('/') == name.npos;
}

// Config, tokenizer and templates.
bool is_text_side(const std::string& name) {
  static const std::vector<std::string> kGlobs = {
      "*.json", "*.jinja", "*.model", "*.tiktoken", "merges.txt", "vocab.txt"
  };
  return name.starts_with("additional_chat_templates/")
             ? name.ends_with(".jinja")
             : at_top(name) && any_matches(kGlobs, name);
}

// The names transformers gives a model's own weights: a copy under another
// name beside them (consolidated.safetensors, model.fp16.safetensors) is
// theirs once more.
bool is_standard_weight(const std::string& name) {
  return name == "model.safetensors" ||
         glob_matches("model-*-of-*.safetensors", name);
}

bool is_pickle(const std::string& name) {
  static const std::vector<std::string> kGlobs = {
      "*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl"
  };
  return any_matches(kGlobs, name);
}

template <class Predicate>
Files filter(const Files& files, Predicate wanted) {
  Files out;
  std::ranges::copy_if(files, std::back_inserter(out), [&](const auto& file) {
    return wanted(file.name);
  });
  return out;
}

[[noreturn]] void refuse_many(const Files& gguf, const std::string& model) {
  constexpr std::size_t kShown = 12;
  std::vector<std::string> names;
  for (const auto& file : gguf) {
    if (names.size() == kShown) break;
    names.push_back(in_quotes(file.name));
  }
  throw UsageError(
      fmt::format(
          "{} has {} GGUF files and one must be named: {}{}", model,
          gguf.size(), fmt::join(names, ", "),
          gguf.size() > kShown ? ", ..." : ""
      ),
      fmt::format("hearth pull {}/{}", model, gguf.front().name)
  );
}

// The weights once. Parts of one split GGUF file count as one.
Files default_weights(const Files& files, const std::string& model) {
  Files top = filter(files, [](const std::string& name) {
    return at_top(name) && name.ends_with(".safetensors");
  });
  Files standard = filter(top, is_standard_weight);
  if (!standard.empty()) return standard;
  if (!top.empty()) return top;
  Files gguf = filter(files, [](const std::string& name) {
    return name.ends_with(".gguf");
  });
  if (gguf.size() > 1) refuse_many(gguf, model);
  if (!gguf.empty()) return gguf;
  const Files pickles = filter(files, is_pickle);
  if (!pickles.empty()) {
    throw UsageError(
        fmt::format(
            "{} has its weights only as pickle files ({}), which can run code "
            "when they are read and are not read here",
            model, in_quotes(pickles.front().name)
        ),
        "look for a revision or a copy with safetensors"
    );
  }
  throw UsageError(
      fmt::format("{} has no weights as safetensors or GGUF", model),
      "--all or --include fetches what it has"
  );
}

Files choose(
    const Files& files,
    const Selection& selection,
    const std::string& model
) {
  if (!selection.file.empty()) {
    return filter(files, [&](const std::string& name) {
      return name == selection.file;
    });
  }
  if (selection.all) return files;
  if (!selection.include.empty()) {
    return filter(files, [&](const std::string& name) {
      return any_matches(selection.include, name);
    });
  }
  const Files left = filter(files, [&](const std::string& name) {
    return !any_matches(selection.exclude, name);
  });
  Files out = filter(left, is_text_side);
  std::ranges::copy(default_weights(left, model), std::back_inserter(out));
  return out;
}

}  // namespace

bool glob_matches(const std::string& glob, const std::string& name) {
  return fnmatch(glob.c_str(), name.c_str(), FNM_NOESCAPE) == 0;
}

std::vector<RemoteFile> select_files(
    const std::vector<RemoteFile>& files,
    const Selection& selection,
    const std::string& model
) {
  Files out =
      filter(choose(files, selection, model), [&](const std::string& name) {
        return !any_matches(selection.exclude, name);
      });
  std::ranges::sort(out, {}, &RemoteFile::name);
  if (!out.empty()) return out;
  if (!selection.file.empty()) {
    throw UsageError(
        fmt::format("{} has no file {}", model, in_quotes(selection.file)),
        fmt::format("hearth pull {} --all --dry-run lists its files", model)
    );
  }
  throw UsageError(
      fmt::format(
          "{} has {} files, none of them asked for", model, files.size()
      ),
      fmt::format("hearth pull {} --all --dry-run lists them", model)
  );
}

}  // namespace hearth::hub
