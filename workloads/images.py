"""Common parts of workloads on images: their parameters, their inputs, and convolution's cost."""

from __future__ import annotations

import numpy as np

from workloads.spec import Arrays, Parameter, Parameters

CHANNELS = 3
LAYOUTS = ("nchw", "nhwc")
PATCHES, NOISE = 2, 0.25


def image_parameters(image: int, smallest: int) -> tuple[Parameter, ...]:
    """Return batch size, edge of the square images and layout; `image` is the default edge."""
    return (
        Parameter("batch_size", "batch", 1, "images per call"),
        Parameter("image", "image", image, "pixels along an edge of the square images", minimum=smallest),
        Parameter(
            "layout", "layout", "nchw", "order of axes in memory: channels first (default of PyTorch and "
            "PaddlePaddle) or last (default of TensorFlow and JAX)",
            choices=LAYOUTS,
        ),
    )  # fmt: skip


def image_shape(parameters: Parameters) -> tuple[int, ...]:
    """Return the shape of a call's images in their layout."""
    batch, edge = int(parameters["batch_size"]), int(parameters["image"])
    return (batch, CHANNELS, edge, edge) if parameters["layout"] == "nchw" else (batch, edge, edge, CHANNELS)


def images(parameters: Parameters, seed: int) -> Arrays:
    """Return one seeded set of images, (B, C, E, E) or (B, E, E, C) by layout: coloured patches and noise, both normal.

    The values are the same in both layouts. On noise alone a network with random weights gives nearly the same features
    for every image, and parity would not distinguish images.
    """
    rng, (batch, channels, edge, _) = np.random.default_rng(seed), image_shape({**parameters, "layout": "nchw"})
    coarse = rng.standard_normal((batch, channels, PATCHES, PATCHES), dtype=np.float32)
    places = np.arange(edge) * PATCHES // edge
    pixels = rng.standard_normal((batch, channels, edge, edge), dtype=np.float32) * np.float32(NOISE)
    pixels += coarse[:, :, places][:, :, :, places]
    return {"images": pixels if parameters["layout"] == "nchw" else np.ascontiguousarray(pixels.transpose(0, 2, 3, 1))}


def pixels(layout: str) -> tuple[int, int]:
    """Return the axes of height and width of images."""
    return (2, 3) if layout == "nchw" else (1, 2)


def channels_first(parameters: Parameters, inputs: Arrays) -> np.ndarray:
    """Return a call's images as (B, 3, H, W), from either layout."""
    return inputs["images"] if parameters["layout"] == "nchw" else inputs["images"].transpose(0, 3, 1, 2)


def windows_along(edge: int, size: int, stride: int, padding: int) -> int:
    """Return how many windows of `size` fit along a padded edge."""
    return (edge + 2 * padding - size) // stride + 1


def convolution_cost(
    batch: int, channels: tuple[int, int], edges: tuple[int, int], size: int, width: int
) -> tuple[int, int]:
    """Count (FLOPs, bytes) of a convolution without bias, from and to `channels` and `edges`, `width` bytes a value.

    As usually counted (He et al. 2016, table 1, with two operations a multiply-add): a window at the border takes as
    many operations as any other. Input, weights and output move once.
    """
    (inputs, outputs), (before, after) = channels, edges
    flops = 2 * batch * after * after * outputs * inputs * size * size
    values = batch * (before * before * inputs + after * after * outputs) + outputs * inputs * size * size
    return flops, width * values
