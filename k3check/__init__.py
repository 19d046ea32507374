"""k3check: did I break Kimi K3?"""

__version__ = "0.1.0.dev0"
