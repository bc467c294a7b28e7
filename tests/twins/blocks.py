"""The arrays of frozen blocks, written and read by plain Python (their layout: core/frozen_blocks.hpp)."""

from __future__ import annotations

import numpy as np

from twins.hashing import WORD, mix

PANEL_FIELDS = (
    "node",
    "first_column",
    "n_columns",
    "first_row",
    "n_rows",
    "first_group",
    "bucket_bits",
    "index_begin",
    "key_begin",
)
BITMAP, HASHED = -1, -2
GROUP = 8
TILE_COLUMNS = 32
PANEL_COLUMNS = 256
DTYPES = {
    "panels": np.int64,
    "column_child": np.int32,
    "column_scale": np.float32,
    "row_group": np.uint32,
    "group_id": np.uint8,
    "group_weight": np.int8,
    "bitmap": np.uint64,
    "rank": np.uint32,
    "bucket": np.uint32,
    "key": np.uint32,
    "table": np.float32,
}


def bucket_of(feature, bits):
    """Fibonacci hashing: the upper bits of the feature times 2^32 / golden ratio."""
    return (feature * 2654435769 % 2**32) >> (32 - bits) if bits else 0


def freeze(nodes, n_features, index="bitmap"):
    """Arrays of the blocks of `nodes`: node -> (children, bytes of shape (n_features, children), a scale per child)."""
    arrays = {name: [] for name in DTYPES}
    for node in sorted(nodes):
        children, weights, scales = nodes[node]
        for first in range(0, len(children), PANEL_COLUMNS):
            columns = slice(first, first + PANEL_COLUMNS)
            _freeze_panel(arrays, node, children[columns], weights[:, columns], scales[columns], index)
    frozen = {name: np.asarray(values, dtype=DTYPES[name]) for name, values in arrays.items()}
    frozen["panels"] = frozen["panels"].reshape(-1, len(PANEL_FIELDS))
    return frozen


def _freeze_panel(arrays, node, children, weights, scales, index):
    padded = np.zeros((len(weights), -(-len(children) // GROUP) * GROUP), dtype=np.int8)
    padded[:, : len(children)] = weights
    groups = padded.reshape(len(weights), -1, GROUP)
    features = [feature for feature in range(len(weights)) if groups[feature].any()]
    bits, keys = BITMAP, len(arrays["key"])
    index_begin = len(arrays["bitmap"])
    if index == "bitmap":
        words = [0] * ((len(weights) + 63) // 64)
        for feature in features:
            words[feature // 64] |= 1 << feature % 64
        counts = [word.bit_count() for word in words]
        arrays["bitmap"] += words
        arrays["rank"] += [sum(counts[:word]) for word in range(len(words))]
    else:
        bits = max(0, len(features).bit_length() - 2)
        index_begin = len(arrays["bucket"])
        features.sort(key=lambda feature: bucket_of(feature, bits))
        buckets = [bucket_of(feature, bits) for feature in features]
        arrays["bucket"] += np.searchsorted(buckets, np.arange(2**bits + 1)).tolist()
        arrays["key"] += features
    arrays["panels"] += [
        [
            node,
            len(arrays["column_child"]),
            len(children),
            len(arrays["row_group"]),
            len(features),
            len(arrays["group_id"]),
            bits,
            index_begin,
            keys,
        ]
    ]
    arrays["column_child"] += list(children)
    arrays["column_scale"] += list(scales)
    n_groups = 0
    arrays["row_group"] += [0]
    for feature in features:
        for group in np.flatnonzero(groups[feature].any(axis=1)):
            arrays["group_id"] += [group]
            arrays["group_weight"] += groups[feature, group].tolist()
            n_groups += 1
        arrays["row_group"] += [n_groups]


def thaw(arrays, n_features):
    """The inverse: node -> (children, float64 weights of shape (n_features, children)), children as they stand."""
    nodes = {}
    for record in arrays["panels"]:
        panel = dict(zip(PANEL_FIELDS, record.tolist(), strict=True))
        columns = slice(panel["first_column"], panel["first_column"] + panel["n_columns"])
        weights = np.zeros((n_features, -(-panel["n_columns"] // GROUP) * GROUP))
        if panel["bucket_bits"] == HASHED:
            weights = _hashed_weights(arrays["table"], panel, n_features)
        for row, feature in enumerate(_features(arrays, panel, n_features)):
            begin, end = (int(arrays["row_group"][panel["first_row"] + row + step]) for step in (0, 1))
            for group in range(panel["first_group"] + begin, panel["first_group"] + end):
                first = GROUP * int(arrays["group_id"][group])
                weights[feature, first : first + GROUP] = arrays["group_weight"][GROUP * group : GROUP * (group + 1)]
        weights = weights[:, : panel["n_columns"]] * arrays["column_scale"][columns].astype(np.float64)
        children = arrays["column_child"][columns]
        before = nodes.get(panel["node"], (children[:0], weights[:, :0]))
        nodes[panel["node"]] = (np.append(before[0], children), np.hstack([before[1], weights]))
    return nodes


def _hashed_weights(table, panel, n_features):
    """What the shared table holds for every feature and column: a tile's columns stand side by side in a slot."""
    tiles = []
    for first in range(0, panel["n_columns"], TILE_COLUMNS):
        stride = -(-min(TILE_COLUMNS, panel["n_columns"] - first) // GROUP) * GROUP
        seed = mix(panel["node"] << 20 | panel["key_begin"] + first // TILE_COLUMNS)
        slots = np.array([hashed_slot(feature, seed, len(table) // stride) for feature in range(n_features)])
        tiles.append(table[slots[:, None] * stride + np.arange(stride)].astype(np.float64))
    return np.hstack(tiles)


def hashed_slot(feature, seed, n_slots):
    z = (feature + seed) * 0xBF58476D1CE4E5B9 % WORD
    z = (z ^ (z >> 32)) * 0x94D049BB133111EB % WORD
    return ((z >> 32) * n_slots) >> 32


def _features(arrays, panel, n_features):
    """The panel's features in order of row."""
    if panel["bucket_bits"] == HASHED:
        return []
    if panel["bucket_bits"] != BITMAP:
        return arrays["key"][panel["key_begin"] : panel["key_begin"] + panel["n_rows"]].tolist()
    words = arrays["bitmap"][panel["index_begin"] : panel["index_begin"] + (n_features + 63) // 64]
    return [64 * place + bit for place, word in enumerate(words.tolist()) for bit in range(64) if word >> bit & 1]
