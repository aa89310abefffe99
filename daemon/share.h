/* share.h: how much of the devices somebody has had lately. PURE functions of values.
 *
 * A device-second counts half after each half-life: the amount A of t seconds ago is A·2^(-t/h)
 * now, and a job on d devices that has run for t seconds has come to d·h/ln 2·(1 - 2^(-t/h)).
 */
#ifndef DAEMON_SHARE_H
#define DAEMON_SHARE_H

/* What is left of an amount after so many seconds. */
double share_decay(double amount, double seconds, double half_life_s);
/* What a job on so many devices has come to that has run for so many seconds until now. */
double share_run(double devices, double seconds, double half_life_s);

#endif
