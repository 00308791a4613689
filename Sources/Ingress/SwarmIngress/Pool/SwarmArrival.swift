package import PushModel
package import SessionPush

/// A message that a storage server told of. Nothing in it has been read yet.
package struct SwarmArrival: Sendable {
    package let node: NodeKey
    /// The part of the ring that the node had when it told of the message.
    package let scope: SwarmScope
    package let body: Secret

    package init(node: NodeKey, scope: SwarmScope, body: Secret) {
        self.node = node
        self.scope = scope
        self.body = body
    }

    /// Bytes of memory that it takes, or somewhat more.
    var size: Int { body.count + 256 }
}
