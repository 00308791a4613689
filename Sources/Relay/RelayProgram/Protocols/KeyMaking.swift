import PushModel

/// Settings of an instance whose relay makes a key by itself, in the state directory.
protocol KeyMaking {
    func madeKey(of instance: ConfiguredName, state: String) -> (content: FileContent, file: String)
}
