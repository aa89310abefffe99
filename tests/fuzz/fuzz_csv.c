/* fuzz_csv.c: tables as text. The first byte chooses what is said of the header; what is read is a
 * full table of finite numbers. */
#include <math.h>

#include "engine/data/csv.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err err = ERR_INIT;
    struct csv csv;
    if (size == 0)
        return 0;
    enum job_tristate header = (enum job_tristate)(data[0] % 3);
    int rc = csv_read(fuzz_file(data + 1, size - 1), header, &csv, &err);
    if (rc != 0) {
        fuzz_expect_error(rc, &err);
        return 0;
    }
    fuzz_expect(csv.rows >= 1 && csv.columns >= 1);
    for (int64_t i = 0; i < csv.rows * csv.columns; i++)
        fuzz_expect(isfinite(csv.values[i]));
    csv_find(&csv, "b");
    csv_done(&csv);
    return 0;
}
