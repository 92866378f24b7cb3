"""The workloads' mathematics once more, in float64: loops over positions, einsum and math.erf, no matrix products."""

from __future__ import annotations

import math

import numpy as np


def standard64(row, epsilon):
    mean = sum(row) / len(row)
    variance = sum((value - mean) ** 2 for value in row) / len(row)
    return (row - mean) / math.sqrt(variance + epsilon)


def norm64(row, weights, name, epsilon):
    return standard64(row, epsilon) * weights[f"{name}.weight"] + weights[f"{name}.bias"]


def linear64(row, weights, name):
    return np.einsum("oi,i->o", weights[f"{name}.weight"], row) + weights[f"{name}.bias"]


def attention64(q, k, v, heads, causal):
    """Context of every position: for each head, weights over positions by the exponential of q k / sqrt(width).

    Over all positions, or, if `causal`, over those up to its own.
    """
    width = len(q[0]) // heads
    context = []
    for i in range(len(q)):
        attended = range(i + 1 if causal else len(q))
        parts = []
        for head in range(heads):
            of_head = slice(head * width, (head + 1) * width)
            exponentials = [math.exp(np.dot(q[i][of_head], k[j][of_head]) / math.sqrt(width)) for j in attended]
            parts.append(sum(e * v[j][of_head] for j, e in enumerate(exponentials)) / sum(exponentials))
        context.append(np.concatenate(parts))
    return context


def bert64(model, parameters, weights, inputs):
    embeddings = [weights[f"embeddings.{kind}_embeddings.weight"] for kind in ("word", "position", "token_type")]
    hidden, pooled = [], []
    for ids in inputs["input_ids"]:
        rows = [embeddings[0][token] + embeddings[1][place] + embeddings[2][0] for place, token in enumerate(ids)]
        rows = [norm64(row, weights, "embeddings.LayerNorm", 1e-12) for row in rows]
        for layer in range(model.layers):
            name = f"encoder.layer.{layer}"
            names = (f"{name}.attention.self.{part}" for part in ("query", "key", "value"))
            q, k, v = ([linear64(row, weights, part) for row in rows] for part in names)
            context = attention64(q, k, v, model.heads, causal=False)
            context = [linear64(row, weights, f"{name}.attention.output.dense") for row in context]
            rows = [
                norm64(r + c, weights, f"{name}.attention.output.LayerNorm", 1e-12)
                for r, c in zip(rows, context, strict=True)
            ]
            wide = [linear64(row, weights, f"{name}.intermediate.dense") for row in rows]
            wide = [np.array([x * (1 + math.erf(x / math.sqrt(2))) / 2 for x in row]) for row in wide]
            narrow = [linear64(row, weights, f"{name}.output.dense") for row in wide]
            rows = [
                norm64(r + n, weights, f"{name}.output.LayerNorm", 1e-12) for r, n in zip(rows, narrow, strict=True)
            ]
        hidden.append(rows)
        pooled.append([math.tanh(x) for x in linear64(rows[0], weights, "pooler.dense")])
    return {"last_hidden_state": np.array(hidden), "pooler_output": np.array(pooled)}


def mlp64(model, parameters, weights, inputs):
    rows = []
    for row in inputs["x"]:
        for layer in range(parameters["depth"]):
            row = linear64(row, weights, f"layers.{layer}.linear")
            row = norm64(row, weights, f"layers.{layer}.norm", 1e-5)
            row = np.array([max(value, 0.0) for value in row])
        rows.append(row)
    return {"output": np.array(rows)}


def matmul64(model, parameters, weights, inputs):
    return {"output": np.einsum("ik,jk->ij", inputs["x"], weights["weight"])}


def chain64(model, parameters, weights, inputs):
    return {"output": np.array([value * weights["factor"][0] ** parameters["repeat"] for value in inputs["x"]])}


def cosines64(model, parameters, weights, inputs):
    values = list(inputs["x"])
    for _ in range(parameters["repeat"]):
        values = [math.cos(value) for value in values]
    return {"output": np.array(values)}


def doubled64(model, parameters, weights, inputs):
    return {"output": np.array([2 * float(value) for value in inputs["x"]])}


def additions64(model, parameters, weights, inputs):
    downs = parameters["additions"] // 2
    ups = parameters["additions"] - downs
    return {"output": np.array([x + ups * weights["up"][0] + downs * weights["down"][0] for x in inputs["x"]])}


def gpt64(model, parameters, weights, inputs):
    logits = []
    for ids in inputs["input_ids"]:
        rows = [weights["wte.weight"][token] + weights["wpe.weight"][place] for place, token in enumerate(ids)]
        for layer in range(model.layers):
            normed = [standard64(row, 1e-5) * weights[f"h.{layer}.ln_1.weight"] for row in rows]
            products = np.split(weights[f"h.{layer}.attn.c_attn.weight"], 3, axis=0)
            q, k, v = ([matrix @ row for row in normed] for matrix in products)
            context = attention64(q, k, v, model.heads, causal=True)
            rows = [r + weights[f"h.{layer}.attn.c_proj.weight"] @ c for r, c in zip(rows, context, strict=True)]
            for place, row in enumerate(rows):
                wide = weights[f"h.{layer}.mlp.c_fc.weight"] @ (
                    standard64(row, 1e-5) * weights[f"h.{layer}.ln_2.weight"]
                )
                wide = np.array([x * (1 + math.erf(x / math.sqrt(2))) / 2 for x in wide])
                rows[place] = row + weights[f"h.{layer}.mlp.c_proj.weight"] @ wide
        last = standard64(rows[-1], 1e-5) * weights["ln_f.weight"]
        logits.append([float(np.dot(word, last)) for word in weights["wte.weight"]])
    return {"logits": np.array(logits)}


def rms64(row, weight):
    return row / math.sqrt(sum(value * value for value in row) / len(row) + 1e-5) * weight


def turned64(head, place, theta, scaling):
    """A head with each pair of values, a half of it apart, turned as a complex number by the angle of its place."""
    half, turned = len(head) // 2, list(head)
    for i in range(half):
        frequency = theta ** (-2 * i / len(head))
        if scaling is not None:
            wavelength = 2 * math.pi / frequency
            low, high = scaling.original / scaling.low, scaling.original / scaling.high
            if wavelength > low:
                frequency /= scaling.factor
            elif wavelength > high:
                smooth = (scaling.original / wavelength - scaling.low) / (scaling.high - scaling.low)
                frequency = (1 - smooth) * frequency / scaling.factor + smooth * frequency
        pair = complex(head[i], head[i + half]) * complex(math.cos(place * frequency), math.sin(place * frequency))
        turned[i], turned[i + half] = pair.real, pair.imag
    return np.array(turned)


def llama64(model, parameters, weights, inputs):
    """One sequence after the other, one head after the other; a head's keys are those of its group."""
    size, outputs = (
        len(weights["model.layers.0.self_attn.q_proj.weight"]) // model.heads,
        {"logits": [], "keys": [], "values": []},
    )
    for ids in inputs["input_ids"]:
        rows, cached = [weights["model.embed_tokens.weight"][token] for token in ids], ([], [])
        for layer in range(model.layers):
            of = {
                name.removeprefix(f"model.layers.{layer}.").removesuffix(".weight"): value
                for name, value in weights.items()
                if name.startswith(f"model.layers.{layer}.")
            }
            normed = [rms64(row, of["input_layernorm"]) for row in rows]
            q, k, v = (
                [np.split(of[f"self_attn.{n}_proj"] @ row, len(of[f"self_attn.{n}_proj"]) // size) for row in normed]
                for n in "qkv"
            )
            if "self_attn.q_norm" in of:
                q, k = ([[rms64(h, of[f"self_attn.{n}_norm"]) for h in y] for y in x] for n, x in (("q", q), ("k", k)))
            q, k = (
                [[turned64(h, place, model.theta, model.scaling) for h in heads] for place, heads in enumerate(y)]
                for y in (q, k)
            )
            cached[0].append(np.array(k).transpose(1, 0, 2))  # (nkv, T, hs)
            cached[1].append(np.array(v).transpose(1, 0, 2))
            for place, row in enumerate(rows):
                parts = []
                for head in range(model.heads):
                    group = head * model.kv_heads // model.heads
                    shares = [math.exp(np.dot(q[place][head], k[j][group]) / math.sqrt(size)) for j in range(place + 1)]
                    parts.append(sum(share * v[j][group] for j, share in enumerate(shares)) / sum(shares))
                row = row + of["self_attn.o_proj"] @ np.concatenate(parts)
                inner = rms64(row, of["post_attention_layernorm"])
                gate = np.array([x / (1 + math.exp(-x)) for x in of["mlp.gate_proj"] @ inner])
                rows[place] = row + of["mlp.down_proj"] @ (gate * (of["mlp.up_proj"] @ inner))
        head = weights["model.embed_tokens.weight"] if model.tied else weights["lm_head.weight"]
        outputs["logits"].append(head @ rms64(rows[-1], weights["model.norm.weight"]))
        outputs["keys"].append(cached[0])
        outputs["values"].append(cached[1])
    by_layer = {name: np.array(outputs[name]).swapaxes(0, 1) for name in ("keys", "values")}  # (layers, B, nkv, T, hs)
    return {"logits": np.array(outputs["logits"]), **by_layer}


def convolution64(image, kernel, stride, padding):
    """(C, H, W) under (O, C, k, k): a sum over a window for every output."""
    _, height, width = image.shape
    size = kernel.shape[2]
    wide = np.zeros((len(image), height + 2 * padding, width + 2 * padding))
    wide[:, padding : padding + height, padding : padding + width] = image
    rows, columns = ((edge + 2 * padding - size) // stride + 1 for edge in (height, width))
    result = np.empty((len(kernel), rows, columns))
    for i, j in np.ndindex(rows, columns):
        window = wide[:, i * stride : i * stride + size, j * stride : j * stride + size]
        result[:, i, j] = np.einsum("ocij,cij->o", kernel, window)
    return result


def resnet64(model, parameters, weights, inputs):
    """Blocks by what their weights are called and how large they are; a stage after the first begins with a stride."""

    def normed(image, name):
        mean, variance, scale, offset = (
            weights[f"{name}.{tensor}"] for tensor in ("running_mean", "running_var", "weight", "bias")
        )
        return np.stack(
            [(plane - mean[c]) / math.sqrt(variance[c] + 1e-5) * scale[c] + offset[c] for c, plane in enumerate(image)]
        )

    def rectified(image):
        return np.where(image > 0, image, 0.0)

    def convolved(image, name, norm, stride=1):
        kernel = weights[f"{name}.weight"]
        return normed(convolution64(image, kernel, stride, kernel.shape[2] // 2), norm)

    logits = []
    for image in inputs["images"] if parameters["layout"] == "nchw" else np.moveaxis(inputs["images"], 3, 1):
        x = rectified(convolved(image, "conv1", "bn1", 2))
        pooled = np.empty((len(x), (x.shape[1] + 1) // 2, (x.shape[2] + 1) // 2))
        for i, j in np.ndindex(*pooled.shape[1:]):
            pooled[:, i, j] = x[:, max(2 * i - 1, 0) : 2 * i + 2, max(2 * j - 1, 0) : 2 * j + 2].max((1, 2))
        x = pooled
        for stage, count in enumerate(model.stages, start=1):
            for index in range(count):
                name, stride = f"layer{stage}.{index}", 2 if stage > 1 and index == 0 else 1
                y = rectified(convolved(x, f"{name}.conv1", f"{name}.bn1"))
                y = rectified(convolved(y, f"{name}.conv2", f"{name}.bn2", stride))
                y = convolved(y, f"{name}.conv3", f"{name}.bn3")
                if f"{name}.downsample.0.weight" in weights:
                    x = convolved(x, f"{name}.downsample.0", f"{name}.downsample.1", stride)
                x = rectified(x + y)
        logits.append(linear64(np.array([plane.sum() / plane.size for plane in x]), weights, "fc"))
    return {"logits": np.array(logits)}


def vit64(model, parameters, weights, inputs):
    logits = []
    for image in inputs["images"] if parameters["layout"] == "nchw" else np.moveaxis(inputs["images"], 3, 1):
        patches = convolution64(image, weights["conv_proj.weight"], model.patch, 0)
        rows = [weights["class_token"][0, 0]]
        rows += [patches[:, i, j] + weights["conv_proj.bias"] for i, j in np.ndindex(*patches.shape[1:])]
        rows = [row + place for row, place in zip(rows, weights["encoder.pos_embedding"][0], strict=True)]
        for layer in range(model.layers):
            name = f"encoder.layers.encoder_layer_{layer}"
            parts = [
                dict(zip(("in.weight", "in.bias"), pair, strict=True))
                for pair in zip(
                    np.split(weights[f"{name}.self_attention.in_proj_weight"], 3),
                    np.split(weights[f"{name}.self_attention.in_proj_bias"], 3),
                    strict=True,
                )
            ]
            normed = [norm64(row, weights, f"{name}.ln_1", 1e-6) for row in rows]
            q, k, v = ([linear64(row, part, "in") for row in normed] for part in parts)
            context = attention64(q, k, v, model.heads, causal=False)
            for place, row in enumerate(rows):
                row = row + linear64(context[place], weights, f"{name}.self_attention.out_proj")
                wide = linear64(norm64(row, weights, f"{name}.ln_2", 1e-6), weights, f"{name}.mlp.0")
                wide = np.array([x * (1 + math.erf(x / math.sqrt(2))) / 2 for x in wide])
                rows[place] = row + linear64(wide, weights, f"{name}.mlp.3")
        logits.append(linear64(norm64(rows[0], weights, "encoder.ln", 1e-6), weights, "heads.head"))
    return {"logits": np.array(logits)}


def lstm64(model, parameters, weights, inputs):
    states = []
    for ids in inputs["input_ids"]:
        rows = [weights["embedding.weight"][token] for token in ids]
        for layer in (0, 1):
            kernels = (weights[f"lstm.weight_{source}_l{layer}"] for source in ("ih", "hh"))
            of_input, of_state = (np.split(kernel, 4) for kernel in kernels)
            biases = np.split(weights[f"lstm.bias_ih_l{layer}"] + weights[f"lstm.bias_hh_l{layer}"], 4)
            state = memory = np.zeros(model.hidden)
            for place, row in enumerate(rows):
                sums = [of_input[gate] @ row + of_state[gate] @ state + biases[gate] for gate in range(4)]
                taken, kept, shown = (1 / (1 + np.exp(-sums[gate])) for gate in (0, 1, 3))
                memory = kept * memory + taken * np.tanh(sums[2])
                state = shown * np.tanh(memory)
                rows[place] = state
        states.append(rows[-1])
    return {"state": np.array(states), "logits": np.array([linear64(s, weights, "classifier") for s in states])}


INDEPENDENT = {"bert": bert64, "mlp": mlp64, "matmul": matmul64, "pointwise-chain": chain64, "fused-cos": cosines64}
INDEPENDENT |= {"stream": doubled64, "op-overhead": additions64, "gpt": gpt64, "llama": llama64, "qwen3": llama64}
INDEPENDENT |= {"resnet": resnet64, "vit": vit64, "lstm": lstm64}
