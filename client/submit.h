/* submit.h: queueing a job. */
#ifndef CLIENT_SUBMIT_H
#define CLIENT_SUBMIT_H

#include "client/ctl.h"

/* Queues ctl->document's root, from the current directory, once, however often the connection
 * breaks. *ret_result is a new reference to job.submit's, with an "id". Errors: conn_call's. */
int submit_document(struct ctl *ctl, json_t **ret_result, struct err *err);

#endif
