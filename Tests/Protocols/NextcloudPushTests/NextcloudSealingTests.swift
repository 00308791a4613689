import NextcloudPush
import PushModel
import PushTesting
import RSAKeys
import Testing
import WireFormats

/// What an origin encrypts opens at the right device, signed by the right user, and in no other case
/// (docs/conformance/nextcloud.md).
@Suite("Nextcloud sealing", .timeLimit(.minutes(30)))
struct NextcloudSealingTests {
    private func opened(_ device: NextcloudRoutine, _ sealed: SealedSubject) -> NextcloudError.Code? {
        do {
            _ = try device.open(sealed)
            return nil
        } catch { return error.code }
    }

    @Test("A notification opens with its device's key, in both paddings", arguments: RSAPadding.allCases)
    func bothPaddings(_ padding: RSAPadding) throws {
        let ends = try Ends()
        let origin = NextcloudOrigin(NextcloudOrigin.Settings(padding: padding))
        let subjects = ["", "see you at nine", "\"quoted\" \\ a/b \n\u{7F}", "Grüße \u{1F389} \u{2028}"]
        for subject in subjects {
            let sealing = try origin.notify(
                Ends.chat(subject), to: ends.everybody([ends.row()]), of: ends.user)
            let content = try ends.device().open(try Ends.subject(of: sealing.entries[0]))
            guard case .alert(let alert) = content else {
                Issue.record("an alert")
                continue
            }
            #expect(alert.subject == subject)
            #expect(alert.id == 7 && alert.app == "spreed")
            #expect(alert.objectType == "chat" && alert.objectID == "t0k3n")
            #expect(!alert.needsDetails)
        }
    }

    @Test("Each kind of withdrawal says what it takes away")
    func withdrawals() throws {
        let ends = try Ends()
        let origin = NextcloudOrigin()
        let audience = ends.everybody([ends.row()])
        let device = try ends.device()
        let ids = Array<Int64>(1...11)
        let some = try origin.withdraw(ids, from: audience, of: ends.user)
        #expect(some.entries.map(\.kind) == [.withdrawal, .withdrawal])
        #expect(try device.open(Ends.subject(of: some.entries[0])) == .withdrawal(Array(1...10)))
        #expect(try device.open(Ends.subject(of: some.entries[1])) == .withdrawal([11]))
        let all = try origin.withdrawAll(from: audience, of: ends.user)
        #expect(try device.open(Ends.subject(of: all.entries[0])) == .withdrawalOfAll)
        #expect(try origin.withdraw([], from: audience, of: ends.user).entries.isEmpty)
    }

    @Test("A subject or a signature that is cut at any length belongs to nobody")
    func cut() throws {
        let ends = try Ends()
        let device = try ends.device()
        let whole = try ends.sealed(Array(#"{"delete-all":true}"#.utf8))
        #expect(try device.open(whole) == .withdrawalOfAll)
        for length in 0..<whole.subject.count {
            let short = whole.subject.reveal { Secret($0[..<length]) }
            let part = SealedSubject(subject: short, signature: whole.signature)
            #expect(opened(device, part) == .foreignSignature, "length \(length)")
            let sign = whole.signature.reveal { Secret($0[..<length]) }
            let other = SealedSubject(subject: whole.subject, signature: sign)
            #expect(opened(device, other) == .foreignSignature, "length \(length)")
        }
        // A user who signs fewer bytes signs no ciphertext.
        let bytes = try whole.subject.reveal { try Base64.decode($0) }
        for length in [0, 1, 255] {
            #expect(opened(device, try ends.signed(Array(bytes[..<length]))) == .foreignSignature)
        }
    }

    @Test("A changed byte belongs to nobody; signed by the user all the same it does not open")
    func changed() throws {
        let ends = try Ends()
        let device = try ends.device()
        let whole = try ends.sealed(Array(#"{"delete-all":true}"#.utf8))
        let bytes = try whole.subject.reveal { try Base64.decode($0) }
        for index in bytes.indices {
            var changed = bytes
            changed[index] ^= 1 << UInt8(index % 8)
            let foreign = SealedSubject(
                subject: Secret(Base64.encode(changed)), signature: whole.signature)
            #expect(opened(device, foreign) == .foreignSignature, "byte \(index)")
            guard index.isMultiple(of: 32) else { continue }
            #expect(opened(device, try ends.signed(changed)) == .doesNotOpen, "byte \(index)")
        }
    }

    @Test("Another user's signature is foreign, and another device's ciphertext does not open")
    func wrongKeys() throws {
        let ends = try Ends()
        let plain = Array(#"{"delete-all":true}"#.utf8)
        #expect(opened(try ends.device(), try ends.sealed(plain, by: ends.otherKey)) == .foreignSignature)
        #expect(opened(try ends.device(key: ends.otherKey), try ends.sealed(plain)) == .doesNotOpen)
        // Before it is registered a device believes nobody.
        let fresh = NextcloudRoutine(account: ends.account, app: Ends.app, key: ends.deviceKey)
        #expect(opened(fresh, try ends.sealed(plain)) == .foreignSignature)
    }

    @Test("What decrypts and is no JSON does not open: so random bytes of an implicit rejection do not")
    func noJSON() throws {
        let ends = try Ends()
        let device = try ends.device()
        var random = SeededRandom(seed: 5)
        for padding in RSAPadding.allCases {
            for count in [0, 1, 48, 200] {
                let bytes = (0..<count).map { _ in UInt8.random(in: 128...255, using: &random) }
                #expect(opened(device, try ends.sealed(bytes, padding)) == .doesNotOpen)
            }
            #expect(opened(device, try ends.sealed(Array("not json".utf8), padding)) == .doesNotOpen)
        }
    }

    @Test("A plaintext that is cut at any length before sealing does not open")
    func cutPlaintext() throws {
        let ends = try Ends()
        let device = try ends.device()
        let plain = Array(#"{"nid":5,"app":"spreed","subject":"\u00fc","type":"chat","id":"t"}"#.utf8)
        for length in 0..<plain.count {
            #expect(
                opened(device, try ends.sealed(Array(plain[..<length]))) == .doesNotOpen, "length \(length)")
        }
    }

    @Test(
        "JSON of an unknown form is dropped silently",
        arguments: [
            "{}", "[]", "5", "null", #""x""#, #"{"nid":5}"#, #"{"nid":5,"delete":false}"#,
            #"{"delete":true}"#,
            #"{"nid":"5","delete":true}"#, #"{"delete-multiple":true}"#,
            #"{"nids":[],"delete-multiple":true}"#, #"{"nids":[1,"2"],"delete-multiple":true}"#,
            #"{"nids":5,"delete-multiple":true}"#, #"{"delete-all":1}"#, #"{"activationToken":"u"}"#,
            #"{"app":5,"subject":"s"}"#
        ])
    func unknownForms(_ text: String) throws {
        let ends = try Ends()
        #expect(try ends.device().open(try ends.sealed(Array(text.utf8))) == nil)
    }

    @Test("Members come in any order, and a missing one or a cut subject asks for the details")
    func details() throws {
        let ends = try Ends()
        let device = try ends.device()
        func alert(_ text: String) throws -> NextcloudAlert {
            guard case .alert(let alert)? = try device.open(try ends.sealed(Array(text.utf8))) else {
                throw NextcloudError(.malformedSubject)
            }
            return alert
        }
        let whole = try alert(
            #"{"id":"t","x":[{}],"type":"chat","subject":"s","app":"spreed","nid":1337}"#)
        #expect(!whole.needsDetails && whole.id == 1_337)
        let bare = try alert(#"{"app":"spreed","subject":"s"}"#)
        #expect(bare.needsDetails && bare.id == nil && bare.subject == "s")
        #expect(
            device.details(of: bare).url
                == "https://cloud.example.org/ocs/v2.php/apps/notifications/api/v2/notifications?format=json")
        let cut = try alert(#"{"nid":3,"app":"a","subject":"s\u2026","type":"t","id":"i"}"#)
        #expect(cut.isCut && cut.needsDetails)
        #expect(device.details(of: cut).url.hasSuffix("/api/v2/notifications/3?format=json"))
        for part in [
            #"{"nid":3,"app":"a","type":"t","id":"i"}"#, #"{"nid":3,"app":"a","subject":"s","type":"t"}"#
        ] {
            #expect(try alert(part).needsDetails, "\(part)")
        }
    }

    @Test("A subject never takes more than its room, whatever its characters")
    func room() throws {
        let ends = try Ends()
        let origin = NextcloudOrigin()
        let audience = ends.everybody([ends.row()])
        var random = SeededRandom(seed: 6)
        let letters: [Unicode.Scalar] = ["a", "/", "\"", "\u{1}", "ü", "\u{FFFF}", "\u{1F389}", "\u{7F}"]
        for count in stride(from: 0, through: 260, by: 13) {
            let scalars = (0..<count).map { _ in letters.randomElement(using: &random) ?? "a" }
            let subject = String(String.UnicodeScalarView(scalars))
            let sealing = try origin.notify(Ends.chat(subject), to: audience, of: ends.user)
            let sealed = try Ends.subject(of: sealing.entries[0]).subject.reveal { try Base64.decode($0) }
            let plain = try sealed.withUnsafeBytes { try ends.deviceKey.decrypt($0, padding: .oaepSHA1) }
            #expect(plain.count <= 204)
            let text = try #require(try plain.reveal { try JSONValue.parse($0) }["subject"]?.string)
            let kept =
                text.unicodeScalars.last == "\u{2026}"
                ? text.unicodeScalars.dropLast() : text.unicodeScalars[...]
            #expect(subject.unicodeScalars.starts(with: kept))
        }
    }
}
