// The colours of the report, light and dark. Those that matter most differ in lightness too, so
// that no picture needs colour vision.
#include "harness/report/html.h"

namespace kv {

const char* const kHtmlStyle = R"css(
:root{color-scheme:light dark;--bg:#fff;--fg:#1b1f24;--soft:#57606a;--line:#d0d7de;--off:#eaeef2;
--on:#1f6feb;--pad:#bf8700;--outside:#b9cdea;--masked:#d2a8ff;--mine:#1f6feb;--minetoo:#0a3069;
--shared:#57606a;--bad:#cf222e;--h0:#eaf3fb;--h1:#cfe3f6;--h2:#9cc6ec;--h3:#5c9fdc;
--h4:#f28b3b;--h5:#b3141f;--panel:#f6f8fa}
@media(prefers-color-scheme:dark){:root{--bg:#0d1117;--fg:#e6edf3;--soft:#9198a1;--line:#3d444d;
--off:#21262d;--on:#4493f8;--pad:#d29922;--outside:#1f3d66;--masked:#6e40c9;--mine:#4493f8;
--minetoo:#a5d6ff;--shared:#9198a1;--bad:#ff6b61;--h0:#14222f;--h1:#183450;--h2:#1d4f80;
--h3:#2f7cc4;--h4:#e08a3c;--h5:#ff5b52;--panel:#151b23}}
body{background:var(--bg);color:var(--fg);font:15px/1.5 system-ui,sans-serif;margin:0}
main{max-width:76rem;margin:0 auto;padding:1.5rem}
h1{font-size:1.5rem;margin:0 0 .25rem}h2{font-size:1.15rem;margin:0}
section{border-top:2px solid var(--line);margin-top:2rem;padding-top:1rem}
.soft,.note{color:var(--soft)}.note{font-size:.85rem;margin:.25rem 0 0}
.bad{color:var(--bad)}.said{font-size:1.05rem;border-left:4px solid var(--bad);padding-left:.75rem}
p{overflow-wrap:anywhere}li{overflow-wrap:anywhere}
pre{background:var(--panel);border:1px solid var(--line);border-radius:6px;padding:.75rem;
overflow-x:auto;font:12.5px/1.45 ui-monospace,monospace}
figure{margin:1.25rem 0;padding:0}figcaption{font-weight:600;margin-bottom:.4rem}
.wide{overflow-x:auto}.wide svg{display:block}
.legend{font-size:.85rem;color:var(--soft);margin:.35rem 0 0}
.legend svg{vertical-align:-1px;margin-left:.6rem}.legend svg:first-child{margin-left:0}
.legend span{margin-left:1rem}
svg text{fill:var(--fg);font:11px ui-monospace,monospace}
svg text.axis{fill:var(--soft);font-size:10px}
svg text.label{text-anchor:end;fill:var(--soft)}svg text.tiny{font-size:8px}
svg text.here{fill:var(--bad);font-weight:700}
.rule{stroke:var(--fg);stroke-width:1;opacity:.45}
.mark{fill:none;stroke:var(--bad);stroke-width:1.5}
.off{fill:var(--off)}.on{fill:var(--on)}.pad{fill:var(--pad)}.outside{fill:var(--outside)}
.masked{fill:var(--masked)}
.added{fill:var(--bad)}.lost{fill:var(--off);stroke:var(--bad);stroke-width:2}
.mine{fill:var(--mine)}.minetoo{fill:var(--minetoo)}.shared{fill:var(--shared)}
.owner0{fill:#2da44e}.owner1{fill:#bf8700}.owner2{fill:#8250df}.owner3{fill:#bf3989}
.owner4{fill:#1b7c83}.owner5{fill:#bc4c00}
.heat0{fill:var(--h0)}.heat1{fill:var(--h1)}.heat2{fill:var(--h2)}.heat3{fill:var(--h3)}
.heat4{fill:var(--h4)}.heat5{fill:var(--h5)}
.alive{fill:var(--outside)}.admitted{fill:#2da44e}.prefill{fill:var(--minetoo)}
.decode{fill:var(--on)}.rewritten{fill:#8250df}.ended{fill:var(--shared)}.other{fill:var(--pad)}
.page{fill:var(--panel);stroke:var(--line)}.page.here{stroke:var(--bad);stroke-width:2}
.sign{fill:var(--h2)}.exponent{fill:var(--h1)}.mantissa{fill:var(--off)}
.differs{stroke:var(--bad);stroke-width:2}
)css";

}  // namespace kv
