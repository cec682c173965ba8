"""Linear layers, norms and rotary positions by the C kernels, wherever one token is read.

Every other shape goes through the library's function, on the same weights.  Nothing of the model
is replaced: while a pass of one token runs, stand-ins lie before its modules.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch

from explorer.engine import kernels
from explorer.engine.errors import BadInput
from explorer.engine.machine.free_memory import available_bytes
from explorer.engine.one_rotary import OneRotary
from explorer.engine.passes.fast_calls import Direct, direct
from explorer.trace.modes import Mode

NORM_ROWS = 256  # rows of a norm: more is a prefill
_EPSILONS = ("variance_epsilon", "eps")
_NEAR = 1e-5  # of a norm's largest number: what another order of the sum may change
_LARGEST = 65504.0  # that a float16 can hold
Forward = Callable[[torch.Tensor], torch.Tensor]


def usable(model: Any, mode: Mode) -> list[torch.nn.Linear]:
    """The linear layers that the kernels can do; BadInput where there is nothing for them."""
    if model.device.type != "cpu" or model.dtype != torch.float32:
        raise BadInput(
            f"Mode {mode} runs only on the CPU in float32. Start the program without "
            "--dtype and --device, or choose exact mode."
        )
    linears = [module for module in model.modules() if _is_plain(module)]
    if not linears:
        raise BadInput("This mode needs plain linear layers, and this model has none.")
    return linears


class OneRow:
    """The kernels on one model; `rounded`: its matrices are float16 numbers.

    BadInput where the model has nothing that they could do.
    """

    def __init__(self, model: Any, rounded: bool) -> None:
        linears = usable(model, "rounded" if rounded else "fast")
        self._library = kernels.library()
        self._rounded = rounded
        self._halves: dict[int, torch.Tensor] = {}  # by id of the parameter
        self._stand_ins: dict[int, _Linear] = {}
        self._before: list[tuple[torch.Tensor, torch.Tensor]] = []
        if rounded:
            self._round(model, linears)
        for linear in linears:
            self._stand_ins[id(linear)] = _Linear(linear, self._product(linear))
        self._forwards: list[tuple[dict[str, Any], Forward]] = [
            (module.__dict__, forward)
            for module in model.modules()
            if (forward := self._norm(module)) is not None
        ]
        head = model.get_output_embeddings()
        if head is not None and id(head) in self._stand_ins:
            self._forwards.append((head.__dict__, self._stand_ins[id(head)]))
        self._rotary = OneRotary(model, self._library)

    def stand_in(self, module: Any) -> Direct | None:
        """What is called in a linear layer's place."""
        return self._stand_ins.get(id(module)) or direct(module)

    @contextlib.contextmanager
    def laid(self) -> Iterator[None]:
        """While inside, norms, rotary positions and the head go through the kernels."""
        free = [(own, forward) for own, forward in self._forwards if "forward" not in own]
        try:
            for own, forward in free:
                own["forward"] = forward
            with self._rotary.laid():
                yield
        finally:
            for own, _ in free:
                own.pop("forward", None)

    def bytes_read(self, parameter: torch.Tensor) -> int:
        """Bytes of a parameter that a step of one token reads, if it reads all of it."""
        stored = self._halves.get(id(parameter), parameter)
        return stored.numel() * stored.element_size()

    def give_back(self) -> None:
        """The weights as they were before they were rounded."""
        for parameter, values in self._before:
            parameter.data = values
        self._before = []

    def forget_originals(self) -> None:
        """Free the memory of the weights as they were."""
        self._before = []

    def _round(self, model: Any, linears: list[torch.nn.Linear]) -> None:
        """Every matrix holds float16 numbers from now on, kept in both widths."""
        matrices = {id(linear.weight): linear.weight for linear in linears}
        _check_room(sum(weight.numel() for weight in matrices.values()))
        for linear in linears:
            weight = linear.weight
            if id(weight) in self._halves:
                continue  # tied
            if not bool((weight.abs() <= _LARGEST).all()):
                self.give_back()
                raise BadInput(
                    "This model has a weight above 65,504, which this mode can't store. "
                    "Choose another mode."
                )
            half = weight.data.half()
            self._before.append((weight, weight.data))
            self._halves[id(weight)] = half
            # A new tensor: the old one may lie in a file that is read-only.
            weight.data = half.float()
        for other in model.parameters():
            if id(other) not in self._halves:  # else it alone would keep that file in memory
                self._before.append((other, other.data))
                other.data = other.data.clone()

    def _product(self, linear: torch.nn.Linear) -> Forward:
        weight, bias = linear.weight, linear.bias
        stored = self._halves.get(id(weight), weight.data)
        function = self._library.linear16 if self._rounded else self._library.linear32
        rows, width = weight.shape
        address = stored.data_ptr()
        addend = None if bias is None else bias.data_ptr()
        threads, linear_function = torch.get_num_threads(), torch.nn.functional.linear

        def product(tensor: torch.Tensor) -> torch.Tensor:
            if tensor.numel() != width or tensor.dtype is not torch.float32:
                return linear_function(tensor, weight, bias)
            tensor = tensor.contiguous()
            made = tensor.new_empty((*tensor.shape[:-1], rows))
            function(address, addend, tensor.data_ptr(), made.data_ptr(), rows, width, threads)
            return made

        product.__dict__["keeps"] = stored  # the address is good for as long as this lives
        return product

    def _norm(self, module: Any) -> Forward | None:
        """The kernel in place of an RMS norm; None for anything that gives other numbers."""
        epsilon = next(
            (e for n in _EPSILONS if isinstance(e := getattr(module, n, None), float)), 0
        )
        weight = getattr(module, "weight", None)
        if "RMSNorm" not in type(module).__name__ or weight is None or weight.ndim != 1:
            return None
        if weight.dtype is not torch.float32 or not weight.is_contiguous():
            return None
        width, address, function = len(weight), weight.data_ptr(), self._library.rms_norm
        stock = module.forward

        def norm(tensor: torch.Tensor, *more: Any, **options: Any) -> torch.Tensor:
            rows = tensor.numel() // width
            fits = tensor.shape[-1] == width and rows <= NORM_ROWS and not (more or options)
            if not fits or tensor.dtype is not torch.float32:
                return stock(tensor, *more, **options)
            tensor = tensor.contiguous()
            made = torch.empty_like(tensor)
            function(address, tensor.data_ptr(), made.data_ptr(), rows, width, epsilon)
            return made

        with torch.inference_mode():
            sample = torch.linspace(-3, 2, 2 * width).view(1, 2, width)
            try:
                theirs = stock(sample)
            except (TypeError, RuntimeError, ValueError, AttributeError):
                return None  # it takes more than numbers, such as a gate
            near = _NEAR * max(1.0, float(theirs.abs().max()))
            return norm if bool(((norm(sample) - theirs).abs() <= near).all()) else None


class _Linear(Direct):
    """A linear layer whose product is the kernel's."""

    def __init__(self, linear: torch.nn.Linear, product: Forward) -> None:
        super().__init__(linear)
        self.__dict__["_product"] = product

    def __call__(self, tensor: torch.Tensor) -> torch.Tensor:
        return self.__dict__["_product"](tensor)


def _check_room(numbers: int) -> None:
    """BadInput if the rounded matrices, in both widths, would not fit beside the others."""
    needed, free = numbers * (4 + 2), available_bytes()
    if free is not None and needed > free:
        raise BadInput(
            f"Rounding the weights takes {needed / 1e9:.1f} GB of memory and {free / 1e9:.1f} GB "
            "are free; stay in exact mode."
        )


def _is_plain(module: Any) -> bool:
    if type(module) is not torch.nn.Linear:
        return False
    weight = module.weight
    return weight.dtype is torch.float32 and weight.is_contiguous() and weight.device.type == "cpu"
