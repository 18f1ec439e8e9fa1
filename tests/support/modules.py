"""Python files that `import` can't name: scripts without an ending, and files whose own name another one has too."""
import importlib.machinery
import importlib.util
import sys


def load(path, name):
    """The module of `path`, known as `name`."""
    loader = importlib.machinery.SourceFileLoader(name, str(path))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    sys.modules[name] = module  # dataclasses look their module up
    loader.exec_module(module)
    return module
