#include "hearth/models/packed_cache.h"

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <map>
#include <set>
#include <tuple>

#include <sys/stat.h>
#include <sys/time.h>

#include <fmt/format.h>

#include "hearth/base/atomic_file.h"
#include "hearth/base/error.h"
#include "hearth/base/temporary_name.h"
#include "hearth/base/units.h"
#include "hearth/io/file_source.h"
#include "hearth/io/slice_reader.h"
#include "hearth/models/held_weights.h"
#include "hearth/models/quant_target.h"
#include "hearth/ops/gemm.h"

namespace hearth::models {
namespace {

namespace fs = std::filesystem;
using State = PackedCache::Found::State;

// Goes up when what packed weights mean changes: the order of gemm's or the
// quantised panels, or which forms of a parameter are held.
constexpr int kLayoutVersion = 1;

constexpr const char* kEnding = ".pack";

bool is_unfinished(const fs::path& path) {
  return is_temporary_name(path.filename().string()) &&
         path.stem().extension() == kEnding;
}

std::string short_hash(const std::string& text) {
  return ContentHash().field(text).digest().hex().substr(0, 16);
}

// The files that a model is read from, as they are now.
Json files_of(const io::ModelSource& source) {
  std::set<std::string> names{config_name(source)};
  names.insert(source.path() + "/generation_config.json");
  names.insert(source.path() + "/model.safetensors.index.json");
  for (const auto& t : source.tensors()) names.insert(t.file);
  Json files = Json::array();
  for (const std::string& name : names) {
    struct stat info{};
    if (stat(name.c_str(), &info) != 0) continue;
#if defined(__APPLE__)
    const auto& time = info.st_mtimespec;
#else
    const auto& time = info.st_mtim;
#endif
    files.push_back(
        {{"name", fs::absolute(name).lexically_normal().string()},
         {"bytes", static_cast<std::int64_t>(info.st_size)},
         {"inode", static_cast<std::uint64_t>(info.st_ino)},
         {"mtime_ns", static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 +
                          time.tv_nsec}}
    );
  }
  return files;
}

// Which of the files is not what it was.
std::string changed_file(const Json& then, const Json& now) {
  for (const Json& file : now) {
    if (std::ranges::find(then, file) == then.end()) {
      return fs::path(file.value("name", "")).filename().string();
    }
  }
  return "a file that is gone";
}

std::string type_name(mx::Dtype type) {
  return type == mx::bfloat16 ? "bf16" : "f32";
}

void write_parameter(io::PackedFileWriter& writer, const nn::Weight& p) {
  io::PackedEntry e{.name = p.name};
  e.shape.assign(p.shape.begin(), p.shape.end());
  for (HeldForm& held : held_forms(p)) {
    e.form = held.form;
    e.type = std::move(held.type);
    writer.add(e, held.bytes);
  }
}

bool storable(const nn::Weight& p) {
  if (!p.filled() || (p.packed() && p.packed()->backward() != nullptr))
    return false;
  return !p.quantized() || p.quantized()->packed();
}

// Of a file that cannot be read nothing is known, and it is listed all the
// same.
void read_about(PackedCache::Listed& one) {
  try {
    const auto file = io::PackedFile::open(one.path);
    one.model = file->about().value("model", "");
    one.variant = parse_json(file->about().value("variant", "{}"), one.path);
  } catch (const std::exception&) {
    one.model.clear();
  }
}

}  // namespace

Json packed_variant(const LoadOptions& options, mx::Dtype compute) {
  const kernels::Table& table = kernels::best();
  const auto& family = ops::gemm_family(
      table, compute == mx::bfloat16 ? kernels::GemmScalar::bf16
                                     : kernels::GemmScalar::f32
  );
  return {
      {"layout", kLayoutVersion},
      {"isa", table.isa},
      {"panel", fmt::format("{}x{}", family.columns, family.depth)},
      {"compute", type_name(compute)},
      {"quant", quant_target_name(options.quantize)},
      {"widened", !options.keep_quantized}
  };
}

Hash128 content_hash(
    const io::ModelSource& source,
    io::ReadMode mode,
    const std::function<void(std::size_t, std::size_t)>& read
) {
  constexpr std::size_t kSlice = std::size_t{4} << 20;
  ContentHash all;
  all.field(to_json_line(source.config()));
  all.field(to_json_line(source.generation_config()));
  std::vector<const io::TensorInfo*> tensors;
  std::size_t total = 0;
  for (const auto& t : source.tensors()) {
    all.field(t.name).field(io::name_of(t.type)).field(t.transposed ? 1u : 0u);
    for (const auto n : t.shape) all.field(static_cast<std::uint64_t>(n));
    tensors.push_back(&t);
    total += t.bytes;
  }
  std::ranges::sort(tensors, [](const auto* a, const auto* b) {
    return std::tie(a->file, a->offset) < std::tie(b->file, b->offset);
  });
  std::vector<io::Slice> slices;
  for (const auto* t : tensors) {
    const std::size_t step = io::is_plain(source, *t) ? kSlice : t->bytes;
    for (std::size_t at = 0; at < t->bytes; at += step) {
      slices.push_back({t, at, std::min(step, t->bytes - at)});
    }
  }
  io::SliceReader reader(source, slices, {.mode = mode});
  std::map<std::string, Hash64> hashes;
  std::size_t done = 0;
  for (const io::Slice& slice : slices) {
    const auto bytes = reader.next();
    hashes[slice.tensor->name].update(bytes.data(), bytes.size());
    done += bytes.size();
    if (read) read(done, total);
  }
  for (const auto& [name, hash] : hashes) all.field(name).field(hash.digest());
  return all.digest();
}

PackedCache::PackedCache(std::string folder) : folder_(std::move(folder)) {}

std::string PackedCache::pack_path(
    const std::string& content,
    const Json& variant
) const {
  return fmt::format(
      "{}/{}-{}.pack", folder_, content, short_hash(to_json_line(variant))
  );
}

std::string PackedCache::name_path(const io::ModelSource& source) const {
  std::string key = fs::absolute(source.path()).lexically_normal().string();
  // A run's folder has many checkpoints.
  if (!source.tensors().empty()) key += "\n" + source.tensors().front().file;
  return fmt::format("{}/names/{}.json", folder_, short_hash(key));
}

PackedCache::Found PackedCache::find(
    const io::ModelSource& source,
    const Json& variant
) const {
  Found found;
  std::error_code ignored;
  const std::string name = name_path(source);
  if (!fs::exists(name, ignored)) return found;
  std::string path;
  try {
    const Json known = parse_json(read_text_file(name), name);
    path = pack_path(known.at("content").get<std::string>(), variant);
    if (!fs::exists(path, ignored)) return found;
    const Json now = files_of(source);
    if (known.at("files") != now) {
      found.state = State::stale;
      found.why = changed_file(known.at("files"), now) +
                  " has changed since it was packed";
      return found;
    }
    const auto file = io::PackedFile::open(path);
    if (file->about().value("variant", "") != to_json_line(variant) ||
        file->about().value("content", "") !=
            known.at("content").get<std::string>()) {
      throw FormatError::at(path, 0, "is not of this model");
    }
    found.file = file;
    found.state = State::ready;
    // When it was last used, for make_room(); only advice.
    utimes(path.c_str(), nullptr);
  } catch (const std::exception& e) {
    found.state = State::broken;
    found.why = e.what();
  }
  return found;
}

bool PackedCache::remember(
    const io::ModelSource& source,
    const Json& variant,
    const Hash128& content
) const {
  fs::create_directories(folder_ + "/names");
  const Json known = {
      {"path", fs::absolute(source.path()).lexically_normal().string()},
      {"content", content.hex()},
      {"files", files_of(source)}
  };
  write_file_atomically(name_path(source), to_json_text(known));
  std::error_code ignored;
  return fs::exists(pack_path(content.hex(), variant), ignored);
}

std::string PackedCache::store(
    const LoadedModel& model,
    const Json& variant,
    const Hash128& content,
    std::size_t limit,
    const std::function<void()>& check
) const {
  const auto parameters = model.decoder->parameters().all();
  for (const nn::Weight* p : parameters) {
    if (storable(*p)) continue;
    throw UsageError(
        "[models.PackedCache] " + p->name +
        " must be loaded for inference on a CPU"
    );
  }
  fs::create_directories(folder_);
  remove_left_over();
  const std::size_t bytes = model.decoder->parameters().bytes();
  const std::size_t room = fs::space(folder_).available;
  constexpr std::size_t kSpare = std::size_t{1} << 30;
  if (room < bytes + std::min(kSpare, bytes)) {
    throw IoError(
        fmt::format(
            "cannot keep packed weights in {}: {} must be free there, {} are",
            folder_, format_bytes(bytes + std::min(kSpare, bytes)),
            format_bytes(room)
        ),
        "hearth preload --clean removes those that are there"
    );
  }
  const std::string path = pack_path(content.hex(), variant);
  io::PackedFileWriter writer(path);
  for (const nn::Weight* p : parameters) {
    check();
    write_parameter(writer, *p);
  }
  check();
  writer.finish(
      {{"model",
        fs::absolute(model.source->path()).lexically_normal().string()},
       {"content", content.hex()},
       {"variant", to_json_line(variant)},
       {"kept_dense", model.report.kept_dense}}
  );
  remember(*model.source, variant, content);
  make_room(path, limit);
  return path;
}

std::vector<PackedCache::Listed> PackedCache::list() const {
  std::vector<Listed> out;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder_, ignored)) {
    Listed one{.path = entry.path().string()};
    one.unfinished = is_unfinished(entry.path());
    if (entry.path().extension() != kEnding && !one.unfinished) continue;
    struct stat info{};
    if (stat(one.path.c_str(), &info) != 0) continue;
    one.bytes = static_cast<std::size_t>(info.st_size);
    one.used = info.st_mtime;
    if (!one.unfinished) read_about(one);
    out.push_back(std::move(one));
  }
  std::ranges::sort(out, [](const Listed& a, const Listed& b) {
    return std::tie(b.used, a.path) < std::tie(a.used, b.path);
  });
  return out;
}

std::size_t PackedCache::clean() const {
  std::size_t bytes = 0;
  std::error_code error;
  const auto remove = [&](const std::string& path) {
    fs::remove_all(path, error);
    if (!error) return;
    throw IoError(
        fmt::format("cannot remove {}: {}", path, error.message()),
        "what is kept there may be used until it is gone"
    );
  };
  for (const Listed& one : list()) {
    remove(one.path);
    bytes += one.bytes;
  }
  remove(folder_ + "/names");
  return bytes;
}

// Whoever still writes has a process, or has written a moment ago where that
// process is not to be seen from here.
void PackedCache::remove_left_over() const {
  constexpr std::int64_t kMoment = 60;
  const auto now = static_cast<std::int64_t>(std::time(nullptr));
  for (const Listed& one : list()) {
    if (!one.unfinished || now - one.used < kMoment) continue;
    if (is_being_written(one.path)) continue;
    std::error_code ignored;
    fs::remove(one.path, ignored);
  }
}

// The ones not used for longest go first; the one just written stays.
void PackedCache::make_room(const std::string& keep, std::size_t limit) const {
  if (limit == 0) limit = fs::space(folder_).capacity / 4;
  std::size_t sum = 0;
  for (const Listed& one : list()) {
    sum += one.bytes;
    if (sum <= limit || one.path == keep || one.unfinished) continue;
    std::error_code ignored;
    fs::remove(one.path, ignored);
    sum -= one.bytes;
  }
}

}  // namespace hearth::models
