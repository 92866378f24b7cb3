"""Messages along the edges of a graph, summed at their targets with index_add, and a mean by graph."""

import torch
from torch import nn


class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.message = nn.Sequential(nn.Linear(2 * width, width), nn.SiLU())
        self.update = nn.Linear(2 * width, width)

    def forward(self, nodes, edges):
        source, target = edges
        messages = self.message(torch.cat([nodes[source], nodes[target]], -1))
        sums = torch.zeros_like(nodes).index_add(0, target, messages)
        return nodes + self.update(torch.cat([nodes, sums], -1)).relu()


class GNN(nn.Module):
    def __init__(self, width=64, layers=3):
        super().__init__()
        self.enter, self.leave = nn.Linear(16, width), nn.Linear(width, 2)
        self.layers = nn.ModuleList(Layer(width) for _ in range(layers))

    def forward(self, x, edge_index, batch, graphs):
        nodes = self.enter(x)
        for layer in self.layers:
            nodes = layer(nodes, edge_index)
        sums = nodes.new_zeros(graphs, nodes.shape[-1]).scatter_add(0, batch[:, None].expand_as(nodes), nodes)
        return self.leave(sums / torch.bincount(batch, minlength=graphs)[:, None])


def model():
    return GNN()


def inputs(batch_size, of_nodes=50, of_edges=200):
    batch = torch.arange(batch_size).repeat_interleave(of_nodes)
    edge_index = torch.randint(batch_size * of_nodes, (2, batch_size * of_edges))
    return {"x": torch.randn(len(batch), 16), "edge_index": edge_index, "batch": batch, "graphs": batch_size}
