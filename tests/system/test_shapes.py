"""The DataParallel tutorial's tables, as the job log shows them."""

import pytest

from traind import linear


def batch_lines(chunks, batch):
    return ([f"In Model: input size [{n}, 5] output size [{n}, 2]" for n in chunks] +
            [f"Outside: input size [{batch}, 5] output size [{batch}, 2]"])


TABLES = {
    1: ([], [30], [10]),
    2: (["Let's use 2 devices"], [15, 15], [5, 5]),
    3: (["Let's use 3 devices"], [10, 10, 10], [4, 4, 2]),
    8: (["Let's use 8 devices"], [4, 4, 4, 4, 4, 4, 4, 2], [2, 2, 2, 2, 2]),
}


@pytest.mark.parametrize("box", [{"devices": 8}], indirect=True)
@pytest.mark.parametrize("devices", sorted(TABLES))
def test_tutorial_table(box, devices):
    [record] = box.wait(box.submit(linear(devices=devices, trace=["shapes"])))
    assert record["state"] == "completed", record
    head, full, last = TABLES[devices]
    want = head + 3 * batch_lines(full, 30) + batch_lines(last, 10)
    got = [line for line in box.logs(record["id"]).splitlines()
           if line.startswith(("Let's use", "In Model:", "Outside:"))]
    assert got == want
