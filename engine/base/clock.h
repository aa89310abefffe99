/* clock.h: how long something takes. */
#ifndef ENGINE_BASE_CLOCK_H
#define ENGINE_BASE_CLOCK_H

/* Seconds since some moment, monotonic. Any thread. */
double clock_seconds(void);
/* Seconds of a core that the calling thread has had. */
double clock_thread_seconds(void);

#endif
