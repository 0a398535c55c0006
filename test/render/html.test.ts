import { describe, expect, test } from "vitest"
import type { Part } from "../../src/core/conversation.ts"
import { outcomesOf } from "../../src/render/fold.ts"
import { highlightLines } from "../../src/render/html/code-html.ts"
import { diffHtml } from "../../src/render/html/diff-html.ts"
import { html } from "../../src/render/html/html.ts"
import { markdownHtml } from "../../src/render/html/markdown-html.ts"
import { messageHtml, terminalHtml } from "../../src/render/html/message-html.ts"

describe("a template", () => {
  test("escapes inserted text, between tags and in attributes", () => {
    const evil = `"><script>alert('x')</script>&`
    expect(html`<a title="${evil}">${evil}</a>`.html).toBe(
      `<a title="&quot;&gt;&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&amp;">&quot;&gt;&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&amp;</a>`,
    )
  })

  test("keeps lists and its own HTML, and renders nothing for undefined", () => {
    const items = ["a", "<b>"].map((item) => html`<li>${item}</li>`)
    expect(html`<ul>${items}${undefined}${false}${0}</ul>`.html).toBe("<ul><li>a</li><li>&lt;b&gt;</li>0</ul>")
  })

  test("lets no invisible character in", () => {
    expect(html`${"a\u202eb\u200b\u{e0041}c\u0007"}`.html).toBe("abc")
  })
})

describe("separate lines of code", () => {
  const shown = (lines: string[]) => highlightLines(lines, "typescript").map((line) => line.html)

  test("what spans several lines is closed on each, and no line is lost", () => {
    expect(shown(["/* <one>", "", "two */ let a"])).toEqual([
      '<span class="hljs-comment">/* &lt;one&gt;</span>',
      '<span class="hljs-comment"></span>',
      '<span class="hljs-comment">two */</span> <span class="hljs-keyword">let</span> a',
    ])
    expect(shown(["a\r", "b\rc", "\u202ed"])).toEqual(["a", "b c", "d"])
    expect(shown([])).toEqual([])
  })

  test("many and giant ones all come out", () => {
    const many = Array.from({ length: 3_000 }, (_, i) => `const a${i} = "${i}" // <b>`)
    expect(shown(many)).toHaveLength(3_000)
    expect(shown(many).at(-1)).toContain('<span class="hljs-keyword">const</span>')
    expect(shown(["x".repeat(100_000), "let a", "y".repeat(100_000)])).toHaveLength(3)
  })
})

describe("Markdown", () => {
  test.each([
    ["**a** *b* `c` ~~d~~", "<p><strong>a</strong> <em>b</em> <code>c</code> <del>d</del></p>"],
    ["# A\n\ntext", '<p class="heading level-1">A</p><p>text</p>'],
    ["3. a\n4. b", '<ol start="3"><li><p>a</p></li><li><p>b</p></li></ol>'],
    ["- [x] done", '<ul><li><span class="box">☑</span> <p>done</p></li></ul>'],
    ["> quoted", "<blockquote><p>quoted</p></blockquote>"],
    ["---", "<hr>"],
    [
      "```js\nlet a = 1\n```",
      '<pre class="code"><span class="hljs-keyword">let</span> a = <span class="hljs-number">1</span></pre>',
    ],
    [
      "|a|b|\n|-|-|\n|1|2|",
      '<table class="written"><thead><tr><th>a</th><th>b</th></tr></thead><tbody><tr><td>1</td><td>2</td></tr></tbody></table>',
    ],
  ])("%j", (text, wanted) => {
    expect(markdownHtml(text).html).toBe(wanted)
  })

  test("a link shows its target, and leads only to the web", () => {
    expect(markdownHtml("[here](https://evil.example/x)").html).toBe(
      '<p><a href="https://evil.example/x" target="_blank" rel="noopener noreferrer">here</a> <span class="to">(evil.example)</span></p>',
    )
    for (const url of [
      "javascript:alert(1)",
      "data:text/html,x",
      "file:///etc/passwd",
      "//evil.example",
      "https://good@evil.example",
    ])
      expect(markdownHtml(`[here](${url})`).html).not.toContain("<a ")
  })

  test("HTML in the text is escaped, and no image is loaded", () => {
    const shown = markdownHtml(
      '<img src=x onerror="alert(1)">\n\n![alt](https://evil.example/x.png) <b onclick=x>y</b>\n\n&lt;script&gt;',
    ).html
    expect(shown).not.toMatch(/<(img|b|script)\b/)
    expect(shown).toContain("[image: alt]")
  })

  test("text that would take too long to parse is shown as it was written", () => {
    for (const text of ["> ".repeat(50_000), "- ".repeat(100_000), "*a ".repeat(20_000), "[".repeat(50_000)])
      expect(markdownHtml(text).html).toBe(`<pre class="plain">${text.replaceAll(">", "&gt;")}</pre>`)
    expect(markdownHtml("`".repeat(50_000)).html.length).toBeGreaterThan(0)
  })
})

test("terminal colours become classes, and every other sequence is removed", () => {
  expect(terminalHtml("\x1b[31;1mred\x1b[0m plain \x1b[38;5;2mgreen\x1b[39m \x1b[2J\x1b]0;title\x07<b>").html).toBe(
    '<span class="ansi-1 bold">red</span> plain <span class="ansi-2">green</span> &lt;b&gt;',
  )
})

describe("a change", () => {
  const hunk = { path: "a.ts", old_start: 9, old_lines: 2, new_start: 9, new_lines: 3 }
  const shown = (lines: string[], path = "a.unknown") => diffHtml([{ ...hunk, path, lines }]).html
  const words = (markup: string) => markup.replaceAll(/<[^>]*>/g, "")

  test("has its removed lines above the added ones, with their numbers and the differences within a line", () => {
    const markup = shown([" same", "-let a = 1", "-gone", "+let a = 2", "+<new>", " end"])
    expect(markup).toContain('<div class="same" data-o=" 9" data-n=" 9"><code>same</code></div>')
    expect(markup).toContain(
      '<div class="run" tabindex="-1" data-change><del data-o="10" data-n="  "><code>let a = <mark>1</mark></code></del><del data-o="11" data-n="  "><code>gone</code></del><ins data-o="  " data-n="10"><code>let a = <mark>2</mark></code></ins><ins data-o="  " data-n="11"><code>&lt;new&gt;</code></ins></div>',
    )
    expect(markup.match(/data-change/g)).toHaveLength(1)
  })

  test("that only adds or only removes has one side; one that does both has its unchanged lines on both", () => {
    for (const lines of [
      [" same", "+new"],
      [" same", "-old"],
    ]) {
      expect(shown(lines)).toContain('<div class="diff">')
      expect(shown(lines)).not.toContain("was")
    }
    expect(shown([" same", "-old", "+new"])).toContain('<div class="diff two">')
    expect(shown([" same", "-old", "+new"]).match(/>same</g)).toHaveLength(2)
  })

  test("is coloured by the language of its file, and a mark stays inside of the colours", () => {
    const markup = shown(['-let a = "<b>&"', '+let a = "<b>&amp;é"'], "src/a.ts")
    expect(markup).toContain('<span class="hljs-keyword">let</span>')
    expect(markup).toContain('<span class="hljs-string">&quot;&lt;b&gt;&amp;<mark>amp;é</mark>&quot;</span>')
    expect(words(markup)).toContain("let a = &quot;&lt;b&gt;&amp;&quot;")
  })

  test("has no numbers if the agent does not record the position, and says how many lines are left out", () => {
    const lines = Array.from({ length: 9 }, (_, i) => `+${i}`)
    const markup = diffHtml([{ ...hunk, old_start: 0, new_start: 0, lines }], 5, html` · <a href="/all">all</a>`).html
    expect(markup).toContain('<div class="diff bare">')
    expect(markup.match(/<ins/g)).toHaveLength(5)
    expect(markup).toContain('<div class="gap">4 more lines · <a href="/all">all</a></div>')
  })

  test("of hostile or giant lines is text, line for line", () => {
    const evil = [
      "<script>x</script>",
      "\u202ea\u2028b\r\nc\r",
      "`${".repeat(5_000),
      "[".repeat(20_000),
      "/*".repeat(9_000),
      '"\\'.repeat(9_000),
    ]
    for (const path of [
      "a.ts",
      "a.py",
      "a.go",
      "a.rs",
      "a.rb",
      "a.sh",
      "a.html",
      "a.yml",
      "a.cpp",
      "a.java",
      "a.sql",
      "a.json",
      "a.ini",
    ]) {
      const markup = shown([...evil.map((line) => `-${line}`), ...evil.map((line) => `+${line}x`)], path)
      expect(markup).not.toMatch(/<script|\u202e/)
      expect([path, markup.match(/<del/g)?.length, markup.match(/<ins/g)?.length]).toEqual([path, 6, 6])
      for (const line of evil.slice(2, 5)) {
        const half = shown([`+${line.slice(0, 9_000)}`, "+end"], path)
        expect([path, half.match(/<ins/g)?.length]).toEqual([path, 2])
      }
    }
  })
})

test("changes to several files are folded by file, with the numbers of their lines", () => {
  const at = { old_start: 1, old_lines: 1, new_start: 1, new_lines: 1 }
  const call: Part = { type: "tool_call", text: '{"patch":"…"}', origin: "agent", tool: "apply_patch", call_id: "1" }
  const hunks = [
    { ...at, path: "/code/a.ts", lines: ["-a", "+b", "+c"] },
    { ...at, path: "/code/b.ts", lines: ["+<d>"] },
  ]
  const result: Part = {
    type: "tool_result",
    text: "ok",
    origin: "local_tool",
    tool: "apply_patch",
    call_id: "1",
    is_error: false,
    hunks,
  }
  const messages = [{ number: 1, role: "assistant" as const, parts: [call, result], facts: [] }]
  const options = { agent: "Codex", root: "/code", outcomes: outcomesOf(messages), maxChars: 100 }
  const shown = messageHtml(messages[0]!, options)!.html
  const files = [...shown.matchAll(/<details class="fold file" open><summary>(.*?)<\/summary>/g)].map(([, head]) =>
    head!.replaceAll(/<[^>]*>/g, ""),
  )
  expect(files).toEqual(["a.ts +2 −1", "b.ts +1 −0"])
  expect(shown).toContain("&lt;d&gt;")
})

describe("a message", () => {
  const call: Part = { type: "tool_call", text: '{"command":"npm test"}', origin: "agent", tool: "Bash", call_id: "1" }
  const result: Part = {
    type: "tool_result",
    text: "1 failed",
    origin: "local_tool",
    tool: "Bash",
    call_id: "1",
    is_error: true,
  }
  const messages = [
    { number: 1, role: "assistant" as const, parts: [call], facts: [] },
    { number: 2, role: "tool" as const, parts: [result], facts: [] },
  ]
  const options = { agent: "Codex", root: "", outcomes: outcomesOf(messages), maxChars: 100 }

  test("a result is shown with its call, and not again", () => {
    expect(messageHtml(messages[0]!, options)?.html).toMatch(/failed.*npm test.*✗ failed · 1 line.*1 failed/s)
    expect(messageHtml(messages[1]!, options)).toBeUndefined()
  })

  test("the beginning of a long output is shown, with a link to the rest", () => {
    const long = { ...messages[1]!, parts: [{ ...result, call_id: "2", text: "line\n".repeat(100) }] }
    const shown = messageHtml(long, {
      ...options,
      rest: (number, part) => html`<a href="/${number}/${part}">all</a>`,
    })?.html
    expect(shown).toContain('<a href="/2/0">all</a>')
    expect(shown!.match(/line/g)!.length).toBeLessThan(40)
  })
})
