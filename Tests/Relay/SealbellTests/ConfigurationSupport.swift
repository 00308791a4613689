import Testing

@testable import RelayProgram

/// Facts of a process that is nobody in particular.
func facts(
    _ environment: [String: String] = [:], isRoot: Bool = false, home: String? = "/users/ada"
) -> ProcessFacts {
    ProcessFacts(
        environment: environment, isRoot: isRoot, home: home, isTerminal: false, workingDirectory: "/srv",
        processID: 4711)
}

/// Reads a text as `/etc/sealbell/sealbell.yaml`.
func load(
    _ text: String, _ environment: [String: String] = [:], set settings: [String] = [], state: String? = nil,
    sandbox: Bool = false
) throws(ConfigurationError) -> RelayConfiguration {
    try ConfigurationLoader.read(
        text, file: "/etc/sealbell/sealbell.yaml",
        ConfigurationRequest(state: state, settings: settings, isSandbox: sandbox), facts(environment))
}

/// The faults of a text; empty when it has none.
func faults(
    _ text: String, _ environment: [String: String] = [:], set settings: [String] = [], sandbox: Bool = false
) -> [ConfigurationFault] {
    do throws(ConfigurationError) {
        _ = try load(text, environment, set: settings, sandbox: sandbox)
        return []
    } catch {
        return error.faults
    }
}

/// The example of docs/configuration.md without the protocols that are not built yet.
let exampleText = """
    state: /var/lib/sealbell
    store: { url: "sqlite:relay.sqlite", keys: /etc/sealbell/storage.keys }
    listeners:
      public: { bind: "127.0.0.1:8480", serves: [zulip-main], trusted_proxies: [127.0.0.1] }
      admin:  { bind: "127.0.0.1:8481" }
    log: { level: info, format: auto }
    apps:
      acme-chat:
        apns:
          { team: A1B2C3D4E5, key_id: F6G7H8I9J0, key_file: apns.p8, bundles: [org.acme.chat],
            environment: learn }
        fcm:  { service_account: fcm.json, address: auto }
      acme-talk:
        apns:
          { team: A1B2C3D4E5, key_id: F6G7H8I9J0, key_file: apns.p8, bundles: [org.acme.talk], voip: true }
    instances:
      zulip-main:
        { protocol: zulip, apps: [acme-chat], fcm_app: acme-chat, keys: bouncer.keys, sign_up: invite }
    """

/// The smallest app that is one, at the head of a configuration.
let sampleApp = """
    apps:
      acme:
        apns:
          team: A1B2C3D4E5
          key_id: F6G7H8I9J0
          key_file: apns.p8
          bundles: [org.acme.chat]

    """

/// The smallest instance that is one.
private let sampleInstance = """
    instances:
      zulip-main:
        protocol: zulip
        apps: [acme]
        keys: bouncer.keys
    """

/// The smallest configuration that is one, with `line` in the place of `replaced`.
func minimal(
    _ replaced: String = "", with line: String = "", appending more: String = "", instances: String? = nil
) -> String {
    let text = sampleApp + (instances ?? sampleInstance)
    precondition(replaced.isEmpty || text.contains(replaced))
    return (replaced.isEmpty ? text : text.replacing(replaced, with: line)) + "\n" + more
}
