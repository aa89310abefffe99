/* file.h: the few file operations that must not be done half: open only what is a file, write all
 * of it, make it last, let it appear at once.
 *
 * Errors are ERR_IO with the path and the system's reason, unless said otherwise.
 */
#ifndef ENGINE_BASE_FILE_H
#define ENGINE_BASE_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "proto/err.h"

/* Opens a regular file for reading; a directory, FIFO, socket or device is refused by its name and
 * never waited for. */
int file_open(const char *path, int *ret_fd, int64_t *ret_bytes, struct err *err);
/* Opens a regular file for reading and for writing at its end, and makes it where it is missing;
 * others are refused as above. */
int file_append(const char *path, int *ret_fd, struct err *err);
/* Makes an empty file for writing. What was there, the leftover of a kill or a link or FIFO that
 * somebody laid there, is removed and not written into. */
int file_create(const char *path, int *ret_fd, struct err *err);
/* A file's bytes, read as they are asked for. Who truncates it while it is mapped ends the process
 * (SIGBUS). */
struct file_map {
    const uint8_t *at; /* NULL: the file is empty */
    size_t bytes;
};
/* Errors: also ERR_NOMEM. */
int file_map(const char *path, struct file_map *ret_map, struct err *err);
void file_unmap(struct file_map *map);
/* Writes all of it, whatever the system takes at a time. */
int file_write(int fd, const void *data, size_t bytes, const char *path, struct err *err);
/* Makes the entries of a directory last. */
int file_sync_dir(const char *path, struct err *err);
/* rename, and the directory `dir` of the new name synced. */
int file_rename(const char *from, const char *to, const char *dir, struct err *err);
/* The file `dir`/`name` with these bytes: complete or as it was before. */
int file_replace(const char *dir, const char *name, const void *data, size_t bytes,
                 struct err *err);
/* A file or a directory with all that is in it; symbolic links are removed, not followed. Fine
 * where nothing is there. */
int file_remove_tree(const char *path, struct err *err);
/* Formats a path into LIMIT_PATH_BYTES. Errors: ERR_IO where it does not fit. */
int file_path(char *ret_path, struct err *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
