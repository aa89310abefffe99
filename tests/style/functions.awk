# Functions longer than 120 lines: a line "{" alone opens one, "}" alone closes it.
FNR == 1 { open = 0 }
/^\{$/ { open = FNR }
/^\}$/ && open { if (FNR - open > 120) print FILENAME ":" open ": " FNR - open " lines"; open = 0; seen++ }
END { if (seen < 100) print "functions.awk found only " seen " functions" }
