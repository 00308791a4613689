import PushModel

/// The results of a relay's checks at one moment.
struct Health: Sendable {
    var checks: [(name: NoteCode, isWell: Bool)]
    /// A role that needs the checks is well only while they are.
    var roles: [(name: ConfiguredName, isWell: Bool)]

    /// All common checks are well, and so is at least one role: a role that is out leaves the others ready.
    var isReady: Bool {
        checks.allSatisfy(\.isWell) && (roles.isEmpty || roles.contains(where: \.isWell))
    }

    /// `nil` when there is no such role.
    func isReady(_ role: Substring) -> Bool? { roles.first { $0.name.text == role }?.isWell }
}

/// Asks all checks at once; one that is silent until the deadline is not well.
struct Examination: Sendable {
    /// For all checks of one question together. None of the relay's checks asks a store: they answer from
    /// what was seen last, so that anybody may ask.
    private static let deadline = Duration.seconds(2)

    let checks: [HealthCheck]
    let roles: [RoleCheck]
    let world: World

    func health() async -> Health {
        let all = checks.map(\.isWell) + roles.map(\.isWell)
        let found = await ask(all)
        let checked = zip(checks, found).map { (name: $0.name, isWell: $1) }
        let areWell = checked.allSatisfy(\.isWell)
        return Health(
            checks: checked,
            roles: zip(roles, found.dropFirst(checks.count)).map { role, isWell in
                (name: role.name, isWell: isWell && (areWell || !role.needsChecks))
            })
    }

    private func ask(_ questions: [@Sendable () async -> Bool]) async -> [Bool] {
        let end = world.instant() + Self.deadline
        var found: [Int: Bool] = [:]
        await withTaskGroup(of: (Int, Bool)?.self) { group in
            for (index, question) in questions.enumerated() { group.addTask { (index, await question()) } }
            let world = world
            group.addTask {
                // A sleep that ends early was cancelled because all checks have answered.
                try? await world.sleep(end)
                return nil
            }
            while found.count < questions.count, let result = await group.next(), let result {
                found[result.0] = result.1
            }
            group.cancelAll()
        }
        return questions.indices.map { found[$0] ?? false }
    }
}
