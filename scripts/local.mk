EXTRA_DIST += scripts/build scripts/packages.sh
