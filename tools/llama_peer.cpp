// llama.cpp as the rival of `hearth bench infer`: runs one model and answers
// line by line, so that it takes turns with ours. Built by
// tools/build_llamacpp.sh; for development, no part of Hearth.
//
//   clear               forgets everything
//   prefill N           N tokens of a prompt from position 0, one row of logits
//   fill N B            the same without logits, for B sequences
//   decode N B          N steps of B sequences, one token each
//   rewind N B          B sequences back to N tokens
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "llama.h"

namespace {

class Peer {
 public:
  Peer(const char* path, int threads, bool flash) {
    llama_model_params m = llama_model_default_params();
    m.n_gpu_layers = 0;
    model_ = llama_model_load_from_file(path, m);
    if (model_ == nullptr) return;
    llama_context_params c = llama_context_default_params();
    c.n_ctx = 8 * 1024, c.n_batch = c.n_ubatch = kBatch, c.n_seq_max = 8;
    c.n_threads = c.n_threads_batch = threads;
    c.kv_unified = true;
    c.flash_attn_type =
        flash ? LLAMA_FLASH_ATTN_TYPE_ENABLED : LLAMA_FLASH_ATTN_TYPE_DISABLED;
    context_ = llama_init_from_model(model_, c);
    vocabulary_ = llama_vocab_n_tokens(llama_model_get_vocab(model_));
    batch_ = llama_batch_init(kBatch, 0, 1);
  }
  bool ready() const { return context_ != nullptr; }

  bool obey(const std::string& line) {
    char what[16] = "";
    int n = 0, b = 1;
    if (std::sscanf(line.c_str(), "%15s %d %d", what, &n, &b) < 1) return false;
    if (std::strcmp(what, "clear") == 0) {
      llama_memory_clear(llama_get_memory(context_), true);
      return true;
    }
    if (std::strcmp(what, "prefill") == 0) return prompt(n, 0, true);
    if (std::strcmp(what, "fill") == 0) {
      for (int s = 0; s < b; ++s) {
        if (!prompt(n, s, false)) return false;
      }
      at_ = n;
      return true;
    }
    if (std::strcmp(what, "decode") == 0) return decode(n, b);
    if (std::strcmp(what, "rewind") != 0) return false;
    for (int s = 0; s < b; ++s) {
      llama_memory_seq_rm(llama_get_memory(context_), s, n, -1);
    }
    at_ = n;
    return true;
  }

 private:
  static constexpr int kBatch = 512;
  llama_model* model_ = nullptr;
  llama_context* context_ = nullptr;
  llama_batch batch_{};
  int vocabulary_ = 0, at_ = 0;
  std::mt19937 random_{7};

  void add(int position, int sequence, bool logits) {
    const int i = batch_.n_tokens++;
    batch_.token[i] = static_cast<int>(random_() % unsigned(vocabulary_));
    batch_.pos[i] = position;
    batch_.n_seq_id[i] = 1;
    batch_.seq_id[i][0] = sequence;
    batch_.logits[i] = logits ? 1 : 0;
  }
  bool run() {
    const bool done = llama_decode(context_, batch_) == 0;
    llama_synchronize(context_);
    return done;
  }
  bool prompt(int tokens, int sequence, bool logits) {
    for (int t = 0; t < tokens;) {
      batch_.n_tokens = 0;
      for (int i = 0; i < kBatch && t < tokens; ++i, ++t) {
        add(t, sequence, logits && t + 1 == tokens);
      }
      if (!run()) return false;
    }
    return true;
  }
  bool decode(int steps, int sequences) {
    for (int t = 0; t < steps; ++t, ++at_) {
      batch_.n_tokens = 0;
      for (int s = 0; s < sequences; ++s) add(at_, s, true);
      if (!run()) return false;
    }
    return true;
  }
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: llama_peer MODEL.gguf THREADS flash|plain\n");
    return 2;
  }
  llama_backend_init();
  Peer peer(argv[1], std::atoi(argv[2]), std::strcmp(argv[3], "flash") == 0);
  if (!peer.ready()) {
    std::puts("{\"absent\": \"llama.cpp cannot load the model\"}");
    return 1;
  }
  std::string isa = llama_print_system_info();
  for (char& c : isa) {
    if (c == '"' || c == '\\' || c == '\n') c = ' ';
  }
  std::printf(
      "{\"name\": \"llama.cpp %s\", \"isa\": \"%s\"}\n", LLAMA_PEER_VERSION,
      isa.c_str()
  );
  std::fflush(stdout);
  char line[128];
  while (std::fgets(line, sizeof line, stdin) != nullptr) {
    std::puts(peer.obey(line) ? "done" : "failed");
    std::fflush(stdout);
  }
  return 0;
}
