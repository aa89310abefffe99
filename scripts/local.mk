EXTRA_DIST += scripts/build scripts/packages.sh scripts/quickstart scripts/test
