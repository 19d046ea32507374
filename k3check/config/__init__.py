"""The configuration: read from any known dialect, checked, and with the origin of every value.

Import the submodule you need; this package imports nothing, so that ``k3check --help`` stays fast:

* :mod:`k3check.config.load`: find and load a configuration,
* :mod:`k3check.config.models`: what it can say,
* :mod:`k3check.config.show`, ``convert``, ``schema``, ``init``: the subcommands' work.
"""
