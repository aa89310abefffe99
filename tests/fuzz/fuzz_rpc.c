/* fuzz_rpc.c: a client's bytes, in pieces whose sizes the first byte chooses: the same lines come
 * out, however they are cut, and each is a request or an error. */
#include <string.h>

#include "proto/rpc.h"
#include "tests/fuzz/fuzz.h"

static void take_lines(struct rpc_framer *framer, bool eof)
{
    const char *line;
    size_t size;
    while (rpc_framer_next(framer, eof, &line, &size)) {
        struct err err = ERR_INIT;
        struct rpc_request request;
        fuzz_expect(size > 0 && memchr(line, '\n', size) == NULL);
        int rc = rpc_request_parse(line, size, &request, &err);
        if (rc != 0)
            fuzz_expect_error(rc, &err);
        else
            fuzz_expect(request.method != NULL && json_is_object(request.params));
        rpc_request_done(&request);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err err = ERR_INIT;
    struct rpc_framer framer = {0};
    size_t piece = size > 0 ? 1 + (size_t)data[0] : 1;
    for (size_t at = 1; at < size; at += piece) {
        size_t n = size - at < piece ? size - at : piece;
        fuzz_expect(rpc_framer_feed(&framer, (const char *)data + at, n, &err) == 0);
        take_lines(&framer, false);
    }
    take_lines(&framer, true);
    rpc_framer_done(&framer);
    return 0;
}
