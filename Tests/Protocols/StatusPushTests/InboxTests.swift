import PushModel
import PushTesting
import Secp256k1Keys
import StatusPush
import Testing
import WireFormats

/// What a push means to a phone.
@Suite("Status's receiving", .timeLimit(.minutes(30)))
struct InboxTests {
    private struct Phone {
        var world = StatusWorld()
        var accounts: [StatusInstallation]
        let author: Secp256k1KeyPair

        init() throws {
            accounts = [try world.phone(), try world.phone()]
            author = world.keyPair()
        }

        mutating func note(_ text: String = "hello", id: UInt8 = 1, to account: Int = 1) throws -> String {
            let note = MessagePreview.seal(
                Secret(text.utf8), messageID: Secret([UInt8](repeating: id, count: 32)), author: author,
                to: accounts[account].key.point, using: &world.random)
            return try #require(note).hexDigits.word
        }

        func open(_ json: String, _ chats: [String: [Secret]] = [:]) throws -> StatusInbox.Action {
            var random = SeededRandom(seed: 3)
            let inbox = StatusInbox(using: &random)
            return inbox.open(
                try DeliveredData(delivered: Secret(json.utf8)), accounts: accounts, chats: chats)
        }

        var hash: String { StatusHash.person(accounts[1].key.point).hexDigits.word }
        var chat: Secret { Secret("a chat".utf8) }
        var chatHash: String { StatusHash.chat(chat).hexDigits.word }
    }

    @Test("Both forms of data are read, as APNs and as FCM deliver them")
    func forms() throws {
        var phone = try Phone()
        let note = try phone.note()
        let id = phone.accounts[1].installationID
        let deployed =
            #""encryptedMessage":"0x\#(note)","chatId":"0x\#(phone.chatHash)","publicKey":"0x\#(phone.hash)""#
        let specified =
            #""message":"\#(note)","chat_id":"\#(phone.chatHash)","installation_ids":"#
        for json in [
            #"{"aps":{"alert":"x"},\#(deployed)}"#,
            #"{"data":{\#(deployed)}}"#,
            #"{"message":{"token":"t","data":{\#(deployed)}}}"#,
            #"{"aps":{},\#(specified)["\#(id)"]}"#,
            #"{"data":{\#(specified)"[\"\#(id)\"]"}}"#,
            #"{"aps":{},\#(deployed),\#(specified)["\#(id)"]}"#
        ] {
            guard case .show(let message) = try phone.open(json, [id: [phone.chat]]) else {
                Issue.record("not shown: \(json.prefix(40))")
                continue
            }
            #expect(message.installationID == id && message.author == phone.author.point)
            #expect(message.chat.map { $0 == phone.chat } == true)
            #expect(message.content.map { $0 == Secret("hello".utf8) } == true)
        }
    }

    @Test("Without a message, or with one that does not open, the app is told what to fetch")
    func fetches() throws {
        var phone = try Phone()
        let foreign = try phone.note(to: 0)
        let id = phone.accounts[1].installationID
        for message in ["", "0x", "0x00", "0x" + foreign, String(foreign.dropLast(2))] {
            let json = """
                {"encryptedMessage":"\(message)","chatId":"0x\(phone.chatHash)","publicKey":"0x\(phone.hash)"}
                """
            guard case .fetch(let found) = try phone.open(json, [id: [phone.chat]]) else {
                Issue.record("not fetched: \(message.prefix(8))")
                continue
            }
            #expect(found.installationID == id && found.chat != nil && found.content == nil)
            guard case .fetch(let unknown) = try phone.open(json) else {
                Issue.record("not fetched")
                continue
            }
            #expect(unknown.chat == nil)
        }
    }

    @Test("A push for an account that is not here, or is off, is ignored")
    func foreignAccount() throws {
        var phone = try Phone()
        let stranger = StatusHash.person(phone.author.point).hexDigits.word
        let json = #"{"encryptedMessage":"0x","chatId":"0x\#(phone.chatHash)","publicKey":"0x\#(stranger)"}"#
        guard case .ignore(.foreignAccount) = try phone.open(json) else {
            Issue.record("opened")
            return
        }
        let mine =
            #"{"encryptedMessage":"0x","chatId":"0x\#(phone.chatHash)","publicKey":"0x\#(phone.hash)"}"#
        phone.accounts[1].switchOff()
        guard case .ignore(.switchedOff) = try phone.open(mine) else {
            Issue.record("opened")
            return
        }
    }

    @Test(
        "What is not of this protocol is left to the app",
        arguments: [
            "", "{}", "[]", "null", #"{"aps":{}}"#, #"{"chatId":"0x00"}"#,
            #"{"chatId":1,"publicKey":"0x00"}"#,
            #"{"data":{"data":{"data":{"data":{"data":{"chatId":"00","publicKey":"00"}}}}}}"#,
            #"{"chatId":"zz","publicKey":"0x00"}"#, #"{"enc_payload":"x","spns":1}"#
        ])
    func foreign(_ json: String) {
        #expect(throws: StatusError(.foreignPush)) { try DeliveredData(delivered: Secret(json.utf8)) }
    }

    @Test("All notes have one length, and one that is too long is left out")
    func padding() throws {
        var phone = try Phone()
        let lengths = Set(try ["", "a", String(repeating: "b", count: 300)].map { try phone.note($0).count })
        #expect(lengths.count == 1)
        let long = MessagePreview.seal(
            Secret([UInt8](repeating: 1, count: 400)), messageID: Secret([1]), author: phone.author,
            to: phone.accounts[0].key.point, using: &phone.world.random)
        #expect(long == nil)
    }

    @Test("Somebody else's message with the same id is no repeat, and memory has a bound")
    func repeats() throws {
        var phone = try Phone()
        let other = phone.world.keyPair()
        var inbox = StatusInbox(using: &phone.world.random)
        func data(_ note: Secret) throws -> DeliveredData {
            let json =
                #"{"encryptedMessage":"0x\#(note.hexDigits.word)","chatId":"0x\#(phone.chatHash)","publicKey":"0x\#(phone.hash)"}"#
            return try DeliveredData(delivered: Secret(json.utf8))
        }
        func note(_ author: Secp256k1KeyPair, _ id: Int) throws -> Secret {
            try #require(
                MessagePreview.seal(
                    Secret("x".utf8), messageID: Secret("\(id)".utf8), author: author,
                    to: phone.accounts[1].key.point, using: &phone.world.random))
        }
        guard case .show(let first) = inbox.open(try data(note(phone.author, 1)), accounts: phone.accounts)
        else {
            Issue.record("shown")
            return
        }
        inbox.remember(first)
        // Sealed anew, as a sender's second attempt is.
        guard case .ignore(.repeated) = inbox.open(try data(note(phone.author, 1)), accounts: phone.accounts)
        else {
            Issue.record("shown twice")
            return
        }
        guard case .show = inbox.open(try data(note(other, 1)), accounts: phone.accounts) else {
            Issue.record("taken for another's")
            return
        }
        let row = inbox.row
        let foreign = [[], Array(row.dropFirst()), [Secret("00".utf8)], row + [Secret("x".utf8)]]
        for row in foreign { #expect(throws: StatusError(.malformedRow)) { try StatusInbox(row: row) } }
    }
}
