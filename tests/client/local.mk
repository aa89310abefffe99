# tests/client
