import { join } from "node:path"
import { call, putSession, SESSION, writer } from "../support/claude-code.ts"

export const HOSTILE_REF = `claude_code:${SESSION}`
/** A word in each of the texts, to search for. */
export const WORD = "zebra"

/** Text that tries to make a page do something: `PWNED` is set if a script ran. */
export const PAYLOADS: string[] = [
  "<script>window.PWNED=1</script>",
  "<img src=x onerror=window.PWNED=1>",
  "<svg onload=window.PWNED=1><animate onbegin=window.PWNED=1 attributeName=x dur=1s>",
  "<svg><script>window.PWNED=1</script></svg>",
  "<iframe srcdoc='<script>parent.PWNED=1</script>'></iframe>",
  "<style>*{display:none}@import url(http://127.0.0.1:9/x.css)</style>",
  "<link rel=stylesheet href=http://127.0.0.1:9/x.css>",
  "<meta http-equiv=refresh content='0;url=http://127.0.0.1:9/'>",
  "<base href=http://127.0.0.1:9/>",
  "<form action=http://127.0.0.1:9/><input name=token autofocus onfocus=window.PWNED=1></form>",
  "<body onload=window.PWNED=1><details open ontoggle=window.PWNED=1>",
  '"><script>window.PWNED=1</script>',
  "'><img src=x onerror=window.PWNED=1>",
  "</pre></code></textarea></title></style></script><script>window.PWNED=1</script>",
  "<!--><script>window.PWNED=1</script>-->",
  "<![CDATA[<script>window.PWNED=1</script>]]>",
  "&lt;script&gt;window.PWNED=1&lt;/script&gt; &#60;script&#62;window.PWNED=1",
  "[click](javascript:window.PWNED=1) [data](data:text/html,<script>window.PWNED=1</script>)",
  "[a](  javascript:window.PWNED=1) [b](jAvAsCrIpT:window.PWNED=1) [c](java\tscript:window.PWNED=1)",
  "![image](http://127.0.0.1:9/x.png) ![x](javascript:window.PWNED=1)",
  "<http://127.0.0.1:9/auto> https://127.0.0.1:9/bare [r]: http://127.0.0.1:9/x\n\n[r]",
  "`<script>window.PWNED=1</script>` ```<script>window.PWNED=1</script>```",
  "```html\n<script>window.PWNED=1</script>\n```",
  "| <script>window.PWNED=1</script> | [x](javascript:window.PWNED=1) |\n|-|-|\n| <img src=x onerror=window.PWNED=1> | b |",
  "{{constructor.constructor('window.PWNED=1')()}} ${window.PWNED=1} <%= window.PWNED=1 %>",
  "\u202etxt.exe\u202c \u2066hidden\u2069 \u200b\u200c\u200d\ufeff \u{e0041}\u{e0042}",
  "\x1b[31mred\x1b[0m \x1b]8;;http://127.0.0.1:9/\x07link\x1b]8;;\x07 \x1b[2J\x1b[999;999H\x07",
  "\u0000\ud800 \udfff \u2028 \u2029 \u0085",
  "Z\u0351\u036b\u0343\u036a\u0302a\u0337\u0321\u035fl\u0318g\u033co".repeat(20),
  "x".repeat(20_000),
  "- ".repeat(10_000),
  "> ".repeat(10_000),
  "*".repeat(10_000),
  "[".repeat(10_000),
  Array.from({ length: 80 }, (_, i) => `${"  ".repeat(i)}- deep`).join("\n"),
  "<a style=position:fixed;inset:0;z-index:9999 href=http://127.0.0.1:9/>everywhere</a>",
  "<x onclick=window.PWNED=1 id=main name=dex-token class=top tabindex=0>clobbered</x>",
]

/** A home with a conversation of so many messages, with hostile text in every place that a page shows. */
export function hostileHome(home: string, count: number): void {
  const evil = (i: number) => `${WORD} ${PAYLOADS[i % PAYLOADS.length]!}`
  const name = (i: number) => PAYLOADS[i % 20]!.replaceAll("\n", " ").slice(0, 200)
  const transcript = writer({
    cwd: join(home, "shop <img src=x onerror=window.PWNED=1>"),
    gitBranch: evil(0),
    version: evil(1),
  })
  for (let i = 0; i * 4 < count; i++) {
    transcript.prompt(evil(i))
    transcript.answer(`m${i}`, [
      { type: "text", text: evil(i + 7) },
      { type: "thinking", thinking: evil(i + 11), signature: "x" },
      call(`c${i}`, i % 3 === 0 ? name(i) : "Bash", { command: evil(i + 13), [name(i + 3)]: evil(i + 5) }),
    ])
    transcript.result(`c${i}`, evil(i + 17), {}, { is_error: i % 2 === 0 })
    transcript.answer(`e${i}`, [
      call(`d${i}`, "Edit", { file_path: `/tmp/${name(i)}`, old_string: "a", new_string: "b" }),
    ])
    const lines = [`-${name(i + 2)}`, `+${name(i + 4)}`, ` ${name(i + 6)}`]
    const structuredPatch = [{ oldStart: 1, oldLines: 2, newStart: 1, newLines: 2, lines }]
    transcript.result(`d${i}`, "updated", { toolUseResult: { filePath: `/tmp/${name(i)}`, structuredPatch } })
  }
  transcript.plain({ type: "custom-title", customTitle: `${WORD} ${PAYLOADS[0]}${PAYLOADS[1]}`, sessionId: SESSION })
  putSession(home, transcript.records)
}
