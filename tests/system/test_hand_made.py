"""Files and jobs broken by hand, as a user meets them: a run ends with one sentence that names the file (or the place in the
document) and what was found there; what is odd but right is read as it is meant."""

import base64
import json
import os
import struct

import pytest

from traind import run_worker


def write(folder, name, data):
    path = os.path.join(folder, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)


def job(shape, data, classes=2, layers=(), **more):
    """Linear, behind `layers`, on this data."""
    return {
        "version": 1,
        "model": {"input": {"shape": shape},
                  "layers": [*layers, {"type": "Flatten"}, {"type": "Linear", "name": "fc", "out_features": classes}]},
        "data": {"train": data, "shuffle": False},
        "loss": {"type": "CrossEntropyLoss"},
        "optimizer": {"type": "SGD", "lr": 0.1},
        "train": {"max_steps": 1, "batch_size": 2},
        **more,
    }


def idx(dims, elements, type_code=8):
    return bytes([0, 0, type_code, len(dims)]) + b"".join(struct.pack(">I", n) for n in dims) + bytes(elements)


def idx_job(images=idx([2, 2], [1, 2, 3, 4]), labels=idx([2], [0, 1])):
    def make(folder):
        write(folder, "x.idx", images)
        write(folder, "y.idx", labels)
        return job([2], {"format": "idx", "inputs": "x.idx", "targets": "y.idx"})
    return make


def npy(descr="'<f4'", fortran="False", shape="(2, 2)", elements=struct.pack("<4f", 1, 2, 3, 4)):
    header = f"{{'descr': {descr}, 'fortran_order': {fortran}, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header + elements


LABELS = npy("'<i8'", shape="(2,)", elements=struct.pack("<2q", 0, 1))


def npy_job(inputs=npy(), labels=LABELS):
    def make(folder):
        write(folder, "x.npy", inputs)
        write(folder, "y.npy", labels)
        return job([2], {"format": "npy", "inputs": "x.npy", "targets": "y.npy"})
    return make


def csv_job(text):
    def make(folder):
        write(folder, "t.csv", text.encode())
        return job([2], {"format": "csv", "path": "t.csv"})
    return make


def safetensors(header, data):
    header = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(header)) + header + data


def entry(shape, begin, end):
    return {"dtype": "F32", "shape": shape, "data_offsets": [begin, end]}


FC = {"fc.weight": entry([2, 2], 0, 16), "fc.bias": entry([2], 16, 24)}


def weights_job(file):
    def make(folder):
        write(folder, "w.safetensors", file)
        made = npy_job()(folder)
        made["model"]["init"] = {"weights": "w.safetensors"}
        return made
    return make


# 4x4, grey and CMYK.
GREY = base64.b64decode(
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDABALDA4MChAODQ4SERATGCgaGBYWGDEjJR0oOjM9PDkzODdASFxOQERXRTc4UG1RV19iZ2hnPk1xeXBkeFxlZ2P/wAAL"
    "CAAEAAQBAREA/8QAFAABAAAAAAAAAAAAAAAAAAAABv/EABkQAAEFAAAAAAAAAAAAAAAAAAIAAQQTIf/aAAgBAQAAPwAnGAaWxf/Z")
CMYK = base64.b64decode(
    "/9j/7gAOQWRvYmUAZAAAAAAA/9sAQwAQCwwODAoQDg0OEhEQExgoGhgWFhgxIyUdKDozPTw5Mzg3QEhcTkBEV0U3OFBtUVdfYmdoZz5NcXlwZHhcZWdj/8AAFAgA"
    "BAAEBEMRAE0RAFkRAEsRAP/EABcAAAMBAAAAAAAAAAAAAAAAAAADBAX/xAAZEAABBQAAAAAAAAAAAAAAAAACAAMGFSH/2gAOBEMATQBZAEsAAD8AI4A1DWJ8cAah"
    "rFbHAGoaxakcAahrF//Z")


def folder_job(picture, classes=("ant", "bee")):
    def make(folder):
        os.makedirs(os.path.join(folder, "photos", "bee"))
        for name in classes:
            if picture is not None or name != "bee":
                write(folder, f"photos/{name}/1.jpg", picture if name == "bee" else GREY)
        return job([3, 4, 4], {"format": "image_folder", "path": "photos"})
    return make


# (name, what makes it, the parts of the sentence)
BROKEN = [
    ("weights: both prefixes", weights_job(safetensors({"module.weight": entry([1], 0, 4), "weight": entry([1], 4, 8)}, bytes(8))),
     ["/model/init/weights", "w.safetensors", '"module.weight"', '"weight"']),
    ("weights: a hole", weights_job(safetensors({**FC, "fc.bias": entry([2], 20, 28)}, bytes(28))),
     ["w.safetensors", '"fc.bias"', "byte 20, want 16", "a hole"]),
    ("weights: an overlap", weights_job(safetensors({**FC, "fc.bias": entry([2], 12, 20)}, bytes(20))),
     ["w.safetensors", '"fc.bias"', "byte 12, want 16", "an overlap"]),
    ("weights: a huge header", weights_job(struct.pack("<Q", 1 << 40) + b"{}"), ["w.safetensors", "1099511627776"]),
    ("weights: 2.0", weights_job(safetensors({**FC, "fc.bias": entry([2.0], 16, 24)}, bytes(24))),
     ["w.safetensors", '"fc.bias"', "dimension 0", "2.0"]),
    ("weights: trailing bytes", weights_job(safetensors(FC, bytes(27))), ["w.safetensors", "byte 24 of 27"]),
    ("npy: big-endian", npy_job(npy("'>f4'")), ["/data/train/inputs", "x.npy", "'>f4'"]),
    ("npy: Fortran order", npy_job(npy(fortran="True")), ["/data/train/inputs", "x.npy", "Fortran"]),
    ("npy: objects", npy_job(npy("'|O'")), ["/data/train/inputs", "x.npy", "'|O'", "objects"]),
    ("npy: short", npy_job(npy(elements=bytes(15))), ["/data/train/inputs", "x.npy", "16 bytes, 15"]),
    ("npy: a label", npy_job(labels=npy("'<i8'", shape="(2,)", elements=struct.pack("<2q", 0, 2))),
     ["/data/train/targets", "y.npy", "label 2", "0 to 1"]),
    ("csv: a ragged row", csv_job("1,2,0\n3,4\n"), ["/data/train/path", "t.csv", "line 2", "2 cells", "3"]),
    ("csv: a quoted comma", csv_job('1,2,0\n"3,5",4,1\n'), ["/data/train/path", "t.csv", "line 2, column 1", '"3,5"']),
    ("csv: an empty line", csv_job("1,2,0\n\n3,4,1\n"), ["/data/train/path", "t.csv", "line 2 is empty"]),
    ("csv: a label", csv_job("1,2,0\n3,4,2\n"), ["/data/train/target", "t.csv", "label 2", "0 to 1"]),
    ("idx: a wrong magic", idx_job(b"\x89PNG" + bytes(8)), ["/data/train/inputs", "x.idx", "89 50 4e 47"]),
    ("idx: dimensions that overflow", idx_job(idx([0xffffffff] * 3, [])),
     ["/data/train/inputs", "x.idx", "[4294967295, 4294967295, 4294967295]"]),
    ("idx: counts that differ", idx_job(labels=idx([3], [0, 1, 0])), ["/data/train/targets", "y.idx", "3 targets", "2"]),
    ("idx: a label", idx_job(labels=idx([2], [0, 9])), ["/data/train/targets", "y.idx", "label 9", "0 to 1"]),
    ("images: a JPEG cut off", folder_job(GREY[:130]), ["photos/bee/1.jpg", "cut off"]),
    ("images: CMYK", folder_job(CMYK), ["photos/bee/1.jpg", "CMYK"]),
    ("images: an empty class", folder_job(None), ["/data/train/path", "photos/bee", "a class without images"]),
    ("images: more classes", folder_job(GREY, ("ant", "bee", "cat")), ["/data/train/path", "photos", "3 classes", "2"]),
]


@pytest.mark.parametrize("make, parts", [case[1:] for case in BROKEN], ids=[case[0] for case in BROKEN])
def test_what_is_broken_is_named(folder, make, parts):
    status, _, errors = run_worker(make(folder), folder)
    assert status == 1, errors
    lines = errors.splitlines()
    assert all(part in lines[-1] for part in parts), errors
    assert not os.path.exists(os.path.join(folder, "out", "weights.safetensors"))


RIGHT = [
    ("csv: CRLF", csv_job("1,2,0\r\n3,4,1\r\n")),
    ("csv: quoted cells, a quoted comma in the header", csv_job('"a, b",c,d\n"1",2,0\n3,"4","1"\n')),
    ("csv: empty lines at the end", csv_job("1,2,0\n3,4,1\n\n\n")),
    ("images: grey as colour", folder_job(GREY)),
    ("weights: one prefix", weights_job(safetensors({f"module.{k}": v for k, v in FC.items()}, bytes(24)))),
]


@pytest.mark.parametrize("make", [case[1] for case in RIGHT], ids=[case[0] for case in RIGHT])
def test_what_is_odd_but_right_is_read(folder, make):
    status, _, errors = run_worker(make(folder), folder)
    assert status == 0, errors


def tensors(folder):
    """The F32 and I64 tensors of the final weights."""
    with open(os.path.join(folder, "out", "weights.safetensors"), "rb") as file:
        size = struct.unpack("<Q", file.read(8))[0]
        header, body = json.loads(file.read(size)), file.read()
    kinds = {"F32": "f", "I64": "q"}
    found = {}
    for name, row in header.items():
        if name != "__metadata__":
            begin, end = row["data_offsets"]
            code = kinds[row["dtype"]]
            found[name] = list(struct.unpack(f"<{(end - begin) // struct.calcsize('<' + code)}{code}", body[begin:end]))
    return found


@pytest.mark.parametrize("checkpoint", [False, True, ["bn"], ["2"]])
def test_recomputed_statistics_are_updated_once(folder, checkpoint):
    write(folder, "x.npy", npy(shape="(2, 1)", elements=struct.pack("<2f", 0, 2)))
    write(folder, "y.npy", LABELS)
    made = job([1], {"format": "npy", "inputs": "x.npy", "targets": "y.npy"},
               layers=[{"type": "BatchNorm1d", "name": "bn"}, {"type": "ReLU"}])
    made["train"]["checkpoint_activations"] = checkpoint
    status, _, errors = run_worker(made, folder)
    assert status == 0, errors
    after = tensors(folder)
    assert after["bn.running_mean"] == pytest.approx([0.1], rel=1e-6)
    assert after["bn.running_var"] == pytest.approx([1.1], rel=1e-6)
    assert after["bn.num_batches_tracked"] == [1]


def adam(folder, made):
    made["optimizer"] = {"type": "Adam"}


def wider(folder, made):
    made["model"]["layers"].insert(1, {"type": "Linear", "name": "hidden", "out_features": 3})


def one_more(folder, made):
    write(folder, "x.idx", idx([3, 2], [1, 2, 3, 4, 5, 6]))
    write(folder, "y.idx", idx([3], [0, 1, 0]))


OTHERS = [
    (adam, ["/optimizer/type", "SGD", "Adam"]),
    (wider, ["/model/layers/1", '"name":"fc"', '"name":"hidden"']),
    (one_more, ["/data/train", "2 samples", "now there are 3"]),
]


@pytest.mark.parametrize("change, parts", OTHERS, ids=[case[0].__name__ for case in OTHERS])
def test_another_job_is_not_resumed(folder, change, parts):
    made = idx_job()(folder)
    assert run_worker(made, folder)[0] == 0
    change(folder, made)
    made["train"]["max_steps"] = 2
    status, _, errors = run_worker(made, folder)
    assert status == 1, errors
    assert all(part in errors.splitlines()[-1] for part in parts), errors
