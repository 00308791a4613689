import NextcloudPush
import PushModel
import SealbellKit
import WebClient

extension KitWire {
    /// Makes an origin's call.
    ///
    /// - Returns: `.none` where nobody answered.
    func answer(_ call: NextcloudCall) async -> NextcloudAnswer {
        let http = HTTPCall(
            method: call.method, url: call.url, headers: call.headers, body: call.body,
            answerLimitBytes: LocalCall.answerLimitBytes)
        do throws(WebError) {
            let answer = try await web.answer(http, within: patience)
            return NextcloudAnswer(
                status: answer.status, retryAfter: answer.retryAfter, body: answer.body)
        } catch { return .none }
    }
}
