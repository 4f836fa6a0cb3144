"""proctor: AI-agent benchmarks whose results hold up.

The public names are those of `proctor.api`, which is imported when one of them is first used: the command line does
without it.
"""

from importlib import import_module

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    if name.startswith("_"):
        raise AttributeError(name)
    try:
        return getattr(import_module("proctor.api"), name)
    except AttributeError:
        raise AttributeError(f"module 'proctor' has no attribute {name!r}") from None


def __dir__() -> list[str]:
    return sorted({*globals(), *import_module("proctor.api").__all__})
