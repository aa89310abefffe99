# Who may include whom: programs only proto; in the engine only folders to the left; tests anything.
BEGIN {
    n = split("base graph ops backend plan exec comm parallel data train worker", ladder, " ")
    for (i = 1; i <= n; i++) rank[ladder[i]] = i
}
FILENAME ~ /^tests\// || FILENAME ~ /^bench\// { next }
/^#include "/ {
    seen++
    split($2, part, "\"")
    split(part[2], to, "/")
    split(FILENAME, from, "/")
    if (to[1] == "config.h" || to[1] == "proto") next
    if (from[1] != to[1]) print FILENAME ":" FNR ": " from[1] " may not include " part[2]
    else if (from[1] == "engine" && rank[to[2]] > rank[from[2]]) print FILENAME ":" FNR ": " part[2] " lies to the right"
}
END { if (seen < 50) print "includes.awk found only " seen " includes" }
