"""BERT-base in Paddle, timed by hand."""

import functools
import os
import tempfile

import loop
import paddle
from paddlenlp.transformers import BertConfig, BertModel

asked = loop.arguments("eager", "to_static", "inference")
paddle.set_device(asked.device)
dtype = "bfloat16" if asked.dtype == "bf16" else "float32"
paddle.set_default_dtype(dtype)
ids = paddle.randint(0, 30522, (asked.batch, asked.seq), "int64")


def fresh():
    model = BertModel(BertConfig())
    model.eval()
    model.to(dtype=dtype)
    return model


def synchronize(output):
    if asked.device == "gpu":
        paddle.device.cuda.synchronize()


def predictor(folder):
    specification = [paddle.static.InputSpec([asked.batch, asked.seq], "int64", "ids")]
    paddle.jit.save(paddle.jit.to_static(fresh(), specification, full_graph=True), f"{folder}/model")
    name = next(name for name in ("model.json", "model.pdmodel") if os.path.exists(f"{folder}/{name}"))
    config = paddle.inference.Config(f"{folder}/{name}", f"{folder}/model.pdiparams")
    if asked.device == "gpu":
        config.enable_use_gpu(100, 0)
    config.set_cpu_math_library_num_threads(asked.threads)
    found = paddle.inference.create_predictor(config)
    found.get_input_handle(found.get_input_names()[0]).share_external_data(ids)
    return found.run


for mode in asked.mode:
    paddle.base.core.set_num_threads(asked.threads)
    with tempfile.TemporaryDirectory() as folder, paddle.no_grad():
        if mode == "inference":
            call = predictor(folder)
        else:
            layer = fresh() if mode == "eager" else paddle.jit.to_static(fresh(), full_graph=True)
            call = functools.partial(layer, ids)
        loop.report(mode, loop.measure(call, synchronize, asked.seconds))
