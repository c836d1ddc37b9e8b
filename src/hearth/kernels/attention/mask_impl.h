#pragma once
// The attention mask: which stretch of keys a run of queries can see, and the
// reverse; whether all of it is seen; and the masking of scores that are not.
#include "hearth/kernels/attention/pack_impl.h"

namespace hearth::kernels::HEARTH_ISA {
namespace {

// [lo, hi)
struct Stretch {
  long lo, hi;
  bool empty() const { return lo >= hi; }
  bool holds(Stretch o) const { return lo <= o.lo && o.hi <= hi; }
};

inline Stretch common(Stretch a, Stretch b) {
  return {most(a.lo, b.lo), least(a.hi, b.hi)};
}
inline Stretch widened(Stretch a, long grain) {
  return {a.lo / grain * grain, round_up(a.hi, grain)};
}

constexpr long kUnbounded = 1L << 60;

// Keys that some position of [first, last] sees, without regard to segments.
// With first and last exchanged: keys that every one of them sees.
inline Stretch keys_seen(const AttentionArgs& a, long first, long last) {
  const Stretch s{
      a.window > 0 ? first - a.window + 1 : 0, a.causal       ? last + 1
                                               : a.window > 0 ? last + a.window
                                                              : kUnbounded
  };
  return common(s, {0, a.keys});
}

// Queries that see some key of [first, last], or, with first and last
// exchanged, every one.
inline Stretch queries_seeing(const AttentionArgs& a, long first, long last) {
  const Stretch s{
      a.causal       ? first
      : a.window > 0 ? first - a.window + 1
                     : -kUnbounded,
      a.window > 0 ? last + a.window : kUnbounded
  };
  return common({s.lo - a.query_offset, s.hi - a.query_offset}, {0, a.queries});
}

// The least and the greatest segment id of a run of tokens.
struct Ids {
  std::int32_t lo, hi;
  bool meets(Ids o) const { return lo <= o.hi && o.lo <= hi; }
};

inline Ids ids_of(const std::int32_t* ids, long n) {
  Ids r{ids[0], ids[0]};
  for (long i = 1; i < n; ++i) {
    r.lo = ids[i] < r.lo ? ids[i] : r.lo;
    r.hi = ids[i] > r.hi ? ids[i] : r.hi;
  }
  return r;
}

// Drops runs of `grain` tokens at either end of s whose ids cannot overlap
// `with`. ids[0] is the id of token 0 in s's count; n tokens have one.
inline Stretch trimmed(
    Stretch s,
    long grain,
    const std::int32_t* ids,
    long n,
    Ids with
) {
  const auto meets = [&](long at) {
    return ids_of(ids + at, least(grain, n - at)).meets(with);
  };
  while (!s.empty() && !meets(s.lo)) s.lo += grain;
  while (!s.empty() && !meets(s.hi - grain)) s.hi -= grain;
  return s;
}

// The documents of a batch's queries and keys; null: a row is one.
struct DocumentIds {
  const std::int32_t *queries = nullptr, *keys = nullptr;
  DocumentIds() = default;
  DocumentIds(const AttentionArgs& a, long batch) {
    const auto of = [&](const AttentionSegments& s) {
      return s.data != nullptr ? s.data + batch * s.batch : nullptr;
    };
    queries = of(a.query_segments);
    keys = of(a.key_segments);
  }
};

// Which keys of a stretch the `n` queries from `query` on see.
struct Sight {
  Stretch at;     // counted from the stretch, in multiples of the grain
  bool mixed;     // whether there is more than one document
  Stretch whole;  // keys that all of the queries see, segments aside
};
inline Sight sight_of(
    const AttentionArgs& a,
    const DocumentIds& ids,
    Stretch keys,
    long query,
    long n,
    long grain
) {
  const long first = a.query_offset + query, last = first + n - 1;
  const Stretch seen = common(keys_seen(a, first, last), keys);
  Sight found{{0, 0}, false, keys_seen(a, last, first)};
  if (seen.empty()) return found;
  found.at = widened({seen.lo - keys.lo, seen.hi - keys.lo}, grain);
  if (ids.keys == nullptr) return found;
  const Ids own = ids_of(ids.queries + query, n);
  const std::int32_t* theirs = ids.keys + keys.lo;
  const long there = keys.hi - keys.lo;
  found.at = trimmed(found.at, grain, theirs, there, own);
  if (found.at.empty()) return found;
  const Ids met =
      ids_of(theirs + found.at.lo, least(found.at.hi, there) - found.at.lo);
  found.mixed = own.lo != own.hi || met.lo != own.lo || met.hi != own.lo;
  return found;
}

// Which of `n` queries from `query` on see some key of [first, end), counted
// from there in multiples of the grain.
inline Stretch queries_meeting(
    const AttentionArgs& a,
    const DocumentIds& ids,
    long query,
    long n,
    long first,
    long end,
    long grain
) {
  const Stretch all = queries_seeing(a, first, end - 1);
  const Stretch at = common({all.lo - query, all.hi - query}, {0, n});
  if (at.empty()) return {0, 0};
  const Stretch wide = widened(at, grain);
  if (ids.keys == nullptr) return wide;
  return trimmed(
      wide, grain, ids.queries + query, n, ids_of(ids.keys + first, end - first)
  );
}

// Whether each of `n` queries from `query` on sees all keys of [key, end).
inline bool sees_all(
    const AttentionArgs& a,
    const DocumentIds& ids,
    long query,
    long n,
    long key,
    long end
) {
  if (end > a.keys || query + n > a.queries) return false;
  const Stretch all = queries_seeing(a, end - 1, key);
  if (!all.holds({query, query + n})) return false;
  if (ids.keys == nullptr) return true;
  const Ids keys = ids_of(ids.keys + key, end - key);
  const Ids queries = ids_of(ids.queries + query, n);
  return keys.lo == keys.hi && queries.lo == keys.lo && queries.hi == keys.lo;
}

// Sets scores to -inf where a key is not seen, in columns `at` of one row whose
// column 0 is token `origin`: tokens outside `seen`, and, where ids are given
// (by token), those with another id.
inline void mask_row(
    float* row,
    Stretch at,
    long origin,
    Stretch seen,
    const std::int32_t* ids,
    std::int32_t id
) {
  const float never = -__builtin_inff();
  const long lo = most(at.lo, least(at.hi, seen.lo - origin));
  const long hi = most(lo, least(at.hi, seen.hi - origin));
  for (long j = at.lo; j < lo; ++j) row[j] = never;
  for (long j = hi; j < at.hi; ++j) row[j] = never;
  if (ids == nullptr) return;
  const std::int32_t* own = ids + origin;
  for (long j = lo; j < hi; ++j) row[j] = own[j] == id ? row[j] : never;
}

}  // namespace
}  // namespace hearth::kernels::HEARTH_ISA
