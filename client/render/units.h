/* units.h: numbers as a person reads them. Each writes into `buf` and returns it. Pure. */
#ifndef CLIENT_RENDER_UNITS_H
#define CLIENT_RENDER_UNITS_H

#include <stdint.h>

enum { UNITS_SIZE = 32 };

/* 4s (a whole number), 0.4s, 12s, 3m12s, 1h04m, 2d03h; "-" for a number that is not finite or below
 * 0. */
const char *units_duration(double seconds, char buf[static UNITS_SIZE]);
/* 512 B, 1.4 KiB, 23 MiB, 1.4 GiB. */
const char *units_bytes(int64_t bytes, char buf[static UNITS_SIZE]);
/* 19,466 */
const char *units_count(int64_t n, char buf[static UNITS_SIZE]);
/* 950, 41.2 M, 1.23 T: three digits and a decimal prefix, for FLOPs and rates. */
const char *units_si(double x, char buf[static UNITS_SIZE]);
/* 0.01235, 0.5000, 2.303, 12345, 1.235e-05: always four digits, so that it does not jump about
 * where it is redrawn. */
const char *units_number(double x, char buf[static UNITS_SIZE]);
/* 2026-11-30 17:20:05, local time; "-" when not finite. Any thread. */
const char *units_time(double seconds_since_1970, char buf[static UNITS_SIZE]);

#endif
