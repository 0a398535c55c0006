import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { type DocumentFormat, formatOf, MAX_DOCUMENT_BYTES, parseDocument } from "../../src/documents/document.ts"

const FORMATS: DocumentFormat[] = ["markdown", "mdx", "html", "text"]
const pieces = fc.constantFrom(
  ...[
    "# ",
    "\n",
    "\r",
    "\r\n",
    "\0",
    "\ud800",
    "\ufeff",
    "\u001b[2J",
    "<h1>",
    "</h1>",
    "<table>",
    "<td>",
    "<li>",
    "<pre>",
    "{",
    "}",
  ],
  ...[
    "<A ",
    "/>",
    "import a",
    "export ",
    "```",
    "---\n",
    "===\n",
    "> ",
    "- ",
    "[",
    "](",
    "<!--",
    "-->",
    "<![CDATA[",
    "&#10;",
    "|",
    "\t",
  ],
)
const hostile = fc.oneof(
  fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes).toString("latin1")),
  fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes).toString("utf8")),
  fc.array(fc.oneof(pieces, fc.string({ unit: "binary", maxLength: 4 })), { maxLength: 60 }).map((all) => all.join("")),
)

describe.each(FORMATS)("%s", (format) => {
  test("no input makes it throw, and every section is within the file", async () => {
    await fc.assert(
      fc.asyncProperty(hostile, async (text) => {
        const lines = Math.max(1, text.split(/\r\n|\n|\r/).length)
        const { sections } = await parseDocument(text, format)
        const anchors = sections.map(({ anchor }) => anchor)
        expect(new Set(anchors).size).toBe(anchors.length)
        for (const { first_line, last_line, level, headings } of sections) {
          expect(1 <= first_line && first_line <= last_line && last_line <= lines).toBe(true)
          expect(level === 0).toBe(headings.length === 0)
        }
      }),
      { numRuns: 2_000 },
    )
  })

  test("a file over the limit is refused, and reported", async () => {
    const parsed = await parseDocument("a".repeat(MAX_DOCUMENT_BYTES + 1), format)
    expect(parsed).toMatchObject({ title: "", sections: [] })
    expect(parsed.problems.join()).toMatch(/^Not read: it has 2000001 characters/)
  })

  test("control characters and halves of characters stay as they are", async () => {
    const { sections } = await parseDocument("a \u001b[2J \ud800 b", format)
    expect(sections.map(({ text }) => text)).toEqual(["a \u001b[2J \ud800 b"])
  })
})

test("a document is recognised by its name", () => {
  expect(["a/B.MD", "b.mdx", "c.htm", "d.rst", "e.png", "Makefile", "md", ".md"].map(formatOf)).toEqual([
    "markdown",
    "mdx",
    "html",
    "text",
    undefined,
    undefined,
    undefined,
    "markdown",
  ])
})
