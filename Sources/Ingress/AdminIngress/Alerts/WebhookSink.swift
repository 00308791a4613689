import Crypto
package import PushModel
import WireFormats

/// Posts notices as JSON to an operator's address, signed.
///
/// Body: `{"alert","subject","phase","at","sentence","cause"}`, the last where there is one; `at` in whole
/// seconds of Unix time. Fields: `X-Sealbell-Timestamp`, the same seconds, and `X-Sealbell-Signature`, `v1=`
/// and the lower-case hexadecimal HMAC-SHA256 of timestamp, a full stop, and the body. The receiver refuses a
/// timestamp that is old.
package struct WebhookSink: AlertSink {
    private static let answerLimitBytes = 16 * 1024
    private static let deadline = Duration.seconds(10)

    private let url: String
    private let key: Secret
    private let web: any WebFetch

    package init(url: String, key: Secret, web: any WebFetch) {
        self.url = url
        self.key = key
        self.web = web
    }

    package let way = NoteCode("webhook")

    package func tell(_ notice: AlertNotice) async -> AlertDelivery {
        let body = Self.body(notice)
        let stamp = String(notice.at.seconds)
        let request = WebRequest(
            .post, url: url,
            headers: [
                ("content-type", "application/json"), ("x-sealbell-timestamp", stamp),
                ("x-sealbell-signature", "v1=" + signature(stamp, body))
            ],
            body: Secret(body), answerLimitBytes: Self.answerLimitBytes, deadline: Self.deadline,
            publicAddressesOnly: false)
        do throws(WebError) {
            let status = try await web.fetch(request).status
            return (200..<300).contains(status) ? .told : .refused(status: status)
        } catch {
            return .failed(ErrorCode(error))
        }
    }

    static func body(_ notice: AlertNotice) -> [UInt8] {
        var json = JSONWriter()
        json.beginObject()
        json.member("alert", notice.subject.kind.rawValue)
        json.member("subject", notice.subject.name)
        json.member("phase", notice.phase.rawValue)
        json.member("at", notice.at.seconds)
        json.member("sentence", notice.sentence)
        if let cause = notice.cause {
            json.member("cause", cause)
        }
        json.endObject()
        return json.bytes
    }

    private func signature(_ stamp: String, _ body: [UInt8]) -> String {
        key.reveal { bytes in
            var mac = HMAC<SHA256>(key: SymmetricKey(data: bytes))
            mac.update(data: Array(stamp.utf8) + [0x2E] + body)
            let digits = Array("0123456789abcdef".utf8)
            return String(
                decoding: mac.finalize().flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] },
                as: UTF8.self)
        }
    }
}
