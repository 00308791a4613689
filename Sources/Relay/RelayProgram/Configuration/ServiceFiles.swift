import APNs
import FCM
import PushModel

extension FileContent {
    static let apnsKey = FileContent(words: "an APNs key", inSandbox: .made) { bytes, _ in
        do throws(APNsError) {
            // Identifiers of the right form: the file alone is judged here.
            _ = try APNsCredential(team: "AAAAAAAAAA", keyID: "AAAAAAAAAA", key: bytes, world: .live)
            return nil
        } catch {
            return error.sentence
        }
    }

    static let serviceAccount = FileContent(words: "a service account", inSandbox: .made) { bytes, _ in
        do throws(FCMError) {
            _ = try ServiceAccount(file: bytes)
            return nil
        } catch {
            return error.sentence
        }
    }
}
