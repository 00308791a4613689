import APNs
import Crypto
import FCM
import HTTP2Client
import NIOCore
import NIOPosix
package import PushModel
import WireFormats

/// Drives the very providers that the relay sends through, with nothing before them: no store, no lanes.
package struct SenderBench: Sendable {
    private let plan: SenderPlan
    private let world: World

    package init(_ plan: SenderPlan, world: World) {
        self.plan = plan
        self.world = world
    }

    /// - Returns: the report, and whether every request was accepted.
    /// - Throws: `.badPlan`; `HTTP2Error`, `APNsError` or `FCMError` when the sender cannot be built.
    package func run() async throws -> (report: BenchReport, hasPassed: Bool) {
        guard plan.requests > 0, plan.connections > 0, plan.streams > 0, (2...5_000).contains(plan.bodyBytes),
            (plan.rate ?? 1) > 0
        else { throw BenchError(.badPlan) }
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        defer { group.shutdownGracefully { _ in } }
        var options = HTTP2Options()
        options.maximumConnections = plan.connections
        options.streamsPerConnection = plan.streams
        // All connections are wanted at once here; a relay grows more slowly.
        options.growAfter = .milliseconds(2)
        if plan.service == .apns {
            let provider = try apns(options, group)
            return try await withTaskExecutorPreference(provider.executor) {
                try await drive(provider, provider.pool)
            }
        }
        let provider = try fcm(options, group)
        return try await withTaskExecutorPreference(provider.executor) {
            try await drive(provider, provider.pool)
        }
    }

    private var url: String {
        "https://" + (plan.host.contains(":") ? "[\(plan.host)]" : plan.host) + ":\(plan.port)"
    }

    private func lane() throws(BenchError) -> LaneName {
        guard let app = ConfiguredName("bench") else { throw BenchError(.badPlan) }
        return LaneName(app: app, service: plan.service, environment: .production)
    }

    private func apns(_ options: HTTP2Options, _ group: MultiThreadedEventLoopGroup) throws -> APNsProvider {
        let key = plan.key ?? Secret(Array(P256.Signing.PrivateKey().pemRepresentation.utf8))
        let credential = try APNsCredential(team: "A1B2C3D4E5", keyID: "F6G7H8I9J0", key: key, world: world)
        return try APNsProvider(
            lane: lane(), credential: credential, url: url, certificates: plan.authority, options: options,
            group: group, world: world, journal: .silent)
    }

    private func fcm(_ options: HTTP2Options, _ group: MultiThreadedEventLoopGroup) throws -> FCMProvider {
        let account = try FCMServiceAccount(file: plan.key ?? BenchServiceAccount.make())
        let credential = FCMCredential(
            account: account, fetch: BenchServiceAccount.Grants(), world: world, journal: .silent)
        return try FCMProvider(
            lane: lane(), credential: credential, addressKind: .token, url: url, certificates: plan.authority,
            options: options, group: group, world: world, journal: .silent)
    }

    private func drive(
        _ provider: some Provider, _ pool: HTTP2Pool
    ) async throws -> (report: BenchReport, hasPassed: Bool) {
        let messages = try makeMessages()
        let lane = try lane()
        let tally = SenderTally(limit: plan.requests)
        let workers = min(plan.connections * plan.streams, plan.requests, SenderPlan.workerLimit)
        return try await withThrowingTaskGroup(of: Bool.self) { running in
            running.addTask {
                try await provider.run()
                return false
            }
            // The handshake is not what is measured, and bounded: a sink that is not there has no stream.
            running.addTask {
                (try await provider.reserve()).release()
                return true
            }
            running.addTask {
                try await world.sleep(world.instant() + SenderPlan.connectSpan)
                return false
            }
            guard try await running.next() == true else { throw BenchError(.unreachable) }
            let start = world.instant()
            let before = ProcessUsage.own().cpu
            await withDiscardingTaskGroup { group in
                for _ in 0..<workers {
                    group.addTask { await work(provider, tally, messages, lane, start) }
                }
            }
            let span = world.instant() - start
            let cpu = ProcessUsage.own().cpu - before
            let snapshot = pool.snapshot()
            running.cancelAll()
            // Being cancelled is how the provider ends.
            do { while try await running.next() != nil {} } catch is CancellationError {}
            return report(tally, snapshot, span: span, cpu: cpu)
        }
    }

    private func work(
        _ provider: some Provider, _ tally: SenderTally, _ messages: [ProviderMessage], _ lane: LaneName,
        _ start: ContinuousClock.Instant
    ) async {
        let digest = Digest16(high: 0, low: 0)
        guard let instance = ConfiguredName("bench") else { return }
        while let number = tally.take() {
            if let rate = plan.rate {
                // Cancelled only when the whole run is: then there is nothing left to send.
                do { try await world.sleep(start + .seconds(Double(number) / rate)) } catch { return }
            }
            let now = world.now()
            let push = OwedPush(
                id: PushID(at: now, random: world.random(), world.random()), row: Int64(number), lane: lane,
                pushClass: .normal, origin: digest, record: nil, touchedAt: now, notBefore: now,
                custodyEnds: .distantFuture, attempt: 0, epoch: 0, mark: nil, instance: instance,
                message: messages[number % messages.count])
            var attempt = 1
            repeat {
                // As above.
                guard let slot = try? await provider.reserve() else { return }
                tally.wasSent()
                let leased = LeasedPush(granting: push, sendBefore: world.instant() + .seconds(3600))
                guard tally.answered(await provider.send(leased, on: slot), attempt: attempt) else { break }
                attempt += 1
            } while true
        }
    }

    private func makeMessages() throws -> [ProviderMessage] {
        // Apple wants an `aps` object in every body (docs/push-services.md §2.4), Google wants strings alone.
        let frame = plan.service == .apns ? #"{"aps":{},"x":""}"# : #"{"x":""}"#
        let filler = String(repeating: "x", count: max(0, plan.bodyBytes - frame.utf8.count))
        let payload = Secret(Array((frame.dropLast(2) + filler + #""}"#).utf8))
        let tokens =
            plan.tokens.isEmpty
            ? (0..<SenderPlan.addresses).map { _ in Hex.encode(world.randomBytes(32)) } : plan.tokens
        return tokens.map { token in
            guard plan.service == .apns else {
                return .fcm(
                    FCMMessage(
                        address: Secret(Array("c\(token.prefix(21)):APA91b\(token)".utf8)), priority: .high,
                        data: payload))
            }
            return .apns(
                APNsMessage(
                    token: Secret(Array(token.utf8)), bundle: "org.example.bench", pushType: .alert,
                    priority: 10, payload: payload))
        }
    }

    private func report(
        _ tally: SenderTally, _ pool: HTTP2Snapshot, span: Duration, cpu: Duration
    ) -> (report: BenchReport, hasPassed: Bool) {
        var report = BenchReport()
        report.add("service", .text(plan.service.name))
        report.add("requests", plan.requests)
        tally.write(to: &report)
        report.add("resent_by_pool", pool.resent)
        report.add("seconds", span.inSeconds)
        report.add("requests_per_second", Double(plan.requests) / span.inSeconds, digits: 0)
        report.add("cpu_seconds", cpu.inSeconds)
        report.add("cpu_microseconds_per_request", cpu.inSeconds * 1e6 / Double(plan.requests), digits: 2)
        report.add("connections", pool.opened)
        report.add("connections_failed", pool.failed)
        report.add("goaways", pool.goaways)
        return (report, tally.failures == 0)
    }
}
