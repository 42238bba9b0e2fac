"""Stand-ins for what an absent module holds: inert classes, fit to be imported, subclassed and used as decorators.

Once loading is over, calling one is an error: a result that an inert object made up would be worse than no result.
"""

import importlib
import sys
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any


class ShimError(ImportError):
    """The engine's memory cache could not be loaded, or ran into a stand-in; the message says which and what to do."""


class StandInCalledError(ShimError):
    """The engine executed a stand-in, so whatever it computed from it would be made up."""


def _importing() -> bool:
    """Whether an import is under way: then a stand-in may be called, as a decorator or a base class."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def _refuse_after_loading(name: str) -> None:
    if not _importing():
        raise StandInCalledError(
            f"the engine called {name}, of which there is only a stand-in.\n"
            "  fix: install the real package; or give that path a CPU equivalent in "
            "poolproof_conformance/sglang/cpu_device.py"
        )


class _StandInType(type):
    """The class of stand-in classes: any attribute is another one, any subscript is itself."""

    def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **_: Any) -> "_StandInType":
        return super().__new__(cls, name, bases, namespace)

    def __init__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **_: Any) -> None:
        super().__init__(name, bases, namespace)

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        inner = _stand_in(f"{cls.__qualname__}.{name}")
        setattr(cls, name, inner)
        return inner

    def __getitem__(cls, _: object) -> "_StandInType":
        return cls


class StandIn(metaclass=_StandInType):
    """What an absent module's names are: fit to be imported, subclassed and used as a decorator, no more."""

    def __init_subclass__(cls, **_: Any) -> None:
        pass

    def __init__(self, *_: Any, **__: Any) -> None:
        if type(self).__module__ == __name__:
            _refuse_after_loading(type(self).__qualname__)

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        _refuse_after_loading(type(self).__qualname__)
        return arguments[0] if len(arguments) == 1 and callable(arguments[0]) and not keywords else self

    def __getitem__(self, _: object) -> Any:
        _refuse_after_loading(type(self).__qualname__)
        return self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self


def _stand_in(qualified_name: str) -> Any:
    made = _StandInType(qualified_name.rpartition(".")[2], (StandIn,), {"__module__": __name__})
    made.__qualname__ = qualified_name
    return made


def module_getattr(module: ModuleType) -> Any:
    """Module-level `__getattr__`: a real submodule where there is one, otherwise an inert class."""

    def get(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        for folder in map(Path, module.__path__):
            if (folder / f"{name}.py").exists() or (folder / name).is_dir():
                return importlib.import_module(f"{module.__name__}.{name}")
        made = _stand_in(f"{module.__name__}.{name}")
        setattr(module, name, made)
        return made

    return get
