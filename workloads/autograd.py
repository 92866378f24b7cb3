"""Reverse-mode differentiation of the NumPy references: the same code that computes a loss, run on `Variable`s.

It has only the references' operations. Each operation keeps a function from the gradient of its result to those of its
operands (Griewank and Walther 2008, chapter 3).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Pull = Callable[[np.ndarray], np.ndarray]  # from the gradient of a result to that of an operand


class Variable(np.lib.mixins.NDArrayOperatorsMixin):
    """An array with a history. `gradient` is None until `backward` reaches it, and accumulates over calls."""

    def __init__(self, value: np.ndarray, parents: tuple[tuple[Variable, Pull], ...] = ()):
        self.value, self.parents = value, parents
        self.gradient: np.ndarray | None = None

    shape = property(lambda self: self.value.shape)
    dtype = property(lambda self: self.value.dtype)
    T = property(lambda self: self.transpose(*reversed(range(self.value.ndim))))

    def backward(self) -> None:
        """Add the derivatives of this scalar to the gradient of every leaf behind it."""
        gradients = {id(self): np.ones_like(self.value)}
        for variable in reversed(_history(self)):
            gradient = gradients.pop(id(variable))
            if not variable.parents:
                variable.gradient = gradient if variable.gradient is None else variable.gradient + gradient
            for parent, pull in variable.parents:
                pulled = _unbroadcast(pull(gradient), parent.shape)
                known = gradients.get(id(parent))
                gradients[id(parent)] = pulled if known is None else known + pulled

    def unary(self, function: Pull, derivative: Pull) -> Variable:
        """Apply `function`, which has the derivative `derivative`, to every value."""
        x = self.value
        return Variable(function(x), ((self, lambda g: g * derivative(x)),))

    def reshape(self, *shape: int) -> Variable:
        return Variable(self.value.reshape(*shape), ((self, lambda g: g.reshape(self.shape)),))

    def transpose(self, *axes: int) -> Variable:
        return Variable(self.value.transpose(axes), ((self, lambda g: g.transpose(np.argsort(axes))),))

    def sum(self, axis: int, keepdims: bool) -> Variable:
        return Variable(self.value.sum(axis, keepdims=keepdims), ((self, lambda g: _spread(g, self, axis, keepdims)),))

    def mean(self, axis: int | None = None, keepdims: bool = False, dtype: Any = None) -> Variable:
        count = self.value.size if axis is None else self.shape[axis]
        value = self.value.mean(axis, keepdims=keepdims)
        return Variable(value, ((self, lambda g: _spread(g, self, axis, keepdims) / count),))

    def max(self, axis: int, keepdims: bool) -> np.ndarray:
        """Return the maximum as a constant: the references' results do not depend on it."""
        return self.value.max(axis, keepdims=keepdims)

    def astype(self, dtype: Any) -> Variable:
        """Return the variable itself: functions of variables keep their precision."""
        return self

    def __getitem__(self, index: Any) -> Variable:
        def pull(gradient: np.ndarray) -> np.ndarray:
            whole = np.zeros(self.shape, gradient.dtype)
            np.add.at(whole, index, gradient)
            return whole

        return Variable(self.value[index], ((self, pull),))

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *operands: Any, **options: Any) -> Variable:
        if method != "__call__" or options or ufunc not in _PULLS:
            return NotImplemented
        values = [operand.value if isinstance(operand, Variable) else operand for operand in operands]
        result = ufunc(*values)
        parents = tuple(
            (operand, lambda g, rule=rule: rule(g, result, *values))
            for operand, rule in zip(operands, _PULLS[ufunc], strict=True)
            if isinstance(operand, Variable)
        )
        return Variable(result, parents)


def constant(x: np.ndarray | Variable) -> np.ndarray:
    """Return the values of `x`, without derivatives."""
    return x.value if isinstance(x, Variable) else x


def _swapped(x: np.ndarray) -> np.ndarray:
    return np.swapaxes(x, -1, -2)


def _of_right(gradient: np.ndarray, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the gradient of a product's right operand; one product for a matrix that a batch shares."""
    if right.ndim == 2:
        left, gradient = left.reshape(-1, left.shape[-1]), gradient.reshape(-1, gradient.shape[-1])
    return _swapped(left) @ gradient


# For each operation, from (gradient, result, *operands) to the gradient of each operand.
_PULLS = {
    np.add: (lambda g, y, a, b: g, lambda g, y, a, b: g),
    np.subtract: (lambda g, y, a, b: g, lambda g, y, a, b: -g),
    np.multiply: (lambda g, y, a, b: g * b, lambda g, y, a, b: g * a),
    np.divide: (lambda g, y, a, b: g / b, lambda g, y, a, b: -g * y / b),
    np.matmul: (lambda g, y, a, b: g @ _swapped(b), lambda g, y, a, b: _of_right(g, a, b)),
    np.maximum: (lambda g, y, a, b: g * (a > b), lambda g, y, a, b: g * (a <= b)),
    np.tanh: (lambda g, y, a: g * (1 - y * y),),
    np.exp: (lambda g, y, a: g * y,),
    np.log: (lambda g, y, a: g / a,),
    np.sqrt: (lambda g, y, a: g / (2 * y),),
    np.square: (lambda g, y, a: g * 2 * a,),
}


def _history(last: Variable) -> list[Variable]:
    """Return every variable behind `last`, operands before results."""
    order, seen, stack = [], set(), [(last, False)]
    while stack:
        variable, ready = stack.pop()
        if ready:
            order.append(variable)
        elif id(variable) not in seen:
            seen.add(id(variable))
            stack.append((variable, True))
            stack.extend((parent, False) for parent, _ in variable.parents)
    return order


def _unbroadcast(gradient: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Sum over the axes that broadcasting added or stretched."""
    if gradient.shape == shape:
        return gradient
    gradient = gradient.sum(tuple(range(gradient.ndim - len(shape))))
    stretched = tuple(i for i, (have, want) in enumerate(zip(gradient.shape, shape, strict=True)) if have != want)
    return gradient.sum(stretched, keepdims=True)


def _spread(gradient: np.ndarray, variable: Variable, axis: int | None, keepdims: bool) -> np.ndarray:
    """Return the gradient of a sum: the same for every summand."""
    if axis is not None and not keepdims:
        gradient = np.expand_dims(gradient, axis)
    return np.broadcast_to(gradient, variable.shape)
