package import Primitives
package import PushModel

/// What the relay says to one call of its front end, from the body's bytes to the answer's: subscriptions, in
/// the clear or inside an onion request.
///
/// A state machine without I/O. Whoever takes the steps has the reception, which judges each element:
///
///     begin ─► judge: a round of elements, and another, until none is left ─► end
package struct SessionConversation: Sendable {
    /// What is to be done next.
    package enum Next: Sendable {
        /// Elements are judged, round by round.
        case judge(Call)
        /// An answer leaves; `counting`: what is to be counted of the call besides its elements.
        case end(Answer, counting: NoteCode? = nil)
    }

    /// What goes back.
    package enum Answer: Sendable {
        /// 200 with JSON, whatever became of the elements (§3.2).
        case json([UInt8])
        /// 200 with the sealed reply of an onion request, which has a status of its own.
        case sealed(Secret)
        /// In plain text: there is no key to answer with.
        case refused(status: Int, SessionError)
    }

    private let onion: X25519KeyPair
    private let world: World

    /// - Parameter onion: what onion requests are sealed to.
    package init(onion: X25519KeyPair, world: World) {
        self.onion = onion
        self.world = world
    }

    // MARK: Before the body is looked at

    /// What a call costs before it is read: an onion request that has proved nothing costs an exchange of
    /// keys before it can be told from the rest.
    ///
    /// - Returns: `nil` where it costs nothing yet; a toll that is not taken is counted as ``tolled``.
    package static func toll(of endpoint: SessionEndpoint, from client: ClientKey) -> Toll? {
        endpoint == .onion ? Toll(SessionAllowances.ofOnions, of: .client(client)) : nil
    }

    package static let tolled = NoteCode("session.onions-refused")
    private static let malformedOnion = NoteCode("session.malformed-onion")

    // MARK: Reading

    /// A call has come.
    ///
    /// - Parameter body: borrowed for the length of the call.
    package func begin(_ endpoint: SessionEndpoint, _ body: UnsafeRawBufferPointer) -> Next {
        guard endpoint == .onion else { return read(endpoint, by: .plain, body, Reply(onion: nil, world)) }
        let opened: SessionOnion.Opened
        do throws(SessionError) { opened = try SessionOnion.open(body, key: onion) } catch {
            return .end(.refused(status: error.code == .bodyTooLarge ? 413 : 400, error))
        }
        guard let request = opened.request else {
            return .end(.sealed(opened.reply.malformed(world)), counting: Self.malformedOnion)
        }
        return read(request, Reply(onion: opened.reply, world))
    }

    /// An inner request, answered as its endpoint would outside.
    private func read(_ request: InnerRequest, _ reply: Reply) -> Next {
        do throws(SessionError) {
            let endpoint = try SessionEndpoint.find(
                method: request.method, path: request.path, in: [.subscribe, .unsubscribe])
            return request.body.reveal { read(endpoint, by: .onion, $0, reply) }
        } catch {
            return .end(reply.refusal(error))
        }
    }

    /// A body: one element, or an array of them.
    private func read(
        _ endpoint: SessionEndpoint, by way: SessionInbound.Way, _ body: UnsafeRawBufferPointer,
        _ reply: Reply
    ) -> Next {
        do throws(SessionError) {
            return .judge(Call(try SessionCallBody(endpoint, by: way, body), reply))
        } catch {
            return .end(reply.json(CallReply.body(error)))
        }
    }

    /// The way back of a call.
    fileprivate struct Reply: Sendable {
        /// `nil`: the call came in the clear.
        private let onion: OnionReplyKey?
        private let world: World

        init(onion: OnionReplyKey?, _ world: World) { (self.onion, self.world) = (onion, world) }

        func json(_ body: [UInt8]) -> Answer {
            onion.map { seal(200, CallReply.contentType, body, $0) } ?? .json(body)
        }

        /// Of a path or a method that no endpoint has.
        func refusal(_ error: SessionError) -> Answer {
            let status = error.code == .wrongMethod ? 405 : 404
            return onion.map {
                seal(status, "text/plain; charset=utf-8", Array(error.sentence.utf8), $0)
            } ?? .refused(status: status, error)
        }

        private func seal(_ code: Int, _ type: String, _ body: [UInt8], _ key: OnionReplyKey) -> Answer {
            .sealed(body.withUnsafeBytes { key.seal(code: code, contentType: type, body: $0, world) })
        }
    }

    // MARK: Judging

    /// A call's elements, each judged by itself. What concerns one account is done in its order.
    package struct Call: Sendable {
        package typealias Element = Result<SessionInbound, SessionError>
        package typealias Outcome = Result<SessionReply, SessionError>

        /// What an element keeps in memory, at most: its token, its namespaces, and a handful of keys.
        package static let elementBytes = 4 << 10
        /// Elements of one call that are judged at once. The store commits them together.
        private static let elementsAtOnce = 8

        private let elements: [Element]
        private let isArray: Bool
        private let reply: Reply
        private var outcomes: [Outcome] = []

        fileprivate init(_ body: SessionCallBody, _ reply: Reply) {
            elements = body.elements
            isArray = body.isArray
            self.reply = reply
            outcomes.reserveCapacity(elements.count)
        }

        /// What is judged next, at once: elements that have different accounts, one at least. `nil`: nothing
        /// is left.
        package var round: [Element]? {
            guard outcomes.count < elements.count else { return nil }
            var round: [Element] = []
            var accounts: [AccountID] = []
            for element in elements[outcomes.count...].prefix(Self.elementsAtOnce) {
                if case .success(let inbound) = element, let account = inbound.account {
                    guard !accounts.contains(where: { $0 == account }) else { break }
                    accounts.append(account)
                }
                round.append(element)
            }
            return round
        }

        /// The round's elements were judged.
        ///
        /// - Parameter outcomes: one of each, in their order.
        package mutating func took(_ outcomes: [Outcome]) { self.outcomes += outcomes }

        /// Whether the storage network has to be told of something.
        package var hasNews: Bool {
            outcomes.contains { outcome in
                if case .success(let reply) = outcome { reply == .added || reply == .updated } else { false }
            }
        }

        /// What is answered when all were judged.
        package func answer() -> Answer { reply.json(CallReply.body(outcomes, isArray: isArray)) }
    }
}

extension SessionInbound {
    /// Whose call it is.
    var account: AccountID? {
        switch self {
        case .subscribe(let form, _): form.claim.account
        case .unsubscribe(let form, _): form.claim.account
        case .notified(let push, _): push.account
        }
    }
}
