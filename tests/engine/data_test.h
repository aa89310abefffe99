/* data_test.h: data sets opened for a model of one input, for the checks of data. */
#ifndef TESTS_ENGINE_DATA_TEST_H
#define TESTS_ENGINE_DATA_TEST_H

#include "engine/data/dataset.h"

/* A transform that changes nothing. */
struct job_data data_test_plain(void);
/* A text for the only input. What these return lives as long as the test (one of 16 in turn). */
struct job_texts data_test_text(const char *text);
/* A model with one input: float32 and a label a sample; float32 and a target of values; int64 and a
 * label for each of its elements. */
struct dataset_want data_test_labels(struct shape input, int64_t classes);
struct dataset_want data_test_values(struct shape input, struct shape target, int64_t classes);
struct dataset_want data_test_ids(int64_t context, int64_t classes);

/* Aborts the test unless it opens. */
struct dataset *data_test_open(struct job_source source, struct job_data data,
                               struct dataset_want want);
/* Aborts the test unless it is refused so: `says` is a part of the message. */
void data_test_refused(struct job_source source, struct job_data data, struct dataset_want want,
                       int code, const char *path, const char *says);
/* Samples as of epoch 0, from its start; aborts the test on an error. */
void data_test_gather(const struct dataset *dataset, const int64_t *index, int64_t n, void *input,
                      void *targets);

#endif
