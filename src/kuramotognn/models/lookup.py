"""Find a model by name: in the registry, among the entry points of installed packages, or in a Python file."""

from __future__ import annotations

import importlib.util
import inspect
import sys
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from pkgutil import resolve_name
from types import ModuleType
from typing import Any

from torch import nn

from kuramotognn.checks import did_you_mean
from kuramotognn.data.file_bytes import home_expanded
from kuramotognn.fields import Equation
from kuramotognn.models.kuramotognn import KuramotoGNN
from kuramotognn.models.registry import MODELS, ModelInfo

ENTRY_POINTS = "kuramotognn.models"
"""Group of entry points by which packages add models: a class, an equation or a :class:`ModelInfo`."""


@cache
def find_model(name: str) -> ModelInfo:
    """The model of this name, an entry point, or ``FILE.py:CLASS``.

    Raises:
        ValueError: there is no such model; the message suggests the nearest one.
    """
    if name in MODELS:
        return MODELS[name]
    if name.split(":")[0].endswith(".py"):
        return _from_file(name)
    for entry in entry_points(group=ENTRY_POINTS):
        if entry.name == name:
            try:
                return model_info(name, entry.load())
            except Exception as error:
                raise ValueError(f"model {name!r} of {entry.value} cannot be loaded: {reason(error)}") from error
    known = [*MODELS, *(entry.name for entry in entry_points(group=ENTRY_POINTS))]
    raise ValueError(f"unknown model {name!r}{did_you_mean(name, known)}; known: {', '.join(known)}, or FILE.py:CLASS")


def model_name(name: str) -> str:
    """The name under which settings keep a model: that of a file is made absolute, for runs are used elsewhere, too."""
    path, colon, attribute = name.partition(":")
    return f"{home_expanded(path).absolute()}{colon}{attribute}" if path.endswith(".py") else name


def model_info(name: str, found: Any) -> ModelInfo:
    """An entry for a model class, an equation class, or an entry itself."""
    if isinstance(found, ModelInfo):
        return found
    formula = (inspect.getdoc(found) or "").partition("\n")[0]
    if inspect.isclass(found) and issubclass(found, Equation):
        return ModelInfo(name, KuramotoGNN, equation=found, formula=formula)
    if not callable(found) or (inspect.isclass(found) and not issubclass(found, nn.Module)):
        raise ValueError(f"{name} is neither a torch module nor an Equation")
    try:
        inspect.signature(found).bind_partial(in_channels=1, out_channels=1)
    except TypeError as error:
        raise ValueError(f"{name} must take in_channels and out_channels by name: {error}") from error
    return ModelInfo(name, found, formula=formula)


def python_object(target: str) -> Any:
    """The object that a dotted path such as ``torch_geometric.nn.GCN`` names, or ``FILE.py:NAME``, or ``FILE.py``.

    A file without a name must define one model class.

    Raises:
        ValueError: there is no such thing, or importing it fails.
    """
    path, _, attribute = target.partition(":")
    if path.endswith(".py"):
        module = _import_file(home_expanded(path))
        if attribute:
            return _attribute(module, path, attribute)
        own = {
            key: value
            for key, value in vars(module).items()
            if inspect.isclass(value) and issubclass(value, nn.Module) and value.__module__ == module.__name__
        }
        if len(own) == 1:
            return next(iter(own.values()))
        there = f"it has {', '.join(own)}" if own else "it has none"
        raise ValueError(f"{target!r} must name one model class, as in {path}:CLASS; {there}")
    try:
        return resolve_name(target)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(
            f"{target!r} is neither FILE.py:CLASS nor a dotted path that can be imported, such as "
            f"torch_geometric.nn.GCN ({reason(error)})"
        ) from error
    except Exception as error:  # Importing runs any code.
        raise ValueError(f"{target!r} cannot be imported: {reason(error)}") from error


def _from_file(name: str) -> ModelInfo:
    path, _, attribute = name.partition(":")
    if not attribute:
        raise ValueError(f"{name!r} names no class; write FILE.py:CLASS, such as my_model.py:MyGNN")
    return model_info(name, _attribute(_import_file(home_expanded(path)), path, attribute))


def _attribute(module: ModuleType, path: str, attribute: str) -> Any:
    if not hasattr(module, attribute):
        classes = [key for key, value in vars(module).items() if inspect.isclass(value)]
        raise ValueError(f"{path} has no class {attribute!r}{did_you_mean(attribute, classes)}")
    return getattr(module, attribute)


def _import_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise ValueError(f"model file {str(path)!r} does not exist")
    # The name must not clash with another module, and must be the same in each process, for pickle.
    name = f"kuramotognn_model_file_{path.absolute().as_posix().encode().hex()}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise ValueError(f"model file {str(path)!r} cannot be imported: {reason(error)}") from error
    return module


def reason(error: BaseException) -> str:
    """An error as one line: its type and the first line of its text."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
