"""Run the model: from a checkpoint as it lies on disk to the next token.

Rules: policy in plain Python, tensors in the backends. What is here may import
numpy, tokenizers, safetensors and gguf, each where it is used; torch, mlx and
httpx2 are imported by their backend alone. Nothing here knows a parser, a tool
or a server.
"""
