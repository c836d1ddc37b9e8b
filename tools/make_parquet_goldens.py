#!/usr/bin/env python3
"""Writes tests/golden/parquet with pyarrow: small files of every physical type, encoding, codec and page version that
data/parquet reads, nested columns, and beside each its rows as JSON. Some are seeds of tests/fuzz/fuzz_parquet.cpp too.

usage: make_parquet_goldens.py [OUT]"""
import json
import pathlib
import sys

import pyarrow as pa
import pyarrow.parquet as pq

ROWS = 60


def flat():
    """A column of each type; every third value is missing, but for those of "must"."""
    def column(values, kind):
        return pa.array([None if i % 3 == 2 else values[i % len(values)] for i in range(ROWS)], kind)
    words = ["", "a", "naïve \"words\"\n", "x" * 90, "\U0001f600", "b"]
    columns = {
        "truth": column([True, False, False, True, True], pa.bool_()),
        "int8": column([-128, 0, 127], pa.int8()), "uint8": column([0, 255, 7], pa.uint8()),
        "int32": column([-2**31, 5, 2**31 - 1], pa.int32()), "uint32": column([0, 2**32 - 1, 5], pa.uint32()),
        "int64": column([-2**63, 2**63 - 1, 1, 0], pa.int64()), "uint64": column([2**64 - 1, 3], pa.uint64()),
        "float": column([0.5, -1.25, 65536.5, float("inf")], pa.float32()),
        "double": column([0.1, -2.5e-300, float("nan")], pa.float64()),
        "text": column(words, pa.string()), "bytes": column([w.encode() for w in words], pa.binary()),
        "fixed": column([b"abc", b"xyz"], pa.binary(3)), "decimal": column([1, 2], pa.decimal128(9, 2)),
        "time": column([0, 10**15], pa.timestamp("us")),
        "nothing": pa.array([None] * ROWS, pa.string()),
        "must": pa.array([f"row {i}" for i in range(ROWS)], pa.string()),
        "must_truth": pa.array([i % 5 < 2 for i in range(ROWS)], pa.bool_()),
    }
    required = {"must", "must_truth"}
    fields = [pa.field(name, a.type, nullable=name not in required) for name, a in columns.items()]
    return pa.table(list(columns.values()), schema=pa.schema(fields))


def nested():
    message = pa.struct([("role", pa.string()), ("content", pa.string())])
    chats = [None, [], [{"role": "user", "content": "q"}],
             [{"role": "user", "content": None}, None, {"role": "assistant", "content": "a"}]]
    return pa.table({
        "messages": pa.array([chats[i % 4] for i in range(ROWS)], pa.list_(message)),
        "lists": pa.array([[[1, None], [], None, [2]] if i % 3 else [] for i in range(ROWS)],
                          pa.list_(pa.list_(pa.int32()))),
        "map": pa.array([[("a", i), ("b", None)] if i % 4 else None for i in range(ROWS)],
                        pa.map_(pa.string(), pa.int64())),
        "counts": pa.array([[(i, "x")] for i in range(ROWS)], pa.map_(pa.int32(), pa.string())),
        "object": pa.array([{"x": i, "y": {"z": [i] * (i % 3)}} if i % 5 else None for i in range(ROWS)],
                           pa.struct([("x", pa.int64()), ("y", pa.struct([("z", pa.list_(pa.int64()))]))])),
        "last": pa.array([f"end {i}" for i in range(ROWS)]),
    })


FILES = {
    "plain": (flat, dict(compression="none", use_dictionary=False)),
    "snappy": (flat, dict(compression="snappy")),
    "gzip-pages": (flat, dict(compression="gzip", data_page_size=40, write_batch_size=8, row_group_size=25)),
    "zstd-second": (flat, dict(compression="zstd", data_page_version="2.0")),
    "snappy-second": (flat, dict(compression="snappy", data_page_version="2.0", data_page_size=40, write_batch_size=8,
                                 use_dictionary=False)),
    "nested": (nested, dict(compression="snappy", row_group_size=17)),
    "nested-second": (nested, dict(compression="none", data_page_version="2.0", data_page_size=40, write_batch_size=4)),
}


SEEDS = ("snappy", "zstd-second", "nested")


def plain(value):
    """As our reader writes it."""
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else None
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, list):
        return [plain(v) for v in value]
    return value


def row(values):
    out = {}
    for name, value in values.items():
        if name in ("fixed", "decimal", "time"):
            value = None
        elif name == "map" and value is not None:
            value = dict(value)
        elif name == "counts":
            value = [{"key": k, "value": v} for k, v in value]
        out[name] = plain(value)
    return out


def main():
    source = pathlib.Path(__file__).resolve().parent.parent
    out = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else source / "tests/golden/parquet"
    out.mkdir(parents=True, exist_ok=True)
    for name, (make, options) in FILES.items():
        table = make()
        pq.write_table(table, out / f"{name}.parquet", store_schema=False, write_statistics=False,
                       use_deprecated_int96_timestamps=True, **options)
        if name in SEEDS and out == source / "tests/golden/parquet":
            seeds = source / "tests/fuzz/seeds/parquet"
            seeds.mkdir(parents=True, exist_ok=True)
            (seeds / name).write_bytes((out / f"{name}.parquet").read_bytes())
    for make in (flat, nested):
        lines = [json.dumps(row(r), ensure_ascii=False) for r in make().to_pylist()]
        (out / f"{make.__name__}.jsonl").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
