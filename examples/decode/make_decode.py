#!/usr/bin/env python3
"""Writes the example's files with JAX: the program of one decode step, its weights, inputs and expected values.

  make_decode.py            program.hlo, inputs.npz, expected.npz, meta.json from weights.bin and vocabulary.txt
  make_decode.py --train    first learns weights.bin from text.txt (minutes on two cores)

Needs: pip install jax.
"""
import argparse
import json
import os

import jax
import jax.numpy as jnp
import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
LAYERS, DIM, HEADS, KV_HEADS, HIDDEN, LENGTH = 2, 128, 4, 2, 256, 320
HEAD_DIM = DIM // HEADS
PROMPT = "The time has come"


def norm(x, gain):
    return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-5) * gain


def rotate(x, cos, sin):
    """Rotary position embedding of [..., heads, d]."""
    a, b = jnp.split(x, 2, -1)
    return jnp.concatenate([a * cos - b * sin, b * cos + a * sin], -1)


def feed_forward(L, x):
    h = norm(x, L["norm2"])
    return x + (jax.nn.silu(h @ L["gate"]) * (h @ L["up"])) @ L["down"]


def attend(q, K, V, count):
    """q [heads, d] over the first `count` rows of K and V [LENGTH, kv_heads, d]; a group of heads shares one of K."""
    q = q.reshape(KV_HEADS, HEADS // KV_HEADS, HEAD_DIM)
    s = jnp.einsum("kgd,tkd->kgt", q, K) / HEAD_DIM ** 0.5
    s = jnp.where(jnp.arange(LENGTH) < count, s, -jnp.inf)
    return jnp.einsum("kgt,tkd->kgd", jax.nn.softmax(s, -1), V).reshape(-1)


def decode_step(P, cache, token, n):
    """The token after `token`, which stands at position n; all logits; and the cache with row n written."""
    x, new_cache = P["embed"][token], []
    cos, sin = P["cos"][n], P["sin"][n]
    for L, (K, V) in zip(P["layers"], cache):
        h = norm(x, L["norm1"])
        q, k, v = ((h @ L[name]).reshape(-1, HEAD_DIM) for name in "qkv")
        K = jax.lax.dynamic_update_index_in_dim(K, rotate(k, cos, sin), n, 0)
        V = jax.lax.dynamic_update_index_in_dim(V, v, n, 0)
        x = feed_forward(L, x + attend(rotate(q, cos, sin), K, V, n + 1) @ L["o"])
        new_cache.append((K, V))
    logits = norm(x, P["norm"]) @ P["head"]
    return jnp.argmax(logits).astype(jnp.int32), logits, new_cache


def sequence_logits(P, tokens):
    """The same model over whole rows of tokens [batch, t], for training."""
    batch, t = tokens.shape
    x, mask = P["embed"][tokens], jnp.tril(jnp.ones((t, t), bool))
    cos, sin = P["cos"][:t, None], P["sin"][:t, None]
    for L in P["layers"]:
        h = norm(x, L["norm1"])
        q, k, v = ((h @ L[name]).reshape(batch, t, -1, HEAD_DIM) for name in "qkv")
        q = rotate(q, cos, sin).reshape(batch, t, KV_HEADS, HEADS // KV_HEADS, HEAD_DIM)
        s = jnp.einsum("bikgd,bjkd->bkgij", q, rotate(k, cos, sin)) / HEAD_DIM ** 0.5
        p = jax.nn.softmax(jnp.where(mask, s, -jnp.inf), -1)
        x = feed_forward(L, x + jnp.einsum("bkgij,bjkd->bikgd", p, v).reshape(batch, t, DIM) @ L["o"])
    return norm(x, P["norm"]) @ P["head"]


def initial_parameters(vocabulary):
    rng = np.random.default_rng(1)
    matrix = lambda m, n: (rng.standard_normal((m, n)) / m ** 0.5).astype(np.float32)
    layer = lambda: {"norm1": np.ones(DIM, np.float32), "norm2": np.ones(DIM, np.float32), "q": matrix(DIM, DIM),
                     "k": matrix(DIM, KV_HEADS * HEAD_DIM), "v": matrix(DIM, KV_HEADS * HEAD_DIM), "o": matrix(DIM, DIM),
                     "gate": matrix(DIM, HIDDEN), "up": matrix(DIM, HIDDEN), "down": matrix(HIDDEN, DIM)}
    angle = np.outer(np.arange(LENGTH), 1e4 ** (-np.arange(HEAD_DIM // 2) * 2 / HEAD_DIM))
    return {"embed": matrix(len(vocabulary), DIM), "head": matrix(DIM, len(vocabulary)), "norm": np.ones(DIM, np.float32),
            "cos": np.cos(angle).astype(np.float32), "sin": np.sin(angle).astype(np.float32),
            "layers": [layer() for _ in range(LAYERS)]}


def train(text, vocabulary, steps=1200, batch=6, t=LENGTH):
    """Adam on pieces of the text; the angles stay as they are."""
    data = jnp.asarray([vocabulary.index(c) for c in text])

    def loss(P, rows):
        logits = jax.nn.log_softmax(sequence_logits(P, rows[:, :-1]))
        return -jnp.take_along_axis(logits, rows[:, 1:, None], -1).mean()

    @jax.jit
    def step(P, m, v, i, starts):
        rows = data[starts[:, None] + jnp.arange(t + 1)]
        value, g = jax.value_and_grad(loss)(P, rows)
        g = {**g, "cos": 0 * g["cos"], "sin": 0 * g["sin"]}
        rate = 2e-3 * jnp.minimum(1, (i + 1) / 50) * (1 - i / steps)
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
        v = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, v, g)
        update = lambda p, m, v: p - rate * m / (1 - 0.9 ** (i + 1)) / (jnp.sqrt(v / (1 - 0.99 ** (i + 1))) + 1e-8)
        return jax.tree.map(update, P, m, v), m, v, value

    P, rng = initial_parameters(vocabulary), np.random.default_rng(2)
    m = v = jax.tree.map(jnp.zeros_like, P)
    for i in range(steps):
        P, m, v, value = step(P, m, v, i, rng.integers(0, len(text) - t - 1, batch))
        if i % 100 == 0 or i == steps - 1:
            print(f"step {i}: loss {value:.3f}", flush=True)
    round_weights = lambda a: np.asarray(jnp.asarray(a).astype(jnp.bfloat16).astype(jnp.float32))  # packs better
    return {**jax.tree.map(round_weights, P), "cos": np.asarray(P["cos"]), "sin": np.asarray(P["sin"])}


def empty_cache():
    rows = lambda: np.zeros((LENGTH, KV_HEADS, HEAD_DIM), np.float32)
    return [(rows(), rows()) for _ in range(LAYERS)]


def generate(P, vocabulary, count):
    """The prompt with what follows it, and the cache before its last token was taken in."""
    step, cache, tokens = jax.jit(decode_step), empty_cache(), [vocabulary.index(c) for c in PROMPT]
    for n in range(count):
        before = cache
        token, _, cache = step(P, cache, np.int32(tokens[n]), np.int32(n))
        if n + 1 == len(tokens):
            tokens.append(int(token))
    return "".join(vocabulary[i] for i in tokens), before, tokens[count - 1]


def wide(args):
    return jax.tree.map(lambda a: np.asarray(a).astype(np.float64) if np.asarray(a).dtype.kind == "f" else a, args)


def tolerance(got, true):
    """Six times XLA's own distance from the float64 value, and no less than 2e-6 of the largest one."""
    if got.dtype.kind != "f":
        assert (got == true).all()
        return {"exact": True}
    error, scale = np.abs(got - true).max(), np.abs(true).max()
    return {"rtol": 5e-7, "atol": float(f"{max(6 * error, 2e-6 * scale):.2g}")}


def write_program(args):
    flat, tree = jax.tree.flatten(args)
    donated = [i for i, a in enumerate(flat) if any(a is leaf for leaf in jax.tree.leaves(args[1]))]

    def decode(*leaves):
        return jax.tree.leaves(decode_step(*jax.tree.unflatten(tree, leaves)))

    lowered = jax.jit(decode, donate_argnums=donated, keep_unused=True).lower(*flat)
    with open(os.path.join(HERE, "program.hlo"), "w") as f:
        f.write(lowered.compiler_ir("hlo").as_hlo_text(True))
    got = [np.asarray(x) for x in lowered.compile()(*[jnp.array(a) for a in flat])]
    with jax.enable_x64(True):
        true = [np.asarray(x) for x in jax.jit(lambda a: jax.tree.leaves(decode_step(*a)))(wide(args))]
    names = lambda arrays: [a.dtype.name for a in arrays]
    meta = {"what": "One step of greedy decoding by a small Llama-style transformer over characters (rotary embedding, "
                    "grouped-query attention, SwiGLU), with a donated key/value cache.",
            "note": "Expected values are those of float64. " + tolerance.__doc__, "made_with": f"jax {jax.__version__}",
            "donated": donated, "dtypes": {"inputs": names(flat), "expected": names(got)},
            "tolerance": [tolerance(g, t) for g, t in zip(got, true)]}
    with open(os.path.join(HERE, "meta.json"), "w") as f:
        json.dump(meta, f, indent=1)
        f.write("\n")
    np.savez_compressed(os.path.join(HERE, "inputs.npz"), **{f"arg{i}": a for i, a in enumerate(flat)})
    np.savez_compressed(os.path.join(HERE, "expected.npz"), **{f"out{i}": t.astype(g.dtype) for i, (g, t) in enumerate(zip(got, true))})


def save_weights(P):
    """All weights one after the other in the order of the program's parameters."""
    np.concatenate([np.ravel(a) for a in jax.tree.leaves(P)]).tofile(os.path.join(HERE, "weights.bin"))


def load_weights(vocabulary):
    leaves, tree = jax.tree.flatten(initial_parameters(vocabulary))
    data = np.fromfile(os.path.join(HERE, "weights.bin"), np.float32)
    pieces = np.split(data, np.cumsum([a.size for a in leaves])[:-1])
    return jax.tree.unflatten(tree, [p.reshape(a.shape) for p, a in zip(pieces, leaves)])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", action="store_true")
    jax.config.update("jax_traceback_in_locations_limit", 0)  # no paths of this machine in the program
    if parser.parse_args().train:
        with open(os.path.join(HERE, "text.txt")) as f:
            text = f.read()
        with open(os.path.join(HERE, "vocabulary.txt"), "w") as f:
            f.write("".join(sorted(set(text))))
        save_weights(train(text, "".join(sorted(set(text)))))
    with open(os.path.join(HERE, "vocabulary.txt")) as f:
        vocabulary = f.read()
    P = load_weights(vocabulary)
    print(generate(P, vocabulary, LENGTH)[0])
    _, cache, token = generate(P, vocabulary, 100)
    cache = jax.tree.map(np.asarray, cache)
    write_program((P, cache, np.int32(token), np.int32(99)))


if __name__ == "__main__":
    main()
