#if canImport(Glibc)
import Glibc
#elseif canImport(Darwin)
import Darwin
#endif
import NIOCore
import NIOPosix
import ServiceLifecycle

/// Ends when standard input does: the holder of the other end of that pipe is gone, or wants this to end.
/// What comes through the pipe is thrown away.
struct InputEnd: Service {
    func run() async throws {
        // A descriptor of its own, because the channel closes what it is given.
        let input = dup(STDIN_FILENO)
        guard input >= 0 else { return }
        let channel = try await NIOPipeBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .takingOwnershipOfDescriptor(input: input).get()
        // Told to end, it stops listening; it fails when the end of input came first.
        try await withTaskCancellationHandler {
            try await withGracefulShutdownHandler {
                try await channel.closeFuture.get()
            } onGracefulShutdown: {
                channel.close(promise: nil)
            }
        } onCancel: {
            channel.close(promise: nil)
        }
    }
}
