#include "hearth/train/plan/pass_memory.h"

#include <algorithm>

namespace hearth::train {
namespace {

using io::Role;
using Id = BufferPool::Id;
constexpr Id kNone = BufferPool::kNone;

struct Stream {
  Id x = kNone, branch = kNone;
};

// What a block keeps for its backward pass.
struct Kept {
  Stream in;  // of a block that is computed again
  Id h1 = kNone, y1 = kNone, out = kNone, lse = kNone;
  std::vector<Id> raw, qkv;  // before the norms of q and k, and as attended
  Id a = kNone, m = kNone;   // before the sandwich's norms
  Id h2 = kNone, y2 = kNone, act = kNone;
  std::vector<Id> gate;      // gate and value
  std::vector<Id> adapters;  // inner activations
  // Of every projection in its order, what its rows are scaled of; kNone
  // without an adapter.
  std::vector<Id> unscaled;
};

class Walk {
 public:
  Walk(BufferPool& pool, const PassShape& s, bool gradients)
      : pool_(pool),
        s_(s),
        m_(s.model),
        tokens_(static_cast<std::size_t>(s.rows * s.length)),
        gradients_(gradients) {}

  void forward() {
    kept_.assign(static_cast<std::size_t>(m_.layers), {});
    inputs_ = {ints(), ints(), ints(), ints(), ints()};
    Stream stream{stream_array(), kNone};
    pool_.op();
    if (!m_.rope) {
      const Id positions = stream_array();
      pool_.op();
      pool_.drop(positions);
      pool_.op();
    }
    for (std::size_t i = 0; i < kept_.size(); ++i) {
      if (again(i)) {
        kept_[i].in = {pool_.hold(stream.x), pool_.hold(stream.branch)};
      }
      stream = block(stream, kept_[i], gradients_ && !again(i));
    }
    final_h_ = stream_array();
    const Id y = wide(m_.dim);
    pool_.drop(stream.x), pool_.drop(stream.branch);
    pool_.op();
    const Id log_probs = ints();
    if (gradients_) {
      dh_ = wide(m_.dim);
    } else {
      pool_.drop(final_h_);
    }
    pool_.drop(y), pool_.drop(log_probs);
    pool_.op();
    if (!gradients_) finish();
  }

  void backward() {
    Stream d = norm_gradient(dh_, final_h_, kNone, true);
    for (std::size_t i = kept_.size(); i-- > 0;) {
      Kept& k = kept_[i];
      if (again(i)) {
        // What ties the second run to the gradients that wait for it, inputs
        // and cotangents, is held until the block's gradients are made; so is
        // one more array, as measuring shows.
        const Id tied[] = {
            pool_.hold(k.in.x), pool_.hold(k.in.branch), pool_.hold(d.x),
            pool_.hold(d.branch), wide(m_.dim)
        };
        Kept now;
        const Stream out = block(k.in, now, true);
        pool_.drop(out.x), pool_.drop(out.branch);
        pool_.op();
        k = now;
        d = block_gradient(d, k, i == 0);
        for (const Id id : tied) pool_.drop(id);
        continue;
      }
      d = block_gradient(d, k, i == 0);
    }
    pool_.drop(d.x);
    pool_.op();
    finish();
  }

 private:
  BufferPool& pool_;
  const PassShape& s_;
  const models::DecoderConfig& m_;
  std::size_t tokens_;
  bool gradients_;
  std::vector<Id> inputs_;
  std::vector<Kept> kept_;
  Id final_h_ = kNone, dh_ = kNone;

  bool again(std::size_t i) const {
    return gradients_ && i < s_.checkpointed.size() && s_.checkpointed[i];
  }
  bool has(Role role) const { return s_.roles.contains(role); }
  Id ints() { return pool_.take(tokens_ * 4); }
  Id stream_array() {
    return pool_.take(tokens_ * static_cast<std::size_t>(m_.dim) * 4);
  }
  Id wide(long n) {
    return pool_.take(tokens_ * static_cast<std::size_t>(n) * s_.element);
  }
  void drop(const std::vector<Id>& ids) {
    for (const Id i : ids) pool_.drop(i);
  }
  void finish() {
    drop(inputs_);
    inputs_.clear();
    pool_.op();
    pool_.op();
  }
  static bool adapted(const std::vector<LinearShape>& l) {
    return std::ranges::any_of(l, [](const auto& x) { return x.rank > 0; });
  }

  // Projections of one buffer that the caller holds, in one op.
  std::vector<Id> together(
      const std::vector<LinearShape>& all,
      Kept& kept,
      bool keep
  ) {
    std::vector<Id> y, inner;
    for (const auto& l : all) y.push_back(wide(l.out));
    for (const auto& l : all) {
      if (l.rank > 0) inner.push_back(wide(l.rank));
    }
    for (const Id i : inner) {
      if (keep) kept.adapters.push_back(pool_.hold(i));
    }
    drop(inner);
    pool_.op();
    return y;
  }
  std::vector<Id> linears(
      const std::vector<LinearShape>& all,
      Kept& kept,
      bool keep
  ) {
    if (s_.joined && gradients_) return together(all, kept, keep);
    std::vector<Id> y;
    for (const auto& l : all) y.push_back(linear(l, kept, keep));
    return y;
  }
  Id linear(const LinearShape& l, Kept& kept, bool keep) {
    if (s_.joined && l.rank > 0) return together({l}, kept, keep)[0];
    const Id y = wide(l.out);
    pool_.op();
    if (l.rank == 0) {
      if (s_.scales_rows && keep) kept.unscaled.push_back(kNone);
      return y;
    }
    if (s_.adapter_noise) {
      const Id noisy = wide(l.in);
      if (keep) kept.adapters.push_back(pool_.hold(noisy));
      pool_.drop(noisy);
      pool_.op();
    }
    const Id inner = wide(l.rank);
    pool_.op();
    const Id up = wide(l.out);
    if (keep) kept.adapters.push_back(pool_.hold(inner));
    pool_.drop(inner);
    pool_.op();
    pool_.drop(up);
    pool_.op();
    return s_.scales_rows ? scaled(y, l.out, kept, keep) : y;
  }
  // The magnitude's gradient needs what it multiplies.
  Id scaled(Id x, long n, Kept& kept, bool keep) {
    const Id y = wide(n);
    if (keep) kept.unscaled.push_back(pool_.hold(x));
    pool_.drop(x);
    pool_.op();
    return y;
  }

  Stream block(Stream in, Kept& kept, bool keep) {
    const auto maybe = [&](Id id, bool needed = true) {
      return keep && needed ? pool_.hold(id) : kNone;
    };
    Id h = in.x;
    Id y = kNone;
    if (in.branch == kNone) {
      y = wide(m_.dim);
    } else {
      h = stream_array();
      y = wide(m_.dim);
      pool_.drop(in.x), pool_.drop(in.branch);
    }
    pool_.op();
    kept.h1 = maybe(h, s_.trained || in.branch != kNone);
    kept.y1 = maybe(y, s_.trained || adapted(s_.attention_in));
    const Id out = attend(y, kept, keep);
    Id a = linear(s_.attention_out, kept, keep);
    pool_.drop(out);
    if (has(Role::after_attention_norm)) a = normed(a, kept.a, keep);
    const Id h2 = stream_array();
    y = wide(m_.dim);
    pool_.drop(h), pool_.drop(a);
    pool_.op();
    kept.h2 = maybe(h2);
    kept.y2 = maybe(y, s_.trained || adapted(s_.mlp_in));
    Id m = feed_forward(y, kept, keep);
    if (has(Role::after_mlp_norm)) m = normed(m, kept.m, keep);
    return {h2, m};
  }

  Id normed(Id x, Id& kept, bool keep) {
    const Id y = wide(m_.dim);
    if (keep) kept = pool_.hold(x);
    pool_.drop(x);
    pool_.op();
    return y;
  }

  Id attend(Id y, Kept& kept, bool keep) {
    std::vector<Id> qkv = linears(s_.attention_in, kept, keep);
    pool_.drop(y);
    if (has(Role::query_norm)) {
      for (std::size_t i = 0; i < 2; ++i) {
        const Id raw = qkv[i];
        qkv[i] = wide(s_.attention_in[i].out);
        if (keep) kept.raw.push_back(pool_.hold(raw));
        pool_.drop(raw);
        pool_.op();
      }
    }
    if (m_.rope) pool_.op(), pool_.op();
    const Id out = wide(long{m_.heads} * m_.head_dim);
    const Id lse = pool_.take(tokens_ * static_cast<std::size_t>(m_.heads) * 4);
    if (keep) {
      for (const Id i : qkv) kept.qkv.push_back(pool_.hold(i));
      kept.out = pool_.hold(out), kept.lse = pool_.hold(lse);
    }
    drop(qkv);
    pool_.drop(lse);
    pool_.op();
    return out;
  }

  Id feed_forward(Id y, Kept& kept, bool keep) {
    const std::vector<Id> gate = linears(s_.mlp_in, kept, keep);
    pool_.drop(y);
    const Id act = wide(m_.ffn);
    if (keep) {
      for (const Id i : gate) kept.gate.push_back(pool_.hold(i));
      const bool needed = s_.trained || s_.mlp_out.rank > 0;
      if (needed && !s_.activate_again) kept.act = pool_.hold(act);
    }
    drop(gate);
    pool_.op();
    const Id m = linear(s_.mlp_out, kept, keep);
    pool_.drop(act);
    return m;
  }

  // dy and what it needed are dropped.
  Id together_gradient(
      const std::vector<LinearShape>& all,
      const std::vector<Id>& dy,
      Id x
  ) {
    const Id dx = wide(all[0].in);
    drop(dy), pool_.drop(x);
    pool_.op();
    return dx;
  }
  // Of the sum whose rows were scaled. The magnitude's gradient, of both that
  // come in, is made when the block's others are; until then their product,
  // this gradient and one more array are held, as measuring shows.
  Id scaled_gradient(Id dy, Id sum, long n, Kept& k) {
    const Id d = wide(n);
    k.adapters.insert(
        k.adapters.end(), {dy, sum, wide(n), wide(n), pool_.hold(d)}
    );
    pool_.op();
    return d;
  }
  static Id last_unscaled(Kept& k) {
    if (k.unscaled.empty()) return kNone;
    const Id id = k.unscaled.back();
    k.unscaled.pop_back();
    return id;
  }
  Id linear_gradient(const LinearShape& l, Id dy, Id x, Kept& k, Id sum) {
    if (s_.joined) return together_gradient({l}, {dy}, x);
    if (sum != kNone) dy = scaled_gradient(dy, sum, l.out, k);
    const Id dx = wide(l.in);
    if (l.rank > 0) {
      pool_.op();
      const Id inner = wide(l.rank);
      pool_.op();
      const Id more = wide(l.in);
      pool_.drop(inner);
      pool_.op();
      pool_.drop(more);
    }
    pool_.drop(dy), pool_.drop(x);
    pool_.op();
    return dx;
  }
  // The sum of the gradients of one input of several projections.
  Id inputs_gradient(
      const std::vector<LinearShape>& all,
      const std::vector<Id>& dy,
      Id x,
      Kept& k
  ) {
    if (s_.joined) return together_gradient(all, dy, x);
    std::vector<Id> unscaled(all.size());
    for (std::size_t i = all.size(); i-- > 0;) unscaled[i] = last_unscaled(k);
    Id sum = kNone;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const bool last = i + 1 == all.size();
      const Id d =
          linear_gradient(all[i], dy[i], last ? x : kNone, k, unscaled[i]);
      if (sum == kNone) {
        sum = d;
        continue;
      }
      pool_.drop(d);
      pool_.op();
    }
    return sum;
  }

  // Of the norm that adds a branch: gradients of stream and branch, which are
  // one array where both have one type.
  Stream norm_gradient(Id dy, Id h, Id dx, bool branch) {
    Stream d{stream_array(), kNone};
    if (branch) d.branch = s_.element == 4 ? pool_.hold(d.x) : wide(m_.dim);
    pool_.drop(dy), pool_.drop(h), pool_.drop(dx);
    pool_.op();
    return d;
  }
  Id plain_norm_gradient(Id dy, Id x, long n) {
    const Id dx = wide(n);
    pool_.drop(dy), pool_.drop(x);
    pool_.op();
    return dx;
  }

  Stream block_gradient(Stream d, Kept& k, bool first) {
    Id dm = d.branch;
    if (has(Role::after_mlp_norm)) dm = plain_norm_gradient(dm, k.m, m_.dim);
    if (s_.activate_again) {
      k.act = wide(m_.ffn);
      pool_.op();
    }
    const Id dact = linear_gradient(s_.mlp_out, dm, k.act, k, last_unscaled(k));
    std::vector<Id> dgate;
    for (const auto& l : s_.mlp_in) dgate.push_back(wide(l.out));
    pool_.drop(dact), drop(k.gate);
    pool_.op();
    Id dy = inputs_gradient(s_.mlp_in, dgate, k.y2, k);
    d = norm_gradient(dy, k.h2, d.x, true);
    Id da = d.branch;
    if (has(Role::after_attention_norm))
      da = plain_norm_gradient(da, k.a, m_.dim);
    const Id dout =
        linear_gradient(s_.attention_out, da, kNone, k, last_unscaled(k));
    std::vector<Id> dqkv;
    for (const auto& l : s_.attention_in) dqkv.push_back(wide(l.out));
    drop(k.qkv);
    pool_.drop(k.out), pool_.drop(k.lse), pool_.drop(dout);
    pool_.op();
    for (std::size_t i = 0; i < k.raw.size(); ++i) {
      dqkv[i] = plain_norm_gradient(dqkv[i], k.raw[i], s_.attention_in[i].out);
    }
    if (m_.rope) pool_.op(), pool_.op();
    dy = inputs_gradient(s_.attention_in, dqkv, k.y1, k);
    drop(k.adapters);
    return norm_gradient(dy, k.h1, d.x, !first);
  }
};

}  // namespace

void walk_pass(BufferPool& pool, const PassShape& shape, bool gradients) {
  Walk walk(pool, shape, gradients);
  walk.forward();
  if (gradients) walk.backward();
}

}  // namespace hearth::train
