import Primitives
import PushModel
package import Secp256k1Keys
import WireFormats

/// The registering client: one account on one phone, with the servers it registers at (§11). A value; it
/// sends nothing.
///
/// It is off until ``switchOn()`` is called, because the user has to ask for pushes. At each start
/// ``StatusDevice`` gives it what was kept (``init(rows:key:)``), its token and its settings. Then what
/// ``due(now:using:)`` returns is published, each message on ``topics`` goes to ``receive(_:now:)``, ``rows``
/// are kept, and it is asked again at ``nextDeadline``.
///
/// In anonymous mode the key is one of its own, not the chat key: it is then a secret that the app tells its
/// contacts, and everything here works with it in place of the chat key.
package struct StatusInstallation: Sendable {
    /// What the account registers with: its chat key, or in anonymous mode another.
    package let key: Secp256k1KeyPair
    /// A UUID, this account's name for the phone.
    package let installationID: String
    /// Whether the user wants pushes.
    package internal(set) var isReceiving = false
    /// The number of the last change; one line for all servers.
    package internal(set) var version: UInt64 = 0
    /// Where registrations go: to the server's partitioned topic, or to its personal one as deployed clients
    /// do. Both are heard by deployed servers.
    package var registrationTopic = StatusSetup.RegistrationTopic.partitioned

    var rowKey: Secret
    var token: StatusDeviceToken?
    var settings: StatusSettings?
    var standings: [ServerStanding] = []
    /// A UUID, which senders have to show.
    var accessToken: Secret?
    /// What servers are told at ``version``, as a digest.
    var told: Digest16?
    /// Contacts that could have learned ``accessToken``.
    var tokenContacts: Set<Digest16> = []
    var tokenIsForContacts = false
    var contactTopicKey: Secret?
    var advertises = false
    var lastAdvertisement: UnixTime?
    var others = OtherInstallations()

    /// A new installation: draws its id.
    package init(key: Secp256k1KeyPair, using generator: inout some RandomNumberGenerator) {
        self.key = key
        installationID = Draw.uuid(&generator).word
        rowKey = Draw.secret(32, &generator)
    }

    /// An installation whose id the app has already.
    ///
    /// - Throws: `.malformedInstallation` unless it is a UUID of 36 characters.
    package init(
        key: Secp256k1KeyPair, installationID: String, using generator: inout some RandomNumberGenerator
    ) throws(StatusError) {
        guard AccessToken.isCanonical(Secret(installationID.utf8)) else {
            throw StatusError(.malformedInstallation)
        }
        self.key = key
        self.installationID = installationID
        rowKey = Draw.secret(32, &generator)
    }

    // MARK: what the user wants

    /// The user has asked for pushes. Nothing is sent before this call.
    package mutating func switchOn() {
        guard !isReceiving else { return }
        isReceiving = true
        for place in standings.indices where standings[place].isListed { standings[place].goal = .registered }
    }

    /// The user wants no more pushes, or logs out: every server is told to forget the registration, by what
    /// ``due(now:using:)`` returns from now on. Keep the key until ``isForgotten`` is true.
    package mutating func switchOff() {
        guard isReceiving else { return }
        isReceiving = false
        told = nil
        let known = standings.filter { $0.target > 0 && $0.goal == .registered }
        guard !known.isEmpty, raiseVersion() else { return }
        for place in standings.indices where standings[place].goal == .registered {
            standings[place].aim(.unregistered, at: version)
        }
        accessToken = nil
        tokenContacts = []
        advertises = true
    }

    /// A registration was not published: the attempt does not count against the server. Its answer does, in
    /// case that the node had taken it all the same.
    mutating func unsent(to server: PublicPoint, _ request: Secret) {
        guard let place = standings.firstIndex(where: { $0.server == server }),
            standings[place].requests.contains(where: { $0 == request })
        else { return }
        standings[place].unsent()
    }

    /// Whether it has what a registration needs.
    var isReady: Bool { token != nil && settings != nil }

    /// Whether no server that was told of this account still has it, or is asked again.
    package var isForgotten: Bool {
        !isReceiving && standings.allSatisfy { $0.isLevel || $0.isGivenUp || $0.halt != nil }
    }

    /// The token that the system gave, at each start and whenever it gives another: that is told at once.
    package mutating func use(_ token: StatusDeviceToken) { self.token = token }

    /// The settings as they are now, at each start and after each change; a change is told at once.
    ///
    /// - Throws: `.tooManyEntries` when a registration with them would be too long to be passed on.
    package mutating func apply(_ settings: StatusSettings) throws(StatusError) {
        guard settings.isWithinBounds else { throw StatusError(.tooManyEntries) }
        self.settings = settings
    }

    /// The servers to register at. One that leaves the list is told to forget the account.
    ///
    /// - Throws: `.tooManyServers` beyond ``StatusLimits/deviceServers``.
    package mutating func use(servers: [PublicPoint]) throws(StatusError) {
        guard servers.count <= StatusLimits.deviceServers else { throw StatusError(.tooManyServers) }
        for place in standings.indices {
            standings[place].isListed = servers.contains(standings[place].server)
            guard !standings[place].isListed, standings[place].goal == .registered else { continue }
            if standings[place].target == 0 {
                // Never told: there is nothing to take back.
                standings[place].goal = .unregistered
            } else if isReceiving, raiseVersion() {
                standings[place].aim(.unregistered, at: version)
                advertises = true
            }
        }
        for server in servers {
            guard let place = standings.firstIndex(where: { $0.server == server }) else {
                standings.append(ServerStanding(server, .registered, target: 0))
                continue
            }
            // It comes back after it was left: it needs a higher version than the one it forgot.
            if standings[place].goal == .unregistered, isReceiving, raiseVersion() {
                standings[place].aim(.registered, at: version)
            }
        }
        forgetLeftServers()
    }

    /// Tries again at once what was given up or refused, because somebody asks for it.
    package mutating func retry() {
        for place in standings.indices where !standings[place].isLevel {
            let one = standings[place]
            standings[place].aim(one.goal, at: one.target)
            standings[place].requests = one.requests
        }
    }

    /// How the account stands with each server.
    package var servers: [ServerState] { standings.map { ServerState($0) } }

    package struct ServerState: Sendable, Hashable {
        package let server: PublicPoint
        package let condition: StatusServer.Condition

        init(_ standing: ServerStanding) {
            server = standing.server
            condition =
                if standing.isLevel {
                    standing.goal == .registered && standing.reached > 0 ? .registered : .unregistered
                } else if standing.halt != nil { .refused } else if standing.isGivenUp { .givenUp } else {
                    .waiting
                }
        }
    }

    // MARK: parts

    /// - Returns: `false` when there is no higher version, which nobody will meet.
    mutating func raiseVersion(by step: UInt64 = 1) -> Bool {
        let (next, overflow) = version.addingReportingOverflow(step)
        guard !overflow, next <= StatusLimits.highestVersion else { return false }
        version = next
        return true
    }

    /// Servers that were left and have forgotten the account need no row: one that comes back gets a higher
    /// version anyway.
    mutating func forgetLeftServers() {
        standings.removeAll {
            !$0.isListed && $0.goal == .unregistered && ($0.isLevel || $0.isGivenUp)
        }
        // The oldest that was left is given up.
        while standings.count > 2 * StatusLimits.deviceServers,
            let place = standings.firstIndex(where: { !$0.isListed })
        {
            standings.remove(at: place)
        }
    }

    func digest(_ point: PublicPoint) -> Digest16 {
        KeyedHash.digest16(key: rowKey) { $0.update(point.compressed) }
    }
}
