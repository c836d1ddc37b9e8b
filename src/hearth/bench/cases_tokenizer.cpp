// Tokenizers on one core: encoding, decoding, loading. The peer is Hugging
// Face's package, in Python.
#include <filesystem>

#include <unistd.h>

#include <fmt/format.h>

#include "hearth/base/atomic_file.h"
#include "hearth/base/error.h"
#include "hearth/base/mapped_file.h"
#include "hearth/base/random.h"
#include "hearth/bench/cases.h"
#include "hearth/bench/python_peer.h"
#include "hearth/data/synth/synth.h"
#include "hearth/text/tokenizer/bpe_trainer.h"
#include "hearth/text/tokenizer/byte_alphabet.h"
#include "hearth/text/tokenizer/tokenizer.h"
#include "hearth/text/tokenizer/tokenizer_cache.h"
#include "hearth/text/tokenizer/utf8.h"

namespace hearth::bench {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kTextBytes = std::size_t{2} << 20;

constexpr const char* kPeerScript = R"~~(
import os, sys
os.environ["TOKENIZERS_PARALLELISM"] = "false"
try:
    import tokenizers
    tok = tokenizers.Tokenizer.from_file(sys.argv[1])
except Exception:
    print("absent", flush=True)
    sys.exit()
text = open(sys.argv[2], encoding="utf-8", errors="replace").read()
ids = tok.encode(text, add_special_tokens=False).ids
print("tokenizers", tokenizers.__version__, flush=True)
for line in sys.stdin:
    what = line.strip()
    if what == "clear":
        tok.model._clear_cache()
    elif what == "encode":
        tok.encode_batch_fast([text], add_special_tokens=False)
    elif what == "decode":
        tok.decode(ids, skip_special_tokens=False)
    elif what == "load":
        tokenizers.Tokenizer.from_file(sys.argv[1])
    print("ok", flush=True)
)~~";

// Files that go away with their last user.
class Scratch {
 public:
  Scratch()
      : folder_(
            fs::temp_directory_path() /
            fmt::format("hearth_bench_tokenizer_{}", ::getpid())
        ) {
    fs::create_directories(folder_);
  }
  ~Scratch() { fs::remove_all(folder_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  std::string operator/(const char* name) const {
    return (folder_ / name).string();
  }

 private:
  fs::path folder_;
};

// What the cases share, made when the first of them runs.
struct Material {
  Scratch scratch;
  std::string text, text_file, tokenizer_file, large_file;
  std::shared_ptr<const text::Tokenizer> tokenizer;
};

std::string stories(std::uint64_t seed) {
  std::string out, line;
  for (std::uint64_t i = 0; out.size() < kTextBytes; ++i) {
    line.clear();
    data::append_synth_record(data::SynthKind::kStories, seed, i, line);
    out += parse_json(line, "record").at("text").get<std::string>() + "\n\n";
  }
  out.resize(kTextBytes);
  return out;
}

// As large as the vocabularies of today, for loading alone: each token past the
// bytes joins two earlier ones.
std::string large_tokenizer(std::uint64_t seed) {
  constexpr std::size_t kTokens = 150000;
  RandomStream random(RandomKey(seed).fold("bench.tokenizer"));
  text::Vocabulary known;
  std::vector<std::string> tokens;
  std::string vocabulary, merges;
  const auto add = [&](const std::string& token) {
    const auto id = static_cast<std::int32_t>(tokens.size());
    known.add(token, id);
    tokens.push_back(token);
    vocabulary +=
        fmt::format("{}{}:{}", id ? "," : "", to_json_line(Json(token)), id);
  };
  for (int b = 0; b < 256; ++b) {
    std::string spelling;
    text::append_utf8(
        spelling, text::byte_to_character(static_cast<unsigned char>(b))
    );
    add(spelling);
  }
  while (tokens.size() < kTokens) {
    const std::string& left = tokens[random.below(tokens.size())];
    const std::string& right = tokens[random.below(tokens.size())];
    const std::string joined = left + right;
    if (joined.size() > 16 || known.find(joined) >= 0) continue;
    merges += fmt::format(
        "{}[{},{}]", merges.empty() ? "" : ",", to_json_line(Json(left)),
        to_json_line(Json(right))
    );
    add(joined);
  }
  return fmt::format(
      R"({{"added_tokens":[],"normalizer":null,"pre_tokenizer":{{"type":)"
      R"("ByteLevel","add_prefix_space":false,"trim_offsets":true,)"
      R"("use_regex":true}},"post_processor":null,"decoder":{{"type":)"
      R"("ByteLevel","add_prefix_space":false,"trim_offsets":true,)"
      R"("use_regex":true}},"model":{{"type":"BPE","vocab":{{{}}},)"
      R"("merges":[{}]}}}})",
      vocabulary, merges
  );
}

std::shared_ptr<Material> make_material(const CaseContext& context) {
  auto m = std::make_shared<Material>();
  m->text = context.text.empty() ? stories(context.seed)
                                 : read_text_file(context.text);
  m->text_file = m->scratch / "text.txt";
  write_file_atomically(m->text_file, m->text);
  if (context.tokenizer.empty()) {
    text::BpeTrainer trainer({.vocab_size = 8192});
    trainer.add_file(m->text_file);
    m->tokenizer_file = m->scratch / "tokenizer.json";
    write_file_atomically(m->tokenizer_file, trainer.train());
    m->large_file = m->scratch / "large.json";
    write_file_atomically(m->large_file, large_tokenizer(context.seed));
  } else {
    const fs::path given(context.tokenizer);
    m->tokenizer_file = fs::is_directory(given)
                            ? (given / "tokenizer.json").string()
                            : given.string();
    m->large_file = m->tokenizer_file;
  }
  m->tokenizer = text::Tokenizer::load(m->tokenizer_file);
  return m;
}

using Shared = std::function<std::shared_ptr<Material>()>;

// The material is made when a case that was chosen needs it.
Shared shared_material(const CaseContext& context) {
  return [context, made = std::make_shared<std::shared_ptr<Material>>()] {
    if (!*made) *made = make_material(context);
    return *made;
  };
}

void add_peer(
    BenchCase& c,
    const CaseContext& context,
    const Shared& material,
    bool large,
    const std::string& command,
    const std::string& before
) {
  if (!context.with_peers) return;
  c.peer_name = "HF tokenizers";
  c.prepare_peer = [=] {
    const auto m = material();
    const auto peer = PythonPeer::start(
        kPeerScript, {large ? m->large_file : m->tokenizer_file, m->text_file}
    );
    if (!peer) return Timed();
    std::function<void()> untimed;
    if (!before.empty()) untimed = [peer, before] { peer->ask(before); };
    return Timed([peer, command] { peer->ask(command); }, untimed);
  };
}

BenchCase text_case(
    const CaseContext& context,
    const Shared& material,
    const std::string& what,
    bool cold
) {
  const std::string source =
      context.text.empty() ? "stories" : fs::path(context.text).filename();
  BenchCase c;
  const bool encode = what == "encode";
  c.name = fmt::format(
      "tokenizer: {}{}, {}", what, encode ? (cold ? " cold" : " warm") : "",
      source
  );
  c.unit = "MB/s";
  // The size is not known before the material is made, which a list of cases
  // should not have to wait for.
  c.work = static_cast<double>(
      context.text.empty() ? kTextBytes : fs::file_size(context.text)
  );
  c.prepare = [=] {
    const auto m = material();
    if (!encode) {
      const auto ids = m->tokenizer->encode(m->text);
      return Timed([m, ids] { (void)m->tokenizer->decode(ids); });
    }
    std::function<void()> untimed;
    if (cold) untimed = [m] { m->tokenizer->clear_cache(); };
    return Timed(
        [m] {
          std::vector<std::int32_t> ids;
          ids.reserve(m->text.size() / 2);
          m->tokenizer->encode(m->text, ids, {.add_special = false});
        },
        untimed
    );
  };
  add_peer(c, context, material, false, what, cold ? "clear" : "");
  return c;
}

BenchCase load_case(
    const CaseContext& context,
    const Shared& material,
    bool tables
) {
  BenchCase c;
  c.name = tables ? "tokenizer: load from its tables" : "tokenizer: load";
  c.name += context.tokenizer.empty() ? ", 150k tokens" : "";
  c.unit = "loads/s";
  c.work = 1;
  c.prepare = [=] {
    const auto m = material();
    return Timed([m, tables] {
      const MappedFile file(m->large_file);
      if (!tables) {
        (void)text::Tokenizer::from_json(file.text(), m->large_file);
        return;
      }
      const text::Tokenizer loaded(
          text::read_cached_tokenizer_json(
              file.text(), m->large_file, m->scratch / "tables"
          )
      );
    });
  };
  add_peer(c, context, material, true, "load", "");
  return c;
}

}  // namespace

std::vector<BenchCase> tokenizer_cases(const CaseContext& context) {
  const Shared material = shared_material(context);
  return {
      text_case(context, material, "encode", true),
      text_case(context, material, "encode", false),
      text_case(context, material, "decode", false),
      load_case(context, material, false),
      load_case(context, material, true),
  };
}

}  // namespace hearth::bench
