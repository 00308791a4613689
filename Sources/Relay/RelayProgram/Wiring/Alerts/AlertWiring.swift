import AdminIngress
import Delivery
import PushModel

/// Which ways alerts go, as the configuration says.
struct AlertWiring {
    private let alerts: AlertsConfiguration
    private let web: (_ authority: String?) -> any WebFetch

    /// - Parameter web: what fetches, and trusts the authority in that file too where there is one.
    init(_ configuration: RelayConfiguration, _ web: @escaping (_ authority: String?) -> any WebFetch) {
        alerts = configuration.alerts
        self.web = web
    }

    /// - Throws: `CommandFailure` that names the file of the webhook's secret.
    func ways(_ world: World) throws(CommandFailure) -> AlertWays {
        var sinks: [any AlertSink] = []
        if let webhook = alerts.webhook {
            sinks.append(
                WebhookSink(
                    url: webhook.url.text, key: try CredentialCache.read(webhook.secretFile).trimmed,
                    web: web(webhook.authorityFile)))
        }
        if let mail = alerts.mail, let program = mail.command.first {
            sinks.append(
                MailCommandSink(
                    path: program, arguments: Array(mail.command.dropFirst()), recipient: mail.to,
                    world: world))
        }
        return AlertWays(log: alerts.log, gauge: alerts.gauge, sinks: sinks)
    }

    /// The delivery core's word to the alert port, and to what remembers answers.
    static func observer(
        _ alerts: AlertPort, _ trail: AttemptTrail, _ custody: CustodyTally, _ proofs: LaneProofs,
        _ refusals: RefusalRates, _ events: EventLog, _ history: HistoryKeeper, _ world: World
    ) -> DeliveryObserver {
        var observer = DeliveryObserver(
            laneHalted: { lane, _, reason in
                proofs.forget(lane)
                alerts.raise(.laneHalted(lane, reason))
            },
            laneResumed: { lane in alerts.clear(Alert.laneHalted(lane, .ok).subject) },
            laneUnanswered: { lane, reason in
                proofs.forget(lane)
                alerts.raise(.laneUnanswered(lane, reason))
            },
            laneAnswered: { lane in alerts.clear(Alert.laneUnanswered(lane, .ok).subject) },
            custodyEnds: { lane, count in custody.note(lane, count, at: world.instant()) },
            attempted: { attempt in
                trail.note(attempt)
                proofs.note(attempt)
                refusals.note(attempt)
            })
        observer.counted = { history.note($0, $1, $2, at: $3) }
        observer.registrationEnded = { lane, record, reason in
            events.note(
                "registration ended",
                [(.lane, lane), (.registration, RegistrationID(record)), (.reason, reason)])
        }
        observer.setAside = { count in
            let alert = Alert.pushesSetAside(count)
            if count > 0 { alerts.raise(alert) } else { alerts.clear(alert.subject) }
        }
        observer.clockDoubted = { ahead in
            let alert = Alert.clockDoubted(hours: Int(ahead.components.seconds / 3_600))
            if ahead > .zero { alerts.raise(alert) } else { alerts.clear(alert.subject) }
        }
        return observer
    }
}

extension Secret {
    /// Without the line break or spaces at the end that editors leave.
    var trimmed: Secret {
        reveal { bytes in
            let end = bytes.count - bytes.reversed().prefix { $0 == 0x0A || $0 == 0x0D || $0 == 0x20 }.count
            return Secret(copying: UnsafeRawBufferPointer(rebasing: bytes[..<end]))
        }
    }
}
