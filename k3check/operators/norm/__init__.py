"""The gated RMSNorm of KDA's output."""
