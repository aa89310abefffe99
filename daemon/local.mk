# daemon: traind and traind-shim. libuv, jansson, SQLite; never CUDA or oneDNN.
