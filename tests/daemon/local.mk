# tests/daemon
