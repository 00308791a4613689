package import HTTPIngress
import NIOCore
import NextcloudPush
package import PushModel

/// An origin's door for Nextcloud's clients: OCS, versions 1 and 2, in JSON and XML (§4.1).
package struct NextcloudDoor: HTTPFace {
    package let name: ConfiguredName
    private let users: NextcloudUsers
    private var context: NextcloudOriginContext { users.context }

    package init(_ users: NextcloudUsers) {
        name = users.context.space.instance
        self.users = users
    }

    package var routes: [HTTPRoute] {
        ["/ocs/v1.php/", "/ocs/v2.php/"].map {
            HTTPRoute(.prefix($0), bodyLimitBytes: NextcloudLimits.deviceBodyBytes)
        }
    }

    package func respond(to inbound: HTTPInbound) async -> HTTPOutbound {
        let head = OCSHead(
            method: inbound.method.rawValue, path: inbound.path, query: inbound.query,
            accept: inbound.header("accept"), contentType: inbound.header("content-type"),
            apiRequest: inbound.header("ocs-apirequest"),
            authorization: inbound.header("authorization").map { Secret($0.utf8) },
            userAgent: inbound.header("user-agent") ?? "")
        guard let request = OCSRequest(head) else { return .text(404, "There is nothing at this path.") }
        let answer = await answer(request, inbound)
        let body = answer.body(request.version, request.format).reveal { Array($0) }
        return HTTPOutbound(
            answer.httpStatus(request.version), request.format == .json ? .jsonText : .xml, body,
            headers: answer.headers.map { _ in
                (name: "www-authenticate", value: "Basic realm=\"Authorisation Required\"")
            })
    }

    private func answer(_ request: OCSRequest, _ inbound: HTTPInbound) async -> OCSAnswer {
        var known: (user: OriginUser, with: OriginUser.Credential)?
        // Two would let a proxy and this server believe different ones.
        let credentials = inbound.headerCount("authorization") > 1 ? nil : request.credentials
        if let credentials {
            do throws(OriginError) {
                known = try await context.people.authenticate(
                    user: credentials.user, password: credentials.password)
            } catch { return .unavailable }
            if known == nil { return .wrongCredentials }
        }
        let call: OCSCall
        do throws(OCSRefusal) {
            call = try request.call(
                body: inbound.withBody { Secret(copying: $0) }, isLoggedIn: known != nil)
        } catch { return error.answer }
        guard let known else { return .capabilities(isLoggedIn: false) }
        return await carryOut(call, known.user, known.with, request.userAgent)
    }

    private func carryOut(
        _ call: OCSCall, _ user: OriginUser, _ credential: OriginUser.Credential, _ userAgent: String
    ) async -> OCSAnswer {
        let tokenID = credential.kind == .appPassword ? credential.id : nil
        if case .revoke = call, tokenID == nil { return .noAppPassword }
        let origin = context.origin
        do throws(OriginError) {
            let step = try await users.change(user, needs: { $0.needed(for: call) }) {
                registrations, moment throws(NextcloudError) in
                try registrations.receive(
                    call,
                    from: NextcloudCaller(
                        session: NextcloudSession(user: moment.person, tokenID: tokenID),
                        userID: user.name, displayName: user.name, userAgent: userAgent),
                    texts: moment.texts, conditions: moment.conditions, at: origin, now: moment.now)
            }
            if case .revoke = call { try await context.people.revoke(credential.id, of: user.name) }
            return step?.answer ?? .unavailable
        } catch {
            return error.code == .rateLimited ? .tooManyCalls : .unavailable
        }
    }
}

/// Notifications for users' Nextcloud devices.
package struct NextcloudNotifier: Sendable {
    private let users: NextcloudUsers
    /// The subject of the origin's own notifications.
    private static let objectType = "sealbell"
    /// As long as an application's key is remembered.
    private static let repeats = Duration.seconds(86_400)

    package init(_ users: NextcloudUsers) { self.users = users }

    /// - Parameter id: of the notification at this server: 32 hex digits. One that was owed within a day is
    ///   not owed again.
    /// - Returns: for how many devices it is owed now.
    package func notify(
        _ user: OriginUser, id: String, _ content: NotificationContent
    ) async throws(OriginError) -> Int {
        let said = (content.sender.map { $0 + ": " } ?? "") + content.text
        let subject = said.cut(toBytes: NextcloudLimits.subjectBytes)
        // Text that does not fit into a line, which apps show below it.
        let message = subject == said ? "" : content.text.cut(toBytes: NextcloudLimits.messageBytes)
        let draft = StoredNotification.Draft(
            app: "sealbell", subject: subject, message: message, objectType: Self.objectType, objectID: id)
        let origin = users.context.origin
        let step = try await users.change(
            user, makes: false, needs: { $0.candidates(objectType: Self.objectType, objectIDs: [id]) }
        ) { registrations, moment throws(NextcloudError) in
            let isRepeat = moment.texts.contains {
                $0.draft.objectType == Self.objectType && $0.draft.objectID == id
                    && moment.now.since($0.at) < Self.repeats
            }
            // Without a device nobody would read it.
            guard !isRepeat, !registrations.devices.isEmpty else { return NextcloudStep(settled: []) }
            return try registrations.notify(
                draft, of: moment.person, conditions: moment.conditions, at: origin, now: moment.now)
        }
        return step?.entries.count ?? 0
    }

    /// - Parameter ids: that ``notify(_:id:_:)`` was given.
    package func withdraw(_ user: OriginUser, _ ids: [String]) async throws(OriginError) -> Int {
        let origin = users.context.origin
        let step = try await users.change(
            user, makes: false,
            needs: { $0.candidates(objectType: Self.objectType, objectIDs: ids) }
        ) { registrations, moment throws(NextcloudError) in
            let meant = moment.texts.filter {
                $0.draft.objectType == Self.objectType && ids.contains($0.draft.objectID)
            }
            return try registrations.withdraw(
                meant.map(\.id), of: moment.person, conditions: moment.conditions, at: origin,
                now: moment.now)
        }
        return step?.entries.count ?? 0
    }
}

extension String {
    /// As many whole characters as so many bytes of UTF-8 hold, with an ellipsis where there were more.
    fileprivate func cut(toBytes limit: Int) -> String {
        guard utf8.count > limit else { return self }
        let ellipsis = "…"
        var room = limit - ellipsis.utf8.count
        var kept = ""
        for character in self {
            room -= character.utf8.count
            guard room >= 0 else { break }
            kept.append(character)
        }
        return kept + ellipsis
    }
}
