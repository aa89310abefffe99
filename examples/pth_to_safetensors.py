#!/usr/bin/python3
"""Converts weights between PyTorch's files and safetensors, which traind reads and writes.

    pth_to_safetensors.py model.pth model.safetensors     torch.save'd state_dict -> safetensors
    pth_to_safetensors.py model.safetensors model.pth     and back, for load_state_dict(torch.load(...))

The names of the two files say which way. A checkpoint that holds its state_dict under "state_dict", "model_state_dict" or
"model" is looked into. Keys stay as they are: `trainctl weights convert` is there for DataParallel's «module.». Needs
only torch; the file is read with weights_only, so that nothing in it is run.
"""
import json
import struct
import sys

import torch

DTYPES = {
    "F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "I64": torch.int64,
    "I32": torch.int32, "I16": torch.int16, "I8": torch.int8, "U8": torch.uint8, "BOOL": torch.bool,
}
NAMES = {dtype: name for name, dtype in DTYPES.items()}


def size_of(dtype):
    return torch.empty(0, dtype=dtype).element_size()


def find_state_dict(loaded):
    for key in ("state_dict", "model_state_dict", "model"):
        if isinstance(loaded, dict) and isinstance(loaded.get(key), dict):
            loaded = loaded[key]
    if not isinstance(loaded, dict):
        raise ValueError(f"it holds no state_dict but a {type(loaded).__name__}")
    for key, tensor in loaded.items():
        if not isinstance(tensor, torch.Tensor):
            raise ValueError(f"{key!r} is no tensor but a {type(tensor).__name__}")
        if tensor.dtype not in NAMES:
            raise ValueError(f"{key!r} is of type {tensor.dtype}, which safetensors do not have here")
    return loaded


def read_pth(path):
    return find_state_dict(torch.load(path, map_location="cpu", weights_only=True))


def write_safetensors(path, tensors):
    """The widest types first, so that every tensor lies aligned."""
    ordered = sorted(tensors.items(), key=lambda item: -size_of(item[1].dtype))
    header, end = {"__metadata__": {"format": "pt"}}, 0
    for key, tensor in ordered:
        begin, end = end, end + tensor.numel() * size_of(tensor.dtype)
        header[key] = {"dtype": NAMES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _, tensor in ordered:
            file.write(tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())


def read_safetensors(path):
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = bytearray(file.read())
    header.pop("__metadata__", None)
    tensors = {}
    for key, entry in header.items():
        begin, end = entry["data_offsets"]
        dtype = DTYPES[entry["dtype"]]
        flat = torch.frombuffer(data[begin:end], dtype=dtype) if end > begin else torch.empty(0, dtype=dtype)
        tensors[key] = flat.reshape(entry["shape"])
    return tensors


def main():
    if len(sys.argv) != 3 or [path.endswith(".safetensors") for path in sys.argv[1:]].count(True) != 1:
        sys.exit(__doc__)
    source, target = sys.argv[1:]
    try:
        if target.endswith(".safetensors"):
            tensors = read_pth(source)
            write_safetensors(target, tensors)
        else:
            tensors = read_safetensors(source)
            torch.save(tensors, target)
    except (OSError, ValueError, KeyError, struct.error, RuntimeError) as error:
        sys.exit(f"{source}: {error}")
    print(f"{target}: {len(tensors)} tensors")


if __name__ == "__main__":
    main()
