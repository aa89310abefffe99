/* proc.h: what identifies a process beyond its reusable number. Plain files of /proc; any thread.
 */
#ifndef DAEMON_PROC_H
#define DAEMON_PROC_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define PROC_BOOT_ID_BYTES 37 /* a UUID and its NUL */

/* Is this errno of an open(2) a shortage that passes, and tells nothing about the file? */
bool proc_is_short(int errnum);

/* Field 22 of /proc/PID/stat: clock ticks from the boot to the start of the process. With the boot
 * id and the pid it names one process for ever. Returns 0 or an errno (ENOENT: no such process). */
int proc_start_time(pid_t pid, uint64_t *ret_ticks);
/* The kernel's random id of this boot. Returns 0 or an errno. */
int proc_boot_id(char ret_id[static PROC_BOOT_ID_BYTES]);

#endif
