// A model's report as text for people and as JSON for programs.
#include <fmt/format.h>

#include "hearth/base/units.h"
#include "hearth/cli/model/model_report.h"

namespace hearth::cli {
namespace {

std::string line(std::string_view name, const std::string& value) {
  return fmt::format("{:<14}{}\n", name, value);
}

std::string architecture_text(const io::ModelFacts& f) {
  std::string out = line(
      "architecture", fmt::format("{} ({})", f.architecture, f.model_type)
  );
  out += line(
      "layers",
      fmt::format("{} of width {}, feed-forward {}", f.layers, f.hidden, f.ffn)
  );
  out += line(
      "attention",
      fmt::format(
          "{} heads of {}, {} for keys and values{}", f.heads, f.head_dim,
          f.kv_heads,
          f.sliding_window > 0 ? fmt::format(", window {}", f.sliding_window)
                               : ""
      )
  );
  if (f.rope_theta > 0) {
    out += line(
        "rope", fmt::format(
                    "theta {}{}{}", f.rope_theta,
                    f.rope_scaling.empty() ? "" : ", scaling ", f.rope_scaling
                )
    );
  }
  out += line("context", fmt::format("{} tokens", f.context));
  out += line(
      "vocabulary",
      fmt::format("{}{}", f.vocab, f.tied ? ", head tied to the embedding" : "")
  );
  return out;
}

std::string tokenizer_text(const ModelReport& report) {
  if (!report.tokenizer) return line("tokenizer", "none");
  const TokenizerFacts& t = *report.tokenizer;
  const auto id = [](std::optional<std::int32_t> value) {
    return value ? std::to_string(*value) : std::string("none");
  };
  return line(
             "tokenizer", fmt::format(
                              "{} {}, {} tokens, bos {}, eos {}", t.format,
                              t.kind, t.vocab_size, id(t.bos), id(t.eos)
                          )
         ) +
         line("template", report.has_template ? "yes" : "none");
}

Json tokenizer_json(const ModelReport& report) {
  if (!report.tokenizer) return nullptr;
  const TokenizerFacts& t = *report.tokenizer;
  return {
      {"format", t.format},
      {"model", t.kind},
      {"vocab_size", t.vocab_size},
      {"id_limit", t.id_limit},
      {"bos", t.bos ? Json(*t.bos) : Json(nullptr)},
      {"eos", t.eos ? Json(*t.eos) : Json(nullptr)}
  };
}

Json facts_json(const io::ModelFacts& f) {
  const auto known = [](std::int64_t value) {
    return value > 0 ? Json(value) : Json(nullptr);
  };
  return {
      {"architecture", f.architecture},
      {"model_type", f.model_type},
      {"dtype", f.dtype.empty() ? Json(nullptr) : Json(f.dtype)},
      {"layers", known(f.layers)},
      {"hidden", known(f.hidden)},
      {"ffn", known(f.ffn)},
      {"heads", known(f.heads)},
      {"kv_heads", known(f.kv_heads)},
      {"head_dim", known(f.head_dim)},
      {"vocab", known(f.vocab)},
      {"context", known(f.context)},
      {"sliding_window", known(f.sliding_window)},
      {"rope_theta", f.rope_theta > 0 ? Json(f.rope_theta) : Json(nullptr)},
      {"rope_scaling",
       f.rope_scaling.empty() ? Json(nullptr) : Json(f.rope_scaling)},
      {"tied", f.tied},
      {"quant_bits", known(f.quant_bits)},
      {"quant_group", known(f.quant_group)}
  };
}

}  // namespace

Json report_json(const ModelReport& report, bool with_tensors) {
  Json out = {{"model", report.path}, {"format", report.format}};
  const Json facts = facts_json(report.facts);
  for (const auto& [key, value] : facts.items()) out[key] = value;
  out["parameters"] = report.parameters;
  Json types = Json::object();
  for (const auto& [name, share] : report.types) {
    types[name] = {
        {"tensors", share.tensors},
        {"parameters", share.parameters},
        {"bytes", share.bytes}
    };
  }
  out["types"] = types;
  out["disk_bytes"] = report.disk_bytes;
  out["memory_bytes"] = report.memory_bytes;
  out["kv_bytes_per_token"] = report.facts.kv_bytes_per_token();
  out["tokenizer"] = tokenizer_json(report);
  out["chat_template"] = report.has_template;
  out["non_finite"] = report.checked ? Json(report.non_finite) : Json(nullptr);
  out["warnings"] = report.warnings;
  if (!with_tensors) return out;
  Json tensors = Json::array();
  for (const io::TensorInfo& t : report.tensors) {
    tensors.push_back({
        {"name", t.name},
        {"type", io::name_of(t.type)},
        {"shape", t.shape},
        {"bytes", t.bytes},
        {"file", t.file},
        {"offset", t.offset},
    });
  }
  out["tensors"] = std::move(tensors);
  return out;
}

std::string report_text(const ModelReport& report, bool with_tensors) {
  std::string out = line("model", report.path);
  out += line("format", report.format);
  out += architecture_text(report.facts);
  out += line(
      "parameters",
      fmt::format(
          "{} ({})", format_count(static_cast<double>(report.parameters)),
          report.parameters
      )
  );
  for (const auto& [name, share] : report.types) {
    out += line(
        "  " + name, fmt::format(
                         "{} in {} tensors, {}",
                         format_count(static_cast<double>(share.parameters)),
                         share.tensors, format_bytes(share.bytes)
                     )
    );
  }
  out += line(
      "weights",
      fmt::format(
          "{} on disk, {} in memory as they are, {} as bf16",
          format_bytes(report.disk_bytes), format_bytes(report.memory_bytes),
          format_bytes(2 * report.parameters)
      )
  );
  const std::uint64_t each = report.facts.kv_bytes_per_token();
  out += line(
      "KV cache",
      fmt::format(
          "{} bytes a token in bf16, {} for the whole context", each,
          format_bytes(each * static_cast<std::uint64_t>(report.facts.context))
      )
  );
  out += tokenizer_text(report);
  if (report.checked) {
    out += line(
        "weights are", report.non_finite == 0 ? "all finite" : "not finite"
    );
  }
  for (const std::string& text : report.warnings)
    out += "warning: " + text + "\n";
  if (!with_tensors) return out;
  out += "\n";
  for (const io::TensorInfo& t : report.tensors) {
    out += fmt::format(
        "{:<5} {:<16} {}\n", io::name_of(t.type),
        fmt::format("[{}]", fmt::join(t.shape, ", ")), t.name
    );
  }
  return out;
}

}  // namespace hearth::cli
