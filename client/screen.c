/* screen.c: see screen.h. */
#define _GNU_SOURCE
#include "client/screen.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ncurses.h> /* behind style.h: both have a COLOR_RED, and in this file its own is meant */

static SCREEN *terminal;

/* The numbers of text_paint's sequences, and what they look like. */
static const struct {
    int number;
    attr_t attribute;
    short color; /* -1: the terminal's own */
} looks[] = {
    {0, A_NORMAL, -1},
    {1, A_BOLD, -1},
    {2, A_DIM, -1},
    {31, A_NORMAL, COLOR_RED},
    {32, A_NORMAL, COLOR_GREEN},
    {33, A_NORMAL, COLOR_YELLOW},
    {36, A_NORMAL, COLOR_CYAN},
};

enum { LOOKS = sizeof looks / sizeof *looks };

static const struct {
    int key, meaning;
} keys[] = {
    {KEY_UP, SCREEN_UP},  {KEY_DOWN, SCREEN_DOWN}, {KEY_PPAGE, SCREEN_PAGE_UP},
    {'k', SCREEN_UP},     {'j', SCREEN_DOWN},      {KEY_NPAGE, SCREEN_PAGE_DOWN},
    {'\r', SCREEN_ENTER}, {'\n', SCREEN_ENTER},    {KEY_ENTER, SCREEN_ENTER},
};

int screen_open(struct style *style, struct err *err)
{
    if (!style->terminal || isatty(STDIN_FILENO) != 1)
        return err_set(err, ERR_USAGE, "this needs a terminal; see `trainctl list` and `watch`");
    setlocale(LC_CTYPE, "");
    style->utf8 = style->utf8 && MB_CUR_MAX > 1;
    terminal = newterm(NULL, stdout, stdin);
    if (terminal == NULL)
        return err_set(err, ERR_USAGE, "ncurses knows no terminal \"%s\" (TERM)", getenv("TERM"));
    cbreak();
    noecho();
    curs_set(0);
    keypad(stdscr, TRUE);
    set_escdelay(50);
    nodelay(stdscr, TRUE);
    if (style->color && has_colors()) {
        start_color();
        use_default_colors();
        for (short i = 0; i < LOOKS; i++)
            if (looks[i].color >= 0)
                init_pair((short)(i + 1), looks[i].color, -1);
    }
    return 0;
}

void screen_close(void)
{
    if (terminal == NULL)
        return;
    endwin();
    delscreen(terminal);
    terminal = NULL;
}

void screen_resize(struct style *style)
{
    style->utf8 = style->utf8 && MB_CUR_MAX > 1;
    resizeterm((int)style->rows, (int)style->columns);
    clearok(curscr, TRUE);
}

int screen_key(void)
{
    int key = getch();
    if (key == ERR || key == KEY_RESIZE)
        return SCREEN_NONE;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (keys[i].key == key)
            return keys[i].meaning;
    return key;
}

static void set_look(int number)
{
    for (short i = 0; i < LOOKS; i++)
        if (looks[i].number == number)
            attr_set(looks[i].attribute, looks[i].color >= 0 ? (short)(i + 1) : 0, NULL);
}

/* Words up to the next sequence, then what it says. */
static void put_line(const char *line, size_t n)
{
    set_look(0);
    while (n > 0) {
        const char *sequence = memmem(line, n, "\033[", 2);
        size_t words = sequence != NULL ? (size_t)(sequence - line) : n;
        addnstr(line, (int)words);
        if (sequence == NULL)
            return;
        char *end;
        set_look((int)strtol(sequence + 2, &end, 10)); /* ends in an 'm' */
        n -= (size_t)(end + 1 - line);
        line = end + 1;
    }
}

int screen_draw(const struct text *lines, struct err *err)
{
    int rc = text_check(lines, err), row = 0;
    if (rc < 0)
        return rc;
    erase();
    for (const char *line = text_str(lines); *line != '\0'; row++) {
        size_t n = strcspn(line, "\n");
        move(row, 0);
        put_line(line, n);
        line += n + (line[n] == '\n');
    }
    refresh();
    return 0;
}
