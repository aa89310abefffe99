/* clock.h: how long something takes. */
#ifndef ENGINE_BASE_CLOCK_H
#define ENGINE_BASE_CLOCK_H

/* Seconds since some moment, monotonic. Any thread. */
double clock_seconds(void);

#endif
