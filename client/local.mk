# client: trainctl. Talks only the public protocol.
