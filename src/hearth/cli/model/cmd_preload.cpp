// hearth preload: a model looked through, packed for this machine's kernels,
// kept, and tried, so that the next start maps it.
#include <ctime>

#include <fmt/format.h>

#include "hearth/base/clock.h"
#include "hearth/base/env.h"
#include "hearth/base/error.h"
#include "hearth/base/units.h"
#include "hearth/cli/infer/first_words.h"
#include "hearth/cli/interrupt.h"
#include "hearth/cli/model/model_flags.h"
#include "hearth/models/packed_cache.h"
#include "hearth/models/quant_target.h"

namespace hearth::cli {
namespace {

using models::PackedCache;

struct PreloadFlags {
  ModelFlags model;
  std::int64_t max_gb = 0;
  bool list = false, clean = false;
};

void declare(Args& args, PreloadFlags& f) {
  f.model.declare_optional(args);
  args.option(
      "--max-gb", f.max_gb,
      "Keep at most so much; what was not used for longest goes. 0: a quarter "
      "of the disk"
  );
  args.flag("--list", f.list, "What is kept, last used first");
  args.flag("--clean", f.clean, "Remove everything that is kept");
  args.example(
      "hearth preload model/", "check it, pack it, try it; later starts map it"
  );
  args.example(
      "hearth preload model/ --quant 4",
      "the same in 4 bits, for hearth generate model/ --quant 4"
  );
  args.example("hearth preload --list", "what is kept, and how large it is");
  args.example("hearth preload --clean", "remove it all");
}

std::string date_of(std::int64_t seconds) {
  const auto t = static_cast<std::time_t>(seconds);
  std::tm parts{};
  gmtime_r(&t, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M", &parts);
  return text;
}

void list(const Context& context, const PackedCache& cache) {
  Json document = {{"folder", cache.folder()}};
  document["kept"] = Json::array();
  std::string text;
  std::size_t total = 0;
  for (const auto& one : cache.list()) {
    total += one.bytes;
    document["kept"].push_back(
        {{"path", one.path},
         {"model", one.model},
         {"variant", one.variant},
         {"bytes", one.bytes},
         {"used", date_of(one.used)},
         {"unfinished", one.unfinished}}
    );
    text += fmt::format(
        "{:>10}  {}  {:<6}  {}\n", format_bytes(one.bytes), date_of(one.used),
        one.variant.is_object() ? one.variant.value("quant", "?") : "?",
        one.unfinished      ? one.path + " (unfinished)"
        : one.model.empty() ? one.path + " (cannot be read)"
                            : one.model
    );
  }
  document["bytes"] = total;
  text += fmt::format("{:>10}  in {}\n", format_bytes(total), cache.folder());
  if (context.common.json) return context.json("hearth.preload/1", document);
  context.print(text);
}

constexpr int kTried = 8;  // tokens

void check_interrupt() {
  InterruptGuard::check("interrupted: nothing was kept");
}

struct Preloaded {
  std::string path, content, how;
  std::size_t model_bytes = 0, packed_bytes = 0;
  double hash_ms = 0, load_ms = 0, write_ms = 0, packed_ms = 0;
  std::vector<std::string> kept_dense;
  std::vector<std::int32_t> ids;
  std::string text;
};

Preloaded preload(
    const Context& context,
    const PreloadFlags& flags,
    const PackedCache& cache
) {
  Preloaded out;
  std::vector<std::int32_t> plain_ids;
  {
    ModelFlags fresh = flags.model;
    fresh.packed = false;
    const auto model = fresh.load(context, &out.load_ms);
    if (!ops::on_cpu({})) {
      throw UsageError(
          "weights are packed for CPU kernels; a GPU needs no preloading",
          "--device cpu packs them all the same"
      );
    }
    check_interrupt();
    plain_ids = first_words(model, kTried).ids;
    out.kept_dense = model.model.report.kept_dense;
    out.how = model.model.report.how;
    double start = milliseconds_now();
    std::optional<Progress> bar;
    const auto& source = *model.model.source;
    const auto content = models::content_hash(
        source, io::ReadMode::mapped, [&](std::size_t done, std::size_t total) {
          check_interrupt();
          if (!bar && milliseconds_now() - start < 1000) return;
          if (!bar) bar.emplace(Progress::Options{"hashing", "B", total});
          bar->update(done);
        }
    );
    bar.reset();
    out.content = content.hex();
    out.hash_ms = milliseconds_now() - start;
    for (const auto& t : source.tensors()) out.model_bytes += t.bytes;
    start = milliseconds_now();
    const Json variant =
        models::packed_variant(model.model.options, model.model.compute);
    out.path = cache.store(
        model.model, variant, content,
        static_cast<std::size_t>(flags.max_gb) * 1'000'000'000, check_interrupt
    );
    out.write_ms = milliseconds_now() - start;
  }
  ModelFlags again = flags.model;
  again.warns = false;
  const auto packed = again.load(context, &out.packed_ms);
  if (packed.model.report.how != "packed cache") {
    throw CheckFailed("the packed weights were written but are not used");
  }
  out.packed_bytes = packed.model.report.bytes;
  out.ids = first_words(packed, kTried).ids;
  if (packed.tokenizer) out.text = packed.tokenizer->decode(out.ids);
  if (out.ids != plain_ids) {
    throw CheckFailed(
        "the packed weights give another text than the model itself",
        "hearth preload --clean, and again; hearth doctor looks at the machine"
    );
  }
  return out;
}

Json to_json(const Preloaded& p, const std::string& quant) {
  return {
      {"path", p.path},
      {"content", p.content},
      {"quant", quant},
      {"model_bytes", p.model_bytes},
      {"packed_bytes", p.packed_bytes},
      {"kept_dense", p.kept_dense},
      {"timing",
       {{"load_ms", p.load_ms},
        {"hash_ms", p.hash_ms},
        {"write_ms", p.write_ms},
        {"packed_load_ms", p.packed_ms}}},
      {"ids", p.ids},
      {"text", p.text}
  };
}

std::string report(const Preloaded& p, const std::string& quant) {
  std::string out = fmt::format(
      "checked  {} in {} ({}), every number finite\n"
      "hashed   {} in {}\n"
      "packed   {}, {}, written in {}\n"
      "kept     {}\n"
      "mapped   in {}, every block verified\n"
      "tried    the same {} tokens as the model itself{}\n",
      format_bytes(p.model_bytes), format_seconds(p.load_ms / 1e3), p.how,
      p.content, format_seconds(p.hash_ms / 1e3), format_bytes(p.packed_bytes),
      quant == "none" ? "as it computes" : quant,
      format_seconds(p.write_ms / 1e3), p.path,
      format_seconds(p.packed_ms / 1e3), p.ids.size(),
      p.text.empty() ? "" : ": " + to_json_line(Json(p.text))
  );
  if (!p.kept_dense.empty()) {
    out += fmt::format(
        "note     {} matrices stay dense, as their rows do not divide into "
        "{}'s blocks: {}{}\n",
        p.kept_dense.size(), quant, p.kept_dense.front(),
        p.kept_dense.size() > 1 ? ", ..." : ""
    );
  }
  return out;
}

}  // namespace

void cmd_preload(Context& context, const std::vector<std::string>& words) {
  PreloadFlags flags;
  Args args(
      "preload",
      "Checks a model, packs it for this machine's kernels, keeps that by its "
      "content's hash, and tries it. Later starts with the same --quant and "
      "--dtype map what is kept.",
      context.common
  );
  declare(args, flags);
  if (!context.parse(args, words)) return;
  const PackedCache cache(packed_folder());
  if (flags.max_gb < 0) throw UsageError("--max-gb must be 0 or more");
  if (flags.list || flags.clean) {
    if (!flags.model.model.empty() || (flags.list && flags.clean)) {
      throw UsageError("give one of MODEL, --list, --clean");
    }
    if (flags.list) return list(context, cache);
    const std::size_t bytes = cache.clean();
    if (context.common.json) {
      return context.json("hearth.preload/1", {{"removed_bytes", bytes}});
    }
    return context.print(
        fmt::format("removed {} from {}\n", format_bytes(bytes), cache.folder())
    );
  }
  if (flags.model.model.empty()) {
    throw UsageError("give a MODEL, --list or --clean");
  }
  if (!flags.model.adapter.empty()) {
    throw UsageError(
        "an adapter is not packed: preload the base, then give --adapter to "
        "generate, chat or serve"
    );
  }
  const std::string quant =
      models::quant_target_name(models::parse_quant_rules(flags.model.quant));
  const InterruptGuard guard;
  const Preloaded done = preload(context, flags, cache);
  if (context.common.json) {
    return context.json("hearth.preload/1", to_json(done, quant));
  }
  context.print(report(done, quant));
}

}  // namespace hearth::cli
