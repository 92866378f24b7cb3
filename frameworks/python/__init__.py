"""Python itself behind the boundary: the cost of an addition without a framework."""

from frameworks.description import Framework, Mode, openmp_environment

FRAMEWORK = Framework(
    name="python",
    title="Python",
    distributions=("python",),
    modes=(Mode("eager", graph=False, summary="the interpreter", devices=("cpu",), passes=("inference",)),),
    default_graph=(),
    models={"plain": ("op-overhead",)},
    environment=lambda threads, device_kind: openmp_environment(threads),
    is_reference=True,
)
