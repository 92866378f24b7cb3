"""How far Paddle's predictor is off beside oneDNN, as JSON: `python paddle_onednn.py`, in Paddle's environment.

A sum is read twice, by its square and by an addition: the norm and the residual of a Llama.
"""

import json
import tempfile

import paddle
from paddle import inference, nn


class Sum(nn.Layer):
    """`x + x²` of a sum x of two tensors (2, 64), times a weight."""

    def __init__(self):
        super().__init__()
        self.weight = self.create_parameter([64], default_initializer=nn.initializer.Constant(1.0))

    def forward(self, left, right):
        both = left + right
        return (both + paddle.square(both)) * self.weight


def error(folder: str, left_out: str | None, onednn: bool) -> float:
    """The largest error of the saved program's output without a pass of that name, where one is told."""
    config = inference.Config(f"{folder}/model.json", f"{folder}/model.pdiparams")
    config.disable_glog_info()
    if left_out:
        config.delete_pass(left_out)
    if not onednn:
        config.disable_onednn()
    left, right = paddle.full([2, 64], 1.0), paddle.full([2, 64], 2.0)
    (output,) = inference.create_predictor(config).run([left, right])
    return float((output - 12.0).abs().max())


def main() -> None:
    paddle.seed(0)
    specification = [paddle.static.InputSpec([2, 64], "float32", name) for name in ("left", "right")]
    static = paddle.jit.to_static(Sum(), specification, full_graph=True, backend=None)
    with tempfile.TemporaryDirectory() as folder:
        paddle.jit.save(static, f"{folder}/model")
        errors = {
            "as it is": error(folder, None, onednn=True),
            "without writing in place": error(folder, "inplace_pass", onednn=True),
            "without oneDNN": error(folder, None, onednn=False),
        }
    print("\n" + json.dumps(errors))


if __name__ == "__main__":
    main()
