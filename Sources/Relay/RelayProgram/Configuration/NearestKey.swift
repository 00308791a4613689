/// The candidate that a misspelt word most likely meant; `nil` when none is near.
///
/// Near is an edit distance of at most a third of the word, and at most 3; ties go to the earlier candidate.
func nearest(_ word: String, among candidates: [String]) -> String? {
    let limit = min(3, max(1, word.count / 3))
    // A word longer than any key by far is not worth the quadratic comparison.
    guard word.utf8.count <= 128 else { return nil }
    var best: (distance: Int, word: String)?
    for candidate in candidates {
        let distance = editDistance(word.lowercased(), candidate.lowercased())
        if distance <= limit, distance < best?.distance ?? .max { best = (distance, candidate) }
    }
    return best?.word
}

/// Levenshtein's distance, with a swap of two neighbours counted as one step.
func editDistance(_ left: String, _ right: String) -> Int {
    let a = Array(left.utf8)
    let b = Array(right.utf8)
    var beforeLast: [Int] = []
    var last = Array(0...b.count)
    for i in 0..<a.count {
        var row = [i + 1]
        for j in 0..<b.count {
            var cost = min(last[j + 1] + 1, row[j] + 1, last[j] + (a[i] == b[j] ? 0 : 1))
            if i > 0, j > 0, a[i] == b[j - 1], a[i - 1] == b[j] { cost = min(cost, beforeLast[j - 1] + 1) }
            row.append(cost)
        }
        (beforeLast, last) = (last, row)
    }
    return last[b.count]
}
