EXTRA_DIST += scripts/build scripts/fuzz scripts/packages.sh scripts/quickstart scripts/test
