"""The arrays of frozen blocks, written and read by plain Python (their layout: core/plt/frozen_blocks.hpp)."""

from __future__ import annotations

import itertools

import numpy as np

from twins.hashing import WORD, mix

PANEL_FIELDS = (
    "node",
    "first_column",
    "n_columns",
    "n_rows",
    "bucket_bits",
    "index_begin",
    "row_begin",
    "n_bytes",
)
BITMAP, HASHED = -1, -2
DENSE_RUN, LEAST_DENSE = 1 << 20, 64
PACKED, PACKED_VALUES, BLOCK_FEATURES, PACKED_PADDING = 1 << 21, 16, 128, 8
GROUP = 8
DENSE_GROUP = 4
FULL_ROW_BYTES, LARGE_PANEL = 3, 512 << 10
WIDE_CHUNK, ROW_HAS_GROUPS = 1 << 31, 1 << 15
WORD_FEATURES = 64
TILE_COLUMNS = 32
PANEL_COLUMNS = 256
DTYPES = {
    "panels": np.int64,
    "column_child": np.int32,
    "column_scale": np.float32,
    "column_rate": np.float32,
    "index": np.uint32,
    "rows": np.uint8,
    "table": np.float32,
}


def freeze(nodes, n_features, index="bitmap"):
    """Arrays of the blocks of `nodes`: node -> (children, bytes of shape (n_features, children), a scale per
    child), with or without a log rate per child. `index` may be a list of the kinds of all panels in order."""
    arrays = {name: [] for name in DTYPES}
    kinds = iter(index if isinstance(index, list) else itertools.repeat(index))
    for node in sorted(nodes):
        children, weights, scales, *rates = nodes[node]
        rates = rates[0] if rates else np.zeros(len(children))
        for first in range(0, len(children), PANEL_COLUMNS):
            columns = slice(first, first + PANEL_COLUMNS)
            _freeze_panel(arrays, node, children[columns], weights[:, columns], scales[columns], next(kinds))
            arrays["column_rate"] += list(rates[columns])
    frozen = {name: np.asarray(values, dtype=DTYPES[name]) for name, values in arrays.items()}
    frozen["panels"] = frozen["panels"].reshape(-1, len(PANEL_FIELDS))
    return frozen


def kinds_of_index(arrays):
    """How the features of each panel are found, for `freeze`."""
    bits = arrays["panels"][:, PANEL_FIELDS.index("bucket_bits")]
    return ["bitmap" if b in (BITMAP, BITMAP + DENSE_RUN) else "bucket" for b in bits.tolist()]


def _freeze_panel(arrays, node, children, weights, scales, index):
    run = dense_run(weights)
    known = [feature for feature in range(len(weights)) if weights[feature].any()]
    features = [feature for feature in known if feature not in run]
    bits = BITMAP if index == "bitmap" else max(0, len(features).bit_length() - 3)
    index_begin, row_begin = len(arrays["index"]), len(arrays["rows"])
    n_groups = sum(weights[features, at : at + GROUP].any(axis=1).sum() for at in range(0, len(children), GROUP))
    factor = 1 if n_groups * (1 + GROUP) > LARGE_PANEL else FULL_ROW_BYTES
    rows = bytearray()
    if index == "bitmap":
        for first in range(0, len(weights), WORD_FEATURES):
            members = [feature for feature in features if first <= feature < first + WORD_FEATURES]
            word = sum(1 << feature - first for feature in members)
            is_wide, chunk = _chunk([weights[feature] for feature in members], factor)
            arrays["index"] += [len(rows) | is_wide * WIDE_CHUNK, word & 0xFFFFFFFF, word >> 32]
            rows += chunk
    else:
        for bucket in range(2**bits):
            members = [feature for feature in features if feature % 2**bits == bucket]
            is_wide, chunk = _chunk([weights[feature] for feature in members], factor)
            arrays["index"] += [len(rows) | is_wide * WIDE_CHUNK]
            n_bytes = key_bytes(len(weights), bits)
            rows += bytes([len(members)] if members else [])
            rows += b"".join((feature >> bits).to_bytes(n_bytes, "little") for feature in members) + chunk
        arrays["index"] += [len(rows)]
    first_column = len(arrays["column_child"])
    if run:
        dense = np.zeros((len(run), -(-weights.shape[1] // GROUP) * GROUP), np.int8)
        dense[:, : weights.shape[1]] = weights[run.start : run.stop]
        rows = np.array([run.start, len(run)], "<u4").tobytes() + dense.tobytes() + rows
        bits += DENSE_RUN
    arrays["panels"] += [[node, first_column, len(children), len(features), bits, index_begin, row_begin, len(rows)]]
    arrays["column_child"] += list(children)
    arrays["column_scale"] += list(scales)
    arrays["rows"] += list(rows)


def dense_run(weights):
    """The neighbouring features, as a range, that save most if every column has a byte, which counts 4/5, for each."""
    stride = -(-weights.shape[1] // GROUP) * GROUP
    total = largest = first = last = 0
    best = range(0)
    for feature in np.flatnonzero(weights.any(axis=1)).tolist():
        total -= 4 * stride * (feature - last - 1) if total > 0 else 0
        if total <= 0:
            total, first = 0, feature
        used = [np.count_nonzero(weights[feature, at : at + GROUP]) for at in range(0, weights.shape[1], GROUP)]
        groups = sum(n >= DENSE_GROUP for n in used)
        size = 2 + sum(1 + GROUP if n >= DENSE_GROUP else 2 * n for n in used) + (groups > 0)
        total += 5 * size - 4 * stride
        last = feature
        if total > largest:
            largest, best = total, range(first, feature + 1)
    return best if len(best) >= LEAST_DENSE else range(0)


def key_bytes(n_features, bits):
    """What remains of a feature without the bits that choose its bucket, in whole bytes."""
    largest = (n_features - 1) >> bits
    return 1 if largest < 2**8 else 2 if largest < 2**16 else 4


def _chunk(rows_of_weights, factor):
    """Where the rows end, and the rows: (whether it is wide, its bytes). A row of all groups may take `factor` times
    the bytes."""
    ends, content, has_groups = [], b"", False
    for weights in rows_of_weights:
        all_groups, groups, pairs = [], [], b""
        for first in range(0, len(weights), GROUP):
            used = [c for c in range(first, min(first + GROUP, len(weights))) if weights[c]]
            padded = [int(w) & 255 for w in weights[first : first + GROUP]]
            all_groups.append(bytes([first // GROUP, *padded, *[0] * (GROUP - len(padded))]))
            if len(used) >= DENSE_GROUP:
                groups.append(all_groups[-1])
            else:
                pairs += b"".join(bytes([c, int(weights[c]) & 255]) for c in used)
        row = (bytes([len(groups)]) + b"".join(groups) if groups else b"") + pairs
        if 1 + len(all_groups) * (1 + GROUP) <= factor * len(row):
            groups = all_groups
            row = bytes([len(groups)]) + b"".join(groups)
        content += row
        ends.append(len(content) | bool(groups) * ROW_HAS_GROUPS)
        has_groups |= bool(groups)
    if has_groups or len(content) > 2 * 255:
        return True, b"".join(end.to_bytes(2, "little") for end in ends) + content
    return False, bytes(end // 2 for end in ends) + content


def thaw(arrays, n_features):
    """The inverse: node -> (children, float64 weights of shape (n_features, children)), children as they stand."""
    nodes = {}
    for record in arrays["panels"]:
        panel = dict(zip(PANEL_FIELDS, record.tolist(), strict=True))
        columns = slice(panel["first_column"], panel["first_column"] + panel["n_columns"])
        weights = np.zeros((n_features, -(-panel["n_columns"] // GROUP) * GROUP))
        if panel["bucket_bits"] == HASHED:
            weights = _hashed_weights(arrays["table"], panel, n_features)
        else:
            _thaw_packed(weights, arrays["rows"], panel, n_features)
            _thaw_run(weights, arrays["rows"], panel)
            for features, is_wide, chunk in _chunks(arrays, panel, n_features):
                _thaw_chunk(weights, features, is_wide, chunk)
        weights = weights[:, : panel["n_columns"]] * arrays["column_scale"][columns].astype(np.float64)
        children = arrays["column_child"][columns]
        before = nodes.get(panel["node"], (children[:0], weights[:, :0]))
        nodes[panel["node"]] = (np.append(before[0], children), np.hstack([before[1], weights]))
    return nodes


def _thaw_packed(weights, rows, panel, n_features):
    """Read a panel's packed rows, if it has some; what is left of `panel` are the other rows."""
    if panel["bucket_bits"] < PACKED + BITMAP:
        return
    panel["bucket_bits"] -= PACKED
    content = rows[panel["row_begin"] : panel["row_begin"] + panel["n_bytes"]]
    size = int(content[:4].view("<u4")[0])
    values = content[4 : 4 + 2 * PACKED_VALUES].view("<i2") / 256
    index = content[4 + 2 * PACKED_VALUES :]
    entry = 4 + BLOCK_FEATURES // 8
    n_blocks = -(-n_features // BLOCK_FEATURES)
    chunks = index[n_blocks * entry :]
    for block in range(n_blocks):
        begin = int(index[block * entry :][:4].view("<u4")[0])
        features = np.flatnonzero(np.unpackbits(index[block * entry + 4 :][: entry - 4], bitorder="little"))
        if len(features) == 0:
            continue
        n = int(chunks[begin:][:2].view("<u2")[0])
        is_last = np.unpackbits(chunks[begin + 2 :], count=n, bitorder="little").astype(bool)
        bits = np.unpackbits(chunks[begin + 2 + -(-n // 8) :], count=12 * n, bitorder="little").reshape(n, 12)
        column, code = (bits[:, part] @ (1 << np.arange(bits[:, part].shape[1])) for part in (slice(8), slice(8, 12)))
        row = np.repeat(features, np.diff(np.flatnonzero(is_last), prepend=-1))
        weights[BLOCK_FEATURES * block + row, column] = values[code]
    panel["row_begin"] += size
    panel["n_bytes"] -= size


def _thaw_run(weights, rows, panel):
    """Read a panel's dense run, if it has one; what is left of `panel` are the other features."""
    if panel["bucket_bits"] < DENSE_RUN + BITMAP:
        return
    panel["bucket_bits"] -= DENSE_RUN
    first, n = rows[panel["row_begin"] :][:8].view("<u4").tolist()
    size = n * weights.shape[1]
    weights[first : first + n] = rows[panel["row_begin"] + 8 :][:size].view(np.int8).reshape(n, -1)
    panel["row_begin"] += 8 + size
    panel["n_bytes"] -= 8 + size


def _chunks(arrays, panel, n_features):
    """The chunks of a panel: the features of its rows, whether it is wide, and the bytes from its ends of rows on."""
    rows = arrays["rows"][panel["row_begin"] : panel["row_begin"] + panel["n_bytes"]].tobytes()
    index, bits = arrays["index"][panel["index_begin"] :].tolist(), panel["bucket_bits"]
    if bits == BITMAP:
        for word in range(-(-n_features // WORD_FEATURES)):
            begin, low, high = index[3 * word : 3 * word + 3]
            is_set = low | high << 32
            features = [WORD_FEATURES * word + bit for bit in range(WORD_FEATURES) if is_set >> bit & 1]
            yield features, bool(begin & WIDE_CHUNK), rows[begin % WIDE_CHUNK :]
        return
    for bucket in range(2**bits):
        begin, end = (index[bucket + step] % WIDE_CHUNK for step in (0, 1))
        if begin < end:
            count, n_bytes = rows[begin], key_bytes(n_features, bits)
            keys = [rows[begin + 1 + n_bytes * k : begin + 1 + n_bytes * (k + 1)] for k in range(count)]
            features = [int.from_bytes(key, "little") << bits | bucket for key in keys]
            yield features, bool(index[bucket] & WIDE_CHUNK), rows[begin + 1 + n_bytes * count : end]


def _thaw_chunk(weights, features, is_wide, chunk):
    size = 2 if is_wide else 1
    content, begin = chunk[size * len(features) :], 0
    for place, feature in enumerate(features):
        end = int.from_bytes(chunk[size * place : size * (place + 1)], "little")
        has_groups, end = is_wide and bool(end & ROW_HAS_GROUPS), end % ROW_HAS_GROUPS if is_wide else 2 * end
        row = np.frombuffer(content[begin:end], np.int8)
        begin = end
        if has_groups:
            rest = 1 + (1 + GROUP) * int(row[0])
            groups, row = row[1:rest].reshape(-1, 1 + GROUP), row[rest:]
            for group in groups:
                weights[feature, GROUP * int(group[0]) : GROUP * (int(group[0]) + 1)] = group[1:]
        weights[feature, row[::2].astype(np.uint8)] = row[1::2]


def _hashed_weights(table, panel, n_features):
    """What the shared table holds for every feature and column: a tile's columns stand side by side in a slot."""
    tiles = []
    for first in range(0, panel["n_columns"], TILE_COLUMNS):
        stride = -(-min(TILE_COLUMNS, panel["n_columns"] - first) // GROUP) * GROUP
        seed = mix(panel["node"] << 20 | panel["row_begin"] + first // TILE_COLUMNS)
        slots = np.array([hashed_slot(feature, seed, len(table) // stride) for feature in range(n_features)])
        tiles.append(table[slots[:, None] * stride + np.arange(stride)].astype(np.float64))
    return np.hstack(tiles)


def hashed_slot(feature, seed, n_slots):
    z = (feature + seed) * 0xBF58476D1CE4E5B9 % WORD
    z = (z ^ (z >> 32)) * 0x94D049BB133111EB % WORD
    return ((z >> 32) * n_slots) >> 32
