/// Bounds of what the relay reads from the swarm, each with its reason.
package enum SwarmFormLimits {
    /// An X25519 key.
    package static let nodeKeyBytes = 32
    /// Nodes of one network: some 2,000 are registered, and a network five times as large is read.
    package static let nodes = 10_000
    /// The answer is 3 deep; what it may have besides is passed over.
    package static let nodesDepth = 16
    /// A block's hash in hex.
    package static let blockHashBytes = 64
    /// A message's hash: text of 43 characters in practice, 32 to 99 by the deployed server's check (§9.5).
    package static let hashBytes = 32...99
    /// One push: a stored message has 76,800 bytes at most, beside which the other values are small.
    package static let pushBytes = 128 << 10
    /// A push is 1 deep.
    package static let pushDepth = 4
    /// A reply to a list of watches is 2 deep.
    package static let replyDepth = 4
    /// Frames of one message that are looked at: what is sent to us has 3 at most.
    package static let frames = 8
    /// Name of a category and of its command, and the point between them.
    package static let commandBytes = 251
    /// Random bytes that tie a reply to its request.
    package static let tagBytes = 15
    /// A storage server takes no watch whose signature is older (§10.3).
    package static let signatureLife = Duration.seconds(14 * 86_400)
}
