"""AOTInductor, a library made of the exported model and loaded again, beside Inductor under torch.compile."""

import tempfile

import torch
import turns

from frameworks.torch.models import plain


def trials(options):
    workload, parameters, weights, inputs = turns.model("bert-tiny")
    adapter = turns.adapter("torch", parameters, options.threads)
    cell = turns.cell("torch", parameters, options.threads)
    (ids,) = adapter.place(cell, inputs)
    for attention in ("explicit", "fused"):
        tensors = {name: torch.from_numpy(array.copy()) for name, array in weights.items()}
        model = plain.build(workload, {**parameters, "attention": attention}, tensors)
        model.eval()
        torch.compiler.reset()  # the other model's code, whose guards would be looked through
        with torch.inference_mode():
            compiled = torch.compile(model, fullgraph=True, dynamic=False)
        with tempfile.TemporaryDirectory() as folder, torch.no_grad():
            exported = torch.export.export(model, (ids,))
            package = torch._inductor.aoti_compile_and_package(exported, package_path=f"{folder}/model.pt2")
            ahead = torch._inductor.aoti_load_package(package)

        def call(model):
            with torch.inference_mode():
                return model(ids)

        torch.testing.assert_close(call(ahead), call(model), atol=1e-4, rtol=1e-4)
        yield (
            f"bert-tiny, {attention} attention",
            {
                "inductor": lambda model=compiled: call(model),
                "AOTInductor": lambda model=ahead: call(model),
                "eager": lambda model=model: call(model),
            },
        )


if __name__ == "__main__":
    turns.main(trials)
