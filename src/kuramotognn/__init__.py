"""Graph neural networks as coupled oscillators: KuramotoGNN in PyTorch, exact and fast.

Public names are listed in ``__init__.pyi`` and imported when they are first used, so that the command line can answer
``--help`` without loading torch.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
