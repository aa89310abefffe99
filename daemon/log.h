/* log.h: the daemon's own log, on standard error. Any thread.
 *
 * Where that is the journal's a line begins with "<N>", which journald takes as its priority;
 * elsewhere with the time and the level's name.
 */
#ifndef DAEMON_LOG_H
#define DAEMON_LOG_H

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, LOG_LEVEL_INFO, LOG_LEVEL_COUNT };

/* One line, printf format, without a final newline. Control characters in it are replaced. */
void log_line(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...) log_line(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_line(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_info(...) log_line(LOG_LEVEL_INFO, __VA_ARGS__)

#endif
