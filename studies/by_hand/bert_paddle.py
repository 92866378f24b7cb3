"""BERT in Paddle, timed by hand."""

import os
import tempfile

import loop
import paddle
from paddlenlp.transformers import BertConfig, BertModel


def build(options):
    paddle.set_device(options.device)
    dtype = "bfloat16" if options.dtype == "bf16" else "float32"
    paddle.set_default_dtype(dtype)
    paddle.base.core.set_num_threads(options.threads)
    if options.device == "gpu":  # no TF32
        paddle.base.core.set_cublas_switch(False)
        paddle.base.core.set_cudnn_switch(False)
    ids = [paddle.randint(0, 30522, (options.batch, options.seq), "int64") for _ in range(options.inputs)]

    def fresh():
        model = BertModel(BertConfig(**loop.CONFIGS[options.workload]))
        model.eval()
        model.to(dtype=dtype)
        return model

    def predictor():
        specification = [paddle.static.InputSpec([options.batch, options.seq], "int64", "ids")]
        with tempfile.TemporaryDirectory() as folder:
            paddle.jit.save(paddle.jit.to_static(fresh(), specification, full_graph=True), f"{folder}/model")
            name = next(name for name in ("model.json", "model.pdmodel") if os.path.exists(f"{folder}/{name}"))
            config = paddle.inference.Config(f"{folder}/{name}", f"{folder}/model.pdiparams")
            config.disable_glog_info()
            if options.device == "gpu":
                config.enable_use_gpu(100, 0)
            config.set_cpu_math_library_num_threads(options.threads)
            engine = paddle.inference.create_predictor(config)
        handle = engine.get_input_handle(engine.get_input_names()[0])

        def call(tokens):
            handle.share_external_data(tokens)
            engine.run()
            paddle.base.core.set_num_threads(options.threads)  # it leaves OpenMP at one

        return call

    def synchronize(output):
        if options.device == "gpu":
            paddle.device.cuda.synchronize()

    modes = {"eager": fresh, "to_static": lambda: paddle.jit.to_static(fresh(), full_graph=True)}
    return loop.Script(modes | {"inference": predictor}, ids, synchronize, paddle.no_grad)


if __name__ == "__main__":
    loop.main(build)
