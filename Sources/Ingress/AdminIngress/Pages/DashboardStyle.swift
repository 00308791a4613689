import Crypto
import WireFormats

/// How the dashboard looks: by day and by night, on a wide window and on a phone.
enum DashboardStyle {
    /// Nothing is loaded, framed, sent or run, and no style counts but this one.
    static let policy =
        "default-src 'none'; style-src 'sha256-\(Base64.text(Array(SHA256.hash(data: Array(css.utf8)))))'; "
        + "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

    static let css = """
        :root{color-scheme:light dark;--bg:#f4f6f8;--card:#fff;--ink:#17202a;--soft:#5b6773;--line:#e1e6eb;
        --good:#15803d;--warn:#a84b05;--bad:#b91c1c;--one:#2563eb;--two:#c2410c;--shade:#2563eb1f}
        @media(prefers-color-scheme:dark){:root{--bg:#0e1216;--card:#171c22;--ink:#e8ecf0;--soft:#97a3af;
        --line:#29313a;--good:#4ade80;--warn:#fbbf24;--bad:#f87171;--one:#60a5fa;--two:#fb923c;
        --shade:#60a5fa26}}
        *{box-sizing:border-box}
        body{margin:0 auto;padding:1.25rem;max-width:76rem;background:var(--bg);color:var(--ink);
        font:15px/1.45 system-ui,sans-serif;overflow-wrap:anywhere}
        header{display:flex;flex-wrap:wrap;align-items:center;gap:.25rem .75rem}
        h1{font-size:1.35rem;margin:0}h1 small,.soft{color:var(--soft);font-weight:400}
        h2{font-size:1rem;margin:1.75rem 0 .6rem}h3{font-size:.85rem;font-weight:600;margin:0;flex:1 0 100%}
        p{margin:.35rem 0}
        .card,table{background:var(--card);border:1px solid var(--line);border-radius:.6rem}
        .pill{border-radius:1rem;padding:.1rem .7rem;border:1px solid;font-size:.85rem;font-weight:600}
        .good{color:var(--good)}.warn{color:var(--warn)}.bad{color:var(--bad)}
        .tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(9.5rem,1fr));gap:.6rem;
        margin:1rem 0 0;padding:0}
        .tiles div{padding:.6rem .8rem}
        dt{font-size:.8rem;color:var(--soft)}dd{margin:0;font-size:1.35rem;font-weight:600}
        dd small{font-size:.8rem;font-weight:400;color:var(--soft);display:block}
        .graphs{display:grid;grid-template-columns:repeat(auto-fit,minmax(20rem,1fr));gap:.6rem}
        figure{margin:0;padding:.7rem .8rem .45rem}
        figcaption{display:flex;flex-wrap:wrap;gap:0 .8rem;align-items:baseline;font-size:.8rem;
        color:var(--soft)}
        h3{color:var(--ink)}figcaption b{color:var(--ink)}
        .k0::before,.k1::before{content:"";display:inline-block;width:.6rem;height:.6rem;border-radius:50%;
        margin-right:.3rem;background:var(--one)}.k1::before{background:var(--two)}
        svg{display:block;width:100%;height:5.5rem;margin:.45rem 0 .2rem}
        path{fill:none;vector-effect:non-scaling-stroke}
        .grid{stroke:var(--line)}.area{fill:var(--shade)}
        .c0,.c1{stroke:var(--one);stroke-width:1.75;stroke-linejoin:round;stroke-linecap:round}
        .c1{stroke:var(--two)}
        .axis{display:flex;justify-content:space-between;font-size:.72rem;color:var(--soft)}
        .alert{border-left:4px solid var(--bad);padding:.6rem .9rem;margin-bottom:.6rem}
        .alert.later{border-left-color:var(--warn)}
        table{border-collapse:separate;border-spacing:0;width:100%;font-size:.9rem}
        th,td{padding:.45rem .8rem;text-align:left;vertical-align:top;border-bottom:1px solid var(--line)}
        tr:last-child td{border-bottom:0}th{font-size:.75rem;font-weight:600;color:var(--soft)}
        .n{text-align:right;font-variant-numeric:tabular-nums}td small{display:block;color:var(--soft)}
        code{font-size:.8rem}footer{margin:2rem 0 0;font-size:.8rem;color:var(--soft)}
        @media(max-width:44rem){body{padding:.8rem}.tiles{grid-template-columns:1fr 1fr}
        .graphs{grid-template-columns:1fr}
        thead{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}
        table,tbody,tr,td{display:block}tr{padding:.45rem .8rem;border-bottom:1px solid var(--line)}
        tr:last-child{border-bottom:0}td,td.n{display:flex;gap:1rem;justify-content:space-between;border:0;
        padding:.12rem 0;text-align:right}
        td:first-child{font-weight:600;text-align:left}
        td:not(:first-child)::before{content:attr(data-of);color:var(--soft);flex:none}}
        """
}
