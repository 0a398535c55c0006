import fc from "fast-check"
import { fromMarkdown } from "mdast-util-from-markdown"
import { gfmFromMarkdown } from "mdast-util-gfm"
import { gfm } from "micromark-extension-gfm"
import { describe, expect, test } from "vitest"
import { parseDocument } from "../../src/documents/document.ts"
import { blockStarts } from "../../src/documents/markdown.ts"
import type { ParsedDocument } from "../../src/documents/sections.ts"

const outline = ({ sections }: ParsedDocument) =>
  sections.map(({ anchor, level, first_line, last_line }) => `${level} ${anchor} ${first_line}-${last_line}`)

const line = fc.constantFrom(
  ...[
    "# One",
    "## Two",
    "### Two",
    "Setext",
    "===",
    "---",
    "text",
    "more *text* `x`",
    "",
    "",
    "",
    "```",
    "```js",
    "~~~",
  ],
  ...[
    "- item",
    "  - inner",
    "1. first",
    "2) second",
    "   continued",
    "    indented",
    "> quote",
    "> # no",
    "- # no",
    ">> deep",
  ],
  ...[
    "<!--",
    "-->",
    "<div>",
    "</div>",
    "| a | b |",
    "| - | - |",
    "[ref]: /x",
    "[^1]: note",
    "    # no",
    "\t- tab",
    "+++",
    "* * *",
  ],
  ...["#", "# One #", "#### A [link](x) <b>b</b> \\# &amp;", "## Named {#own}", "\u00a0", "a\u2028b"],
)
const markdown = fc
  .array(fc.tuple(line, fc.constantFrom("\n", "\n", "\r\n", "\r")), { maxLength: 60 })
  .map((lines) => lines.map(([text, end]) => text + end).join(""))

/** The headings according to the complete grammar, which reads the file at once, with front matter made blank. */
function headingsByTree(text: string): string[] {
  const lines = text.split(/\r\n|\n|\r/)
  const isFence = (line: string) => (line === "---" || line === "+++") && line === lines[0]
  const end = isFence(lines[0]!) ? lines.findIndex((line, i) => i > 0 && isFence(line)) : -1
  const body = lines.fill("", 0, end + 1).join("\n")
  const { children } = fromMarkdown(body, { extensions: [gfm()], mdastExtensions: [gfmFromMarkdown()] })
  return children.flatMap((node) => (node.type === "heading" ? `${node.depth} at ${node.position!.start.line}` : []))
}

describe("Markdown", () => {
  test("sections are the file: every line is in exactly one, except front matter and blank lines before the first", async () => {
    await fc.assert(
      fc.asyncProperty(markdown, async (text) => {
        const lines = text.split(/\r\n|\n|\r/)
        if (lines.at(-1) === "") lines.pop()
        const { sections } = await parseDocument(text, "markdown")
        let next = sections[0]?.first_line ?? lines.length + 1
        const before = lines.slice(0, next - 1)
        const matter = /^(---|\+\+\+)/.test(before[0] ?? "") ? before.slice(0, before.lastIndexOf(before[0]!) + 1) : []
        expect(
          before
            .slice(matter.length)
            .join("")
            .trim()
            .replace(/^[ \t]+/, ""),
        ).toBe("")
        if (matter.length > 0) expect(matter.length).toBeGreaterThan(1)
        for (const section of sections) {
          expect(section.first_line).toBe(next)
          expect(section.text).toBe(lines.slice(section.first_line - 1, section.last_line).join("\n"))
          next = section.last_line + 1
        }
        expect(next).toBe(lines.length + 1)
      }),
      { numRuns: 300 },
    )
  })

  test("headings are those of the complete grammar over the complete file, whatever the window", async () => {
    await fc.assert(
      fc.asyncProperty(markdown, fc.constantFrom(1, 30, 8_000), async (text, windowChars) => {
        const { sections } = await parseDocument(text, "markdown")
        const found = sections.filter(({ level }) => level > 0).map((s) => `${s.level} at ${s.first_line}`)
        expect(found).toEqual(headingsByTree(text))
        const lines = text.split(/\r\n|\n|\r/)
        expect(blockStarts(lines, undefined, windowChars)).toEqual(blockStarts(lines, undefined, 1e6))
      }),
      { numRuns: 300 },
    )
  })

  test("indented code after a quotation is one block", () => {
    const lines = ["> # no", "    indented", "    # no", "", "    more", "text"]
    for (const window of [1, 1e6])
      expect(blockStarts(lines, undefined, window).map(({ line }) => line)).toEqual([1, 2, 6])
  })

  test("anchors are unique, and made as on GitHub", async () => {
    const names = [
      "Rules",
      "Rules",
      "rules-1",
      "Rules!",
      "Ünïcode & Co.",
      "C++ `code`",
      "",
      "🎉",
      "a_b c",
      "x",
      "x-1",
      "x",
    ]
    const { sections } = await parseDocument(names.map((name) => `## ${name}\n`).join("\n"), "markdown")
    expect(sections.map(({ anchor }) => anchor)).toEqual([
      "rules",
      "rules-1",
      "rules-1-1",
      "rules-2",
      "ünïcode--co",
      "c-code",
      "section",
      "section-1",
      "a_b-c",
      "x",
      "x-1",
      "x-2",
    ])
    await fc.assert(
      fc.asyncProperty(markdown, async (text) => {
        const anchors = (await parseDocument(text, "markdown")).sections.map(({ anchor }) => anchor)
        expect(new Set(anchors).size).toBe(anchors.length)
      }),
      { numRuns: 200 },
    )
  })

  test("a section has the path of headings above it, and text before the first heading has none", async () => {
    const text =
      "intro\n\n# Top\n\n### Deep *one*\n\n## Second {#own}\n\n```md\n# not one\n```\n\nSetext [a](b)\n-----\n"
    const { title, sections } = await parseDocument(text, "markdown")
    expect(title).toBe("Top")
    expect(sections.map(({ anchor, headings }) => [anchor, ...headings])).toEqual([
      [""],
      ["top", "Top"],
      ["deep-one", "Top", "Deep one"],
      ["own", "Top", "Second"],
      ["setext-a", "Top", "Setext a"],
    ])
  })

  test("the title is the first h1, then the front matter's, then the first heading, then none", async () => {
    const titles = await Promise.all(
      [
        '---\ntitle: "Matter: x" # c\n---\n## Two\n',
        "---\ntitle: Matter\n---\n# One\n",
        "+++\ntitle = 'It''s'\n+++\ntext",
        "## Two",
        "x",
      ].map(async (text) => (await parseDocument(text, "markdown")).title),
    )
    expect(titles).toEqual(["Matter: x", "One", "It's", "Two", ""])
  })

  test("front matter is not text, and the line numbers after it are those of the file", async () => {
    expect(outline(await parseDocument("\ufeff---\r\ntitle: x\r\n---\r\n\r\n# A\r\rb\n", "markdown"))).toEqual([
      "1 a 5-7",
    ])
  })

  test("long sections are cut between blocks and items, never inside a code block", async () => {
    const blocks = fc.array(
      fc.oneof(
        fc.integer({ min: 1, max: 6 }).map((n) => `${"word ".repeat(n * 100)}\n`),
        fc.integer({ min: 1, max: 500 }).map((n) => `\`\`\`js\n${"let code = 1\n\n".repeat(n)}\`\`\`\n`),
        fc
          .integer({ min: 1, max: 60 })
          .map((n) => `${"- an item of a list\n\n  ```\n  inside\n\n  more\n  ```\n".repeat(n)}`),
      ),
      { minLength: 1, maxLength: 6 },
    )
    await fc.assert(
      fc.asyncProperty(blocks, async (parts) => {
        const { sections } = await parseDocument(`# Long\n\n${parts.join("\n")}`, "markdown")
        for (const { text } of sections) {
          expect((text.match(/^ *```/gm)?.length ?? 0) % 2).toBe(0)
          expect(text.length <= 6_000 || !text.trim().slice(8).includes("\n\n- ")).toBe(true)
        }
        expect(sections.map(({ anchor }) => anchor)).toEqual(
          sections.map((_, i) => (i === 0 ? "long" : `long~${i + 1}`)),
        )
      }),
      { numRuns: 20 },
    )
  })
})

describe("MDX", () => {
  test("imports and tags are not headings, and headings between tags are", async () => {
    const text = `import A from "a"\n\nexport const b = () => {\n\n  // # no\n  return 1\n}\n\n# <A/> Title\n\n<Tabs>\n\n## Inside {/*inside-id*/}\n\n{/*\n# no\n*/}\n\n</Tabs>\n\n## After\n`
    const parsed = await parseDocument(text, "mdx")
    expect(parsed.problems).toEqual([])
    expect(parsed.title).toBe("Title")
    expect(outline(parsed)).toEqual(["0  1-8", "1 title 9-12", "2 inside-id 13-20", "2 after 21-21"])
  })

  test("text that is not MDX is read as Markdown, and reported", async () => {
    const parsed = await parseDocument("# A\n\n{ never closed\n\n## B\n", "mdx")
    expect(parsed.problems.join()).toMatch(/^Read as Markdown, because it does not parse as MDX/)
    expect(outline(parsed)).toEqual(["1 a 1-4", "2 b 5-5"])
  })
})
