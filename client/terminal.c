/* terminal.c: see terminal.h. */
#include "client/terminal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { COLUMNS_LEAST = 20, COLUMNS_MOST = 500 };

bool terminal_is_utf8(const char *lc_all, const char *lc_ctype, const char *lang)
{
    const char *in_order[] = {lc_all, lc_ctype, lang};
    for (size_t i = 0; i < 3; i++) {
        if (in_order[i] == NULL || in_order[i][0] == '\0')
            continue;
        const char *charset = strchr(in_order[i], '.');
        return charset != NULL &&
               (strncasecmp(charset, ".UTF-8", 6) == 0 || strncasecmp(charset, ".utf8", 5) == 0);
    }
    return false;
}

void terminal_style(struct style *ret_style)
{
    struct winsize window = {0};
    struct style style = {
        .columns = COLUMNS_MOST, .rows = 24, .terminal = isatty(STDOUT_FILENO) == 1};
    const char *term = getenv("TERM");
    const char *no_color = getenv("NO_COLOR");
    if (style.terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0) {
        style.columns = window.ws_col > 0 ? window.ws_col : 80;
        style.rows = window.ws_row > 0 ? window.ws_row : 24;
    }
    style.columns = style.columns < COLUMNS_LEAST  ? COLUMNS_LEAST
                    : style.columns > COLUMNS_MOST ? COLUMNS_MOST
                                                   : style.columns;
    if (term != NULL && strcmp(term, "dumb") == 0)
        style.terminal = false;
    style.utf8 = terminal_is_utf8(getenv("LC_ALL"), getenv("LC_CTYPE"), getenv("LANG"));
    style.color = style.terminal && (no_color == NULL || no_color[0] == '\0');
    *ret_style = style;
}

int terminal_write(const struct text *text, struct err *err)
{
    int rc = text_check(text, err);
    if (rc < 0)
        return rc;
    if (fwrite(text_str(text), 1, text->used, stdout) != text->used || fflush(stdout) != 0)
        return err_errno(err, errno, "cannot write to standard output");
    return 0;
}

int block_draw(struct block *block, const struct style *style, const struct text *above,
               const struct text *lines, struct err *err)
{
    struct text out = {0};
    if (block->lines > 0)
        text_fmt(&out, "\r\033[%zuA\033[J", block->lines);
    text_add(&out, text_str(above));
    size_t drawn = text_clip_lines(&out, style, text_str(lines));
    out.failed |= above->failed || lines->failed;
    int rc = terminal_write(&out, err);
    text_done(&out);
    if (rc == 0)
        block->lines = drawn;
    return rc;
}
