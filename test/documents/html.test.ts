import { expect, test } from "vitest"
import { parseDocument } from "../../src/documents/document.ts"

const page = (body: string) => parseDocument(body, "html")

const MANUAL = `<!doctype html>
<html><head><title>Manual – Site</title><script>var a = "<h1>no</h1>"</script></head>
<body>
<header><h1>Site</h1></header>
<nav><ul><li>Menu</li></ul></nav>
<main>
  <header><h1>Hooks<a class="headerlink" href="#x">¶</a></h1></header>
  <p>Call <code>use()</code> at the
     <b>top</b> level.<br>Always.</p>
  <section id="rules"><h2>Rules</h2>
    <ol start="3"><li>First<ul><li>inner</li></ul></li><li><p>Second</p><pre>x
y</pre></li></ol>
  </section>
  <h2 id="rules">Rules</h2>
  <div class="highlight-python"><div><pre><span class="linenos">1</span>def f():
    return "\`\`\`"
</pre></div></div>
  <table><caption>Sizes</caption><tr><th>Name</th><th>Size</th></tr><tr><td>a <code>b</code></td><td>1</td></tr></table>
  <p hidden>secret</p><p aria-hidden="true">secret</p><template><h1>no</h1></template><style>p{}</style>
  <blockquote><p>Quoted</p></blockquote>
  <aside>A note</aside>
  <button>Copy</button>
</main>
<footer>Imprint</footer>
</body></html>
`

test("the main content of a page is cut at its headings, with readable text and the lines of the file", async () => {
  const { title, sections, problems } = await page(MANUAL)
  expect({ title, problems }).toEqual({ title: "Hooks", problems: [] })
  expect(sections).toEqual([
    {
      anchor: "hooks",
      headings: ["Hooks"],
      level: 1,
      first_line: 7,
      last_line: 9,
      text: "# Hooks\n\nCall `use()` at the top level.\nAlways.",
    },
    {
      anchor: "rules",
      headings: ["Hooks", "Rules"],
      level: 2,
      first_line: 10,
      last_line: 12,
      text: "## Rules\n\n3. First\n  - inner\n4. Second\n  ```\n  x\n  y\n  ```",
    },
    {
      anchor: "rules-1",
      headings: ["Hooks", "Rules"],
      level: 2,
      first_line: 14,
      last_line: 21,
      text: [
        "## Rules",
        '````python\ndef f():\n    return "```"\n````',
        "Sizes",
        "| Name | Size |\n| --- | --- |\n| a `b` | 1 |",
        "> Quoted",
        "A note",
      ].join("\n\n"),
    },
  ])
})

test("without a main element the articles are read; without those, the page except what surrounds the content", async () => {
  const texts = async (body: string) => (await page(body)).sections.map(({ text }) => text)
  expect(await texts("<p>out</p><div role=main><p>in</p></div>")).toEqual(["in"])
  expect(await texts("<p>out</p><article>one</article><article><p>two</article>")).toEqual(["one\n\ntwo"])
  expect(await texts("<header>h</header><p>in</p><aside>a</aside><footer>f</footer><nav>n</nav>")).toEqual(["in"])
  expect(await texts("<main></main><p>in</p>")).toEqual(["in"])
})

test("code in a table with line numbers is code, with its language", async () => {
  const { sections } = await page(
    `<table><tr><td class="linenos"><pre>1\n2</pre></td><td><pre class="brush"><code class="language-ts">a\nb</code></pre></td></tr></table>`,
  )
  expect(sections[0]!.text).toBe("```ts\na\nb\n```")
})

test("lines are counted as in an editor, whatever ends them", async () => {
  expect((await page("<p>R &\n&\nD</p>")).sections).toMatchObject([{ first_line: 1, last_line: 3 }])
  expect((await page("<div>\n\n  text\n  more\n\n</div>\n")).sections).toMatchObject([{ first_line: 3, last_line: 4 }])
  const { sections } = await page("<h1>A</h1>\r\n<p>b\r\n</p>\r<h2>C</h2>\n\n<p>d</p>\r\n")
  expect(sections.map(({ first_line, last_line }) => [first_line, last_line])).toEqual([
    [1, 2],
    [4, 6],
  ])
})

test.each([
  ["elements in elements", "<div>".repeat(100_000), /more than 512 deep/],
  [
    "formatting opened again for every paragraph",
    `<p>${Array.from({ length: 400 }, (_, i) => `<b a${i}>`).join("")}</p>${"<p>x</p>".repeat(2_000)}`,
    /more than 300000 elements/,
  ],
  ["text that a table pushes out", `<table>${"a<b>x</b>".repeat(20_000)}`, undefined],
  ["lists in lists", `${"<ul><li>x".repeat(200)}`, undefined],
])("hostile pages end in bounded time: %s", async (_, body, problem) => {
  const parsed = await page(body)
  expect(parsed.sections.length).toBeGreaterThan(0)
  if (problem) expect(parsed.problems.join()).toMatch(problem)
  else expect(parsed.problems).toEqual([])
  const size = parsed.sections.reduce((sum, { text }) => sum + text.length, 0)
  expect(size).toBeLessThan(body.length * 20)
})
