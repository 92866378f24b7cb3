"""`to_static` by SOT, which users have who do not ask for `full_graph`, beside the whole graph and eager mode.

The trial's name tells into how many graphs SOT divided the model, and how often it broke off.
"""

import paddle
import turns
from paddle.jit.sot.utils.envs import ENV_SOT_COLLECT_INFO
from paddle.jit.sot.utils.info_collector import InfoCollector, InfoType

from frameworks.paddle.models import plain

COLLECTED = {"subgraph_info": [], "breakgraph_reason": []}


def captured(call):
    """What SOT made of a model that has not been called yet: graphs of a call, their operators, and breaks."""
    ENV_SOT_COLLECT_INFO.set(COLLECTED)
    call()
    breaks = InfoCollector().get_info_dict(InfoType.E2E_INFO).get("BreakGraphReasonInfo", [])
    graphs = InfoCollector().get_info_dict(InfoType.STEP_INFO).get("SubGraphInfo", [])
    told = f"SOT: {len(graphs)} graph(s) of {'+'.join(str(g.op_num) for g in graphs)} operators, {len(breaks)} breaks"
    InfoCollector().clear()
    ENV_SOT_COLLECT_INFO.set({})  # collected in every call otherwise
    return told


def trials(options):
    workload, parameters, weights, inputs = turns.model("bert-tiny")
    adapter = turns.adapter("paddle", parameters, options.threads)
    cell = turns.cell("paddle", parameters, options.threads)
    (ids,) = adapter.place(cell, inputs)
    models = [plain.TRANSFORMERS["bert"](workload, weights, False) for _ in range(3)]
    for model in models:
        model.eval()
    model, graph, parts = models
    whole, sot = paddle.jit.to_static(graph, full_graph=True), paddle.jit.to_static(parts, full_graph=False)

    def call(model):
        with paddle.no_grad():
            return model(ids)

    yield (
        f"bert-tiny, {captured(lambda: call(sot))}",
        {
            "to_static(full_graph=True)": lambda: call(whole),
            "to_static by SOT": lambda: call(sot),
            "eager": lambda: call(model),
        },
    )


if __name__ == "__main__":
    turns.main(trials)
