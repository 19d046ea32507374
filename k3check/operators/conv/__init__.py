"""The short causal convolution in front of KDA's query, key and value."""
