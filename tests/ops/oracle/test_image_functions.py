"""Functions of tf.image: TensorFlow's nodes and TensorFlow's pixels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tensorflow")
import tensorflow.compat.v1 as real_tf

import dtflab
from tests.oracle.graph_defs import assert_same_graph

BOTH = (real_tf, dtflab)

# Static shapes of one image, and of a batch.
ONE: list[Any] = [(6, 7, 3), (None, None, 3), (None, None, None), None]
BATCH: list[Any] = [(2, 6, 7, 3), (None, None, None, 3), (None, 6, 7, 3)]


def pixels(kind: Any, *shape: int) -> np.ndarray:
    random = np.random.RandomState(1)
    if np.dtype(kind).kind == "f":
        return random.uniform(0, 1, shape).astype(kind)
    return random.randint(0, min(np.iinfo(kind).max, 2**31 - 2) + 1, shape).astype(kind)


Call = Callable[[Any, Any], Any]

GEOMETRY: dict[str, Call] = {
    "flip_left_right": lambda tf, x: tf.image.flip_left_right(x),
    "flip_up_down": lambda tf, x: tf.image.flip_up_down(x),
    "random_flip_left_right": lambda tf, x: tf.image.random_flip_left_right(x, seed=3),
    "random_flip_up_down": lambda tf, x: tf.image.random_flip_up_down(x, seed=4),
    "rot90": lambda tf, x: tf.image.rot90(x),
    "rot90 thrice": lambda tf, x: tf.image.rot90(x, k=7, name="turned"),
    "rot90 by a tensor": lambda tf, x: tf.image.rot90(x, tf.constant(2)),
    "transpose": lambda tf, x: tf.image.transpose_image(x),
    "transpose with a name": lambda tf, x: tf.image.transpose(x, name="t"),
    "crop_to_bounding_box": lambda tf, x: tf.image.crop_to_bounding_box(x, 1, 2, 3, 4),
    "crop by tensors": lambda tf, x: tf.image.crop_to_bounding_box(x, tf.constant(1), 2, tf.constant(3), 4),
    "pad_to_bounding_box": lambda tf, x: tf.image.pad_to_bounding_box(x, 1, 2, 9, 10),
    "pad by tensors": lambda tf, x: tf.image.pad_to_bounding_box(x, tf.constant(1), 2, 9, tf.constant(9)),
    "smaller": lambda tf, x: tf.image.resize_image_with_crop_or_pad(x, 4, 4),
    "larger": lambda tf, x: tf.image.resize_with_crop_or_pad(x, 8, 11),
    "narrower and higher": lambda tf, x: tf.image.resize_image_with_crop_or_pad(x, 9, 2),
    "to tensors": lambda tf, x: tf.image.resize_image_with_crop_or_pad(x, tf.constant(4), tf.constant(9)),
    "per_image_standardization": lambda tf, x: tf.image.per_image_standardization(x),
}
# For a rank that is known.
KNOWN_RANK: dict[str, Call] = {
    "grayscale_to_rgb": lambda tf, x: tf.image.grayscale_to_rgb(x[..., :1]),
    "central_crop": lambda tf, x: tf.image.central_crop(x, 0.5),
    "bilinear": lambda tf, x: tf.image.resize_images(x, [3, 9]),
    "bilinear, aligned": lambda tf, x: tf.image.resize_images(x, [3, 9], align_corners=True, name="r"),
    "nearest": lambda tf, x: tf.image.resize(x, (4, 5), tf.image.ResizeMethod.NEAREST_NEIGHBOR),
    "bicubic": lambda tf, x: tf.image.resize_images(x, [12, 5], method=tf.image.ResizeMethod.BICUBIC),
    "area": lambda tf, x: tf.image.resize_images(x, [4, 3], "area"),
    "of the same size": lambda tf, x: tf.image.resize_images(x, [6, 7]),
    "to a size in a tensor": lambda tf, x: tf.image.resize_images(x, tf.placeholder_with_default([3, 4], [2])),
    "aspect ratio": lambda tf, x: tf.image.resize_images(x, [9, 8], preserve_aspect_ratio=True),
    "resize_image_with_pad": lambda tf, x: tf.image.resize_image_with_pad(x, 9, 5),
    "resize_image_with_pad to tensors": lambda tf, x: tf.image.resize_image_with_pad(
        x, tf.constant(4), tf.constant(8), method=tf.image.ResizeMethod.NEAREST_NEIGHBOR, align_corners=True
    ),
    "total_variation": lambda tf, x: tf.image.total_variation(tf.cast(x, tf.float32)),
    "the whole": lambda tf, x: tf.image.central_crop(x, 1.0),
    "central_crop by a tensor": lambda tf, x: tf.image.central_crop(x, tf.placeholder_with_default(0.7, [])),
}
LIGHT: dict[str, Call] = {
    "adjust_brightness": lambda tf, x: tf.image.adjust_brightness(x, 0.25),
    "random_brightness": lambda tf, x: tf.image.random_brightness(x, 0.3, seed=5),
    "adjust_contrast": lambda tf, x: tf.image.adjust_contrast(x, 1.7),
    "random_contrast": lambda tf, x: tf.image.random_contrast(x, 0.2, 1.8, seed=6),
    "adjust_gamma": lambda tf, x: tf.image.adjust_gamma(x, 0.7, 0.9),
    "adjust_gamma by a tensor": lambda tf, x: tf.image.adjust_gamma(x, tf.constant(2.0)),
    "adjust_hue": lambda tf, x: tf.image.adjust_hue(x, 0.3),
    "adjust_hue back": lambda tf, x: tf.image.adjust_hue(x, -0.9, name="hue"),
    "random_hue": lambda tf, x: tf.image.random_hue(x, 0.4, seed=7),
    "adjust_saturation": lambda tf, x: tf.image.adjust_saturation(x, 0.4),
    "adjust_saturation up": lambda tf, x: tf.image.adjust_saturation(x, 2.5),
    "random_saturation": lambda tf, x: tf.image.random_saturation(x, 0.5, 1.5, seed=8),
    "rgb_to_grayscale": lambda tf, x: tf.image.rgb_to_grayscale(x),
    "as float32": lambda tf, x: tf.image.convert_image_dtype(x, tf.float32),
    "as float64": lambda tf, x: tf.image.convert_image_dtype(x, tf.float64, name="wide"),
    "as uint8": lambda tf, x: tf.image.convert_image_dtype(x, tf.uint8),
    "as uint8, saturated": lambda tf, x: tf.image.convert_image_dtype(x, tf.uint8, saturate=True),
    "as uint16": lambda tf, x: tf.image.convert_image_dtype(x, tf.uint16),
    "as int32, saturated": lambda tf, x: tf.image.convert_image_dtype(x, tf.int32, True),
}
OF_BATCHES: dict[str, Call] = {
    "image_gradients": lambda tf, x: tf.stack(tf.image.image_gradients(x)),
    "sobel_edges": lambda tf, x: tf.image.sobel_edges(x),
    "psnr": lambda tf, x: tf.image.psnr(x, x[::-1] * 0.8, 1.0),
    "psnr of uint8": lambda tf, x: tf.image.psnr(tf.cast(x * 255, tf.uint8), tf.zeros([6, 7, 3], tf.uint8), 255),
    "resize_bilinear": lambda tf, x: tf.image.resize_bilinear(x, [3, 9], half_pixel_centers=True),
    "resize_nearest_neighbor": lambda tf, x: tf.image.resize_nearest_neighbor(x, [3, 9], name="n"),
    "resize_bicubic": lambda tf, x: tf.image.resize_bicubic(x, [3, 9], half_pixel_centers=True),
    "resize_area": lambda tf, x: tf.image.resize_area(x, [3, 9], align_corners=True),
}
ALL = {**GEOMETRY, **KNOWN_RANK, **LIGHT, **OF_BATCHES}


def shapes_for(name: str) -> list[Any]:
    if name in GEOMETRY:
        return ONE + BATCH
    if name in KNOWN_RANK:
        return ONE[:3] + BATCH
    if name in OF_BATCHES:
        return BATCH
    return [ONE[0], ONE[1], BATCH[1]]


def runs_in_tensorflow(name: str, shape: Any) -> bool:
    """TensorFlow's optimizer (Grappler) makes it fail where a branch for another rank transposes."""
    return shape is not None or not name.startswith(("rot90", "transpose"))


def program(call: Call, shape: Any, kind: Any) -> Callable[[Any], Any]:
    def run(tf: Any) -> Any:
        tf.set_random_seed(1)
        x = tf.placeholder(kind, shape, name="x")
        return x, call(tf, x)

    return run


def kinds_for(name: str) -> tuple[Any, ...]:
    if name in OF_BATCHES:
        return (np.float32,)
    return (np.float32, np.uint8, np.uint16, np.int32) if name in LIGHT else (np.float32, np.uint8)


@pytest.mark.parametrize("name", ALL)
def test_graph(name):
    for shape in shapes_for(name):
        for kind in kinds_for(name):
            assert_same_graph(program(ALL[name], shape, kind))


@pytest.mark.parametrize("name", ALL)
def test_values_and_static_shapes(name):
    """Three steps each, so that random ones draw three times."""
    for shape in shapes_for(name):
        if not runs_in_tensorflow(name, shape):
            continue
        for kind in kinds_for(name):
            found = [steps(tf, program(ALL[name], shape, kind), shape, kind) for tf in BOTH]
            (theirs, static), (ours, our_static) = found
            assert our_static == static, (shape, kind)
            for a, b in zip(ours, theirs, strict=True):
                assert a.dtype == b.dtype
                largest = 1.0 if a.dtype.kind == "f" else np.iinfo(a.dtype).max
                # Of the white that there is; and an integer may fall on the other side where a float is rounded.
                atol = 2e-6 * largest + (a.dtype.kind != "f")
                np.testing.assert_allclose(
                    a.astype("d"), b.astype("d"), rtol=1e-5, atol=atol, err_msg=f"{shape} {kind}"
                )


def steps(tf: Any, run: Callable[[Any], Any], shape: Any, kind: Any) -> tuple[list[np.ndarray], Any]:
    with tf.Graph().as_default(), tf.Session() as session:
        x, y = run(tf)
        value = pixels(kind, *((2, 6, 7, 3) if shape is not None and len(shape) == 4 else (6, 7, 3)))
        results = [session.run(y, {x: value}) for _ in range(3)]
        return results, None if y.shape.ndims is None else y.shape.as_list()


def test_transpose_of_an_unknown_rank():
    for shape in ((2, 3, 1), (4, 2, 3, 1)):
        with dtflab.Graph().as_default(), dtflab.Session() as session:
            x = dtflab.placeholder("float32")
            y, turned = dtflab.image.transpose(x), dtflab.image.rot90(x, 3)
            value = pixels("float32", *shape)
            found, quarter = session.run([y, turned], {x: value})
        np.testing.assert_array_equal(found, value.swapaxes(-3, -2))
        np.testing.assert_array_equal(quarter, np.rot90(value, 3, (-3, -2)))


def distorted(tf: Any, image: Any) -> Any:
    """An image distorted for training as in the CIFAR-10 tutorial."""
    image = tf.random_crop(tf.cast(image, tf.float32), [5, 5, 3], seed=1)
    image = tf.image.random_flip_left_right(image, seed=2)
    image = tf.image.random_brightness(image, max_delta=63, seed=3)
    image = tf.image.random_contrast(image, lower=0.2, upper=1.8, seed=4)
    return tf.image.per_image_standardization(image)


def colored(tf: Any, image: Any) -> Any:
    """As ImageNet's preprocessing does it, with a flip by `cond`."""
    image = tf.image.convert_image_dtype(image, tf.float32)
    image = tf.image.resize_images(tf.image.central_crop(image, 0.875), [4, 4], align_corners=False)
    image = tf.image.random_saturation(image, lower=0.5, upper=1.5, seed=5)
    image = tf.image.random_hue(image, max_delta=0.2, seed=6)
    bright = tf.greater(tf.reduce_mean(image), 0.5)
    image = tf.cond(bright, lambda: tf.image.flip_up_down(image), lambda: tf.image.adjust_gamma(image, 0.5))
    return tf.clip_by_value(image, 0.0, 1.0)


PIPELINES = [distorted, colored]


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_pipelines_have_the_same_graph(pipeline):
    for shape in ONE[:2]:
        assert_same_graph(program(pipeline, shape, np.uint8))


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_pipelines_in_a_data_set(pipeline):
    """Functions of `map` see image after image; what is random is drawn as in TensorFlow."""
    images = pixels(np.uint8, 5, 6, 7, 3)
    found = []
    for tf in BOTH:
        with tf.Graph().as_default(), tf.Session() as session:
            tf.set_random_seed(9)
            data = tf.data.Dataset.from_tensor_slices(images).map(lambda x, tf=tf: pipeline(tf, x)).batch(5)
            found.append(session.run(tf.data.make_one_shot_iterator(data).get_next()))
    np.testing.assert_allclose(found[1], found[0], 1e-4, 1e-5)


@pytest.mark.parametrize("way", [{}, {"align_corners": True}, {"half_pixel_centers": True}])
@pytest.mark.parametrize("name", ["resize_bilinear", "resize_bicubic", "resize_nearest_neighbor"])
def test_gradients_of_resizing(name, way):
    found = []
    for tf in BOTH:
        with tf.Graph().as_default(), tf.Session() as session:
            x = tf.constant(pixels(np.float32, 2, 5, 7, 3))
            y = getattr(tf.image, name)(x, [8, 3], **way)
            found.append(session.run(tf.gradients(tf.square(y), x)[0]))
    np.testing.assert_allclose(found[1], found[0], 1e-5, 1e-5)


@pytest.mark.parametrize("method", ["bilinear", "nearest"])
def test_gradients_of_crop_and_resize(method):
    boxes = [[0.1, 0.2, 0.7, 0.9], [0.8, 0.1, 0.3, 0.6], [-0.3, 0.15, 0.65, 1.4]]
    found = []
    for tf in BOTH:
        with tf.Graph().as_default(), tf.Session() as session:
            x, b = tf.constant(pixels(np.float32, 2, 5, 7, 3)), tf.constant(boxes)
            y = tf.image.crop_and_resize(x, b, box_indices=[1, 0, 1], crop_size=[4, 3], method=method)
            found.append(session.run(tf.gradients(tf.square(y), [x, b])))
    for ours, theirs in zip(found[1], found[0], strict=True):
        np.testing.assert_allclose(ours, theirs, 1e-4, 1e-4)


def test_one_color_stays_that_color():
    """By two weights, 15 of two pixels made six would be 14.999999, which is 14 as an integer."""
    with dtflab.Graph().as_default(), dtflab.Session() as session:
        plain = dtflab.ones([1, 2, 2, 3]) * 15
        for size in ([6, 6], [9, 11], [1, 13]):
            assert (session.run(dtflab.image.resize_images(plain, size)) == 15).all()


def wrong(call: Call, *shape: int) -> list[str]:
    """The kinds of errors that both raise."""
    kinds = []
    for tf in BOTH:
        with tf.Graph().as_default(), tf.Session() as session:
            with pytest.raises(Exception) as caught:  # the classes are compared
                x = tf.placeholder_with_default(np.zeros(shape, "f"), None)
                session.run(call(tf, x))
            kinds.append(type(caught.value).__name__)
    return kinds


@pytest.mark.parametrize(
    "call",
    [
        lambda tf, x: tf.image.resize_bilinear(x, [4, 5], align_corners=True, half_pixel_centers=True),
        lambda tf, x: tf.image.resize_bilinear(x, tf.placeholder_with_default([0, 5], [2])),
        lambda tf, x: tf.image.resize_bicubic(x[0], [4, 5]), lambda tf, x: tf.image.resize_area(x[:, :0], [4, 5]),
        lambda tf, x: tf.image.resize_nearest_neighbor(x[..., :0], [4, 5]),
        lambda tf, x: tf.image.resize_images(x, [4, 5]), lambda tf, x: tf.image.central_crop(x, 0.5),
        lambda tf, x: tf.image.resize_images(tf.zeros([1, 2, 2, 1]), [4]),
        lambda tf, x: tf.image.resize_images(tf.zeros([1, 2, 2, 1]), [4, 4], method=7),
        lambda tf, x: tf.image.flip_left_right(x[0, 0]), lambda tf, x: tf.image.flip_up_down(tf.zeros([2, 0, 3])),
        lambda tf, x: tf.image.crop_to_bounding_box(x[0], 2, 2, 9, 9), lambda tf, x: tf.image.random_hue(x, 0.6),
        lambda tf, x: tf.image.crop_to_bounding_box(tf.zeros([4, 4, 3]), 2, 2, 3, 3),
        lambda tf, x: tf.image.pad_to_bounding_box(tf.zeros([4, 4, 3]), 2, 2, 3, 3),
        lambda tf, x: tf.image.adjust_hue(x[..., :2], 0.1), lambda tf, x: tf.image.adjust_saturation(x[0, 0], 0.1),
        lambda tf, x: tf.image.adjust_contrast(x, [1.0]), lambda tf, x: tf.image.random_contrast(x, 2.0, 1.0),
        lambda tf, x: tf.image.rgb_to_hsv(x[..., :2]), lambda tf, x: tf.image.adjust_gamma(x, -1),
        lambda tf, x: tf.image.random_brightness(x, -1), lambda tf, x: tf.image.convert_image_dtype(x, tf.string),
        lambda tf, x: tf.image.grayscale_to_rgb(tf.ensure_shape(x, [2, 4, 4, 3])),
        lambda tf, x: tf.image.crop_and_resize(x, [[0.0, 0, 1, 1]], [2], [3, 3]),
        lambda tf, x: tf.image.crop_and_resize(x, [[0.0, np.nan, 1, 1]], [0], [3, 3]),
        lambda tf, x: tf.image.crop_and_resize(x, [[0.0, 0, 1, 1]], [0], tf.placeholder_with_default([3, 0], [2])),
        lambda tf, x: tf.image.total_variation(x), lambda tf, x: tf.image.image_gradients(x),
    ],
)  # fmt: skip
def test_errors_are_tensorflows(call):
    theirs, ours = wrong(call, 2, 4, 4, 3)
    assert ours == theirs
