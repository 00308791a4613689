package import PushModel
package import SealbellKit
package import Uplink
import ZulipPush

/// Applies the relay's answers to users' registrations and notifications.
package struct ZulipOffice: UplinkOffice {
    private let users: ZulipUsers
    private let notifier: ZulipNotifier
    private let staleLists: StaleLists

    package init(_ users: ZulipUsers, _ notifier: ZulipNotifier, _ staleLists: StaleLists) {
        self.users = users
        self.notifier = notifier
        self.staleLists = staleLists
    }

    private var context: ZulipOriginContext { users.context }

    package func leave(of message: UplinkMessage) async -> UplinkLeave {
        guard let origin = context.origin() else { return .later }
        let references =
            message.kind == .notification ? [(name: ZulipOrigin.referencesField, value: "1")] : []
        return .granted(
            origin.credentials.map { field in
                (field.name, field.value.reveal { String(decoding: $0, as: UTF8.self) })
            } + references, server: context.relay)
    }

    package func take(
        _ answer: CallAnswer, to message: UplinkMessage, of call: PushID
    ) async -> UplinkVerdict {
        switch message.kind {
        case .registration: await settle(answer, message)
        case .notification: await notifier.settle(answer, message, call)
        case .staleList: await staleLists.take(answer, to: message)
        // The other door's.
        case .proxy: .refused
        }
    }

    private func settle(_ answer: CallAnswer, _ message: UplinkMessage) async -> UplinkVerdict {
        guard let subject = RegistrationSubject(message.subject) else { return .refused }
        let status = answer.status
        let context = context
        do throws(ZulipUsersRefusal) {
            return try await users.change(
                subject.user, realm: subject.realm,
                { registrations in
                    var generator = WorldGenerator(world: context.world)
                    return registrations.settle(
                        item: subject.item, answer, now: context.world.now(), using: &generator)
                        ?? ZulipStep()
                },
                behind: { [status] registrations, step in
                    guard let item = registrations.queue[subject.item] else {
                        return step.changes.isEmpty ? .refused : .done
                    }
                    if status == 401 { return .callerRefused }
                    return .again(
                        after: max(.zero, item.nextTry.since(context.world.now())),
                        blames: status.map { $0 == 429 || $0 >= 500 } ?? true)
                })
        } catch {
            // Nobody is there to register.
            if case .origin(let error) = error, error.code == .unknownUser { return .refused }
            return .uncommitted
        }
    }
}
