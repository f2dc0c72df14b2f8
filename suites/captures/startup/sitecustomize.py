"""Python imports this module when it starts, because its folder is on PYTHONPATH. It starts the hook of `wavedeck capture`.

Then it runs the `sitecustomize` that the program would have had. Python 3.9 and newer; standard library only.
"""

import os
import sys

FOLDER = os.path.dirname(os.path.abspath(__file__))

try:
    import wavedeck_capture_hook  # type: ignore[import-not-found]  # PYTHONPATH holds its folder

    wavedeck_capture_hook.start(os.environ)
except Exception:  # the program must run without the hook, too; the capture says that it has no calls
    pass
sys.path[:] = [folder for folder in sys.path if os.path.abspath(folder) != FOLDER]


def run_own_sitecustomize() -> None:
    """Run the next `sitecustomize` on the path, in the place of this module."""
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    spec = PathFinder.find_spec("sitecustomize")
    if spec is not None and spec.loader is not None:
        module = module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


run_own_sitecustomize()
