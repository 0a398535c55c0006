import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { codeLines, markdownLines } from "../../src/render/markdown-lines.ts"
import { glyphsOf, type Screen } from "../../src/render/screen.ts"
import { widthOf } from "../../src/render/terminal.ts"

const plain: Screen = { columns: 40, color: false, glyphs: glyphsOf({}) }
const color: Screen = { ...plain, color: true }
const ascii: Screen = { ...plain, glyphs: glyphsOf({ LANG: "C" }) }
const bare = (lines: string[]) => lines.map((line) => line.replace(/\x1b\[\d+m/g, ""))

describe("Markdown on a terminal", () => {
  test("shows headings, emphasis and code in styles instead of marks", () => {
    expect(markdownLines("## A *heading*\n\nsome **bold** and `code`", color)).toEqual([
      "\x1b[1m## \x1b[0m\x1b[1mA \x1b[0m\x1b[3m\x1b[1mheading\x1b[0m",
      "",
      "some \x1b[1mbold\x1b[0m and \x1b[33mcode\x1b[0m",
    ])
  })

  test("keeps the marks if there are no colours", () => {
    expect(markdownLines("## A *heading*\n\nsome **bold**, ~~old~~ and `code`", plain)).toEqual([
      "## A *heading*",
      "",
      "some **bold**, ~~old~~ and `code`",
    ])
  })

  test("keeps the lines of a prompt, which is often a log, and breaks only those that are too long", () => {
    expect(markdownLines("first\nsecond\nand a line that is longer than forty columns are", plain)).toEqual([
      "first",
      "second",
      "and a line that is longer than forty",
      "columns are",
    ])
  })

  test("indents continuation lines of lists below their text", () => {
    const list = "- one that is longer than the forty columns\n  1. inner\n  2. [x] done\n- two"
    expect(markdownLines(list, plain)).toEqual([
      "• one that is longer than the forty",
      "  columns",
      "  1. inner",
      "  2. [x] done",
      "• two",
    ])
    expect(markdownLines("3. three\n4. four", plain)).toEqual(["3. three", "4. four"])
  })

  test("draws bars for quotations and rules, in ASCII if the locale has no more", () => {
    expect(markdownLines("> said\n> before\n\n---", plain)).toEqual(["│ said", "│ before", "", "─".repeat(40)])
    expect(markdownLines("> said\n\n- a\n\n---", ascii)).toEqual(["| said", "", "- a", "", "-".repeat(40)])
  })

  test("aligns tables, and wraps cells inside their columns if a row is too wide", () => {
    const table = "| name | what |\n|---|---|\n| a | ✅ yes |\n| longer | a cell that says more than fits beside it |"
    expect(markdownLines(table, plain)).toEqual([
      "name   │ what",
      "────────────────────────────────────────",
      "a      │ ✅ yes",
      "longer │ a cell that says more than fits",
      "       │ beside it",
    ])
  })

  test("indents code, colours known languages, and changes no text", () => {
    const fenced = "```go\nfunc main() {\n\treturn // done\n}\n```"
    expect(markdownLines(fenced, plain)).toEqual(["  func main() {", "      return // done", "  }"])
    const lines = markdownLines(fenced, color)
    expect(bare(lines)).toEqual(markdownLines(fenced, plain))
    expect(lines[0]).toContain("\x1b[35mfunc\x1b[0m")
    expect(lines[1]).toContain("\x1b[2m// done\x1b[0m")
    expect(markdownLines("```nosuch\na < b && c\n```", color)).toEqual(["  a < b && c"])
  })

  test("shows the target of a link, unless it is the text", () => {
    expect(markdownLines("[here](https://a.example) <https://b.example>", plain).join(" ")).toBe(
      "here (https://a.example) https://b.example",
    )
  })

  test("shows HTML as it was written", () => {
    expect(markdownLines("<div>\n  text\n</div>\n\nand <b>this</b>", plain)).toEqual([
      "<div>",
      "  text",
      "</div>",
      "",
      "and <b>this</b>",
    ])
  })

  test("shows text that would take too long to parse as it was written", () => {
    const deep = `${"> ".repeat(200)}a`
    expect(markdownLines(deep, plain).join(" ").replace(/\s+/g, " ")).toBe(deep)
    const long = `- a\n${"  - **b**\n".repeat(3_000)}`
    expect(markdownLines(long, color)).toContain("  - **b**")
    // A long top-level list is parsed piece by piece.
    expect(markdownLines("- **b**\n".repeat(3_000), color)).toContain("• \x1b[1mb\x1b[0m")
  })
})

describe("text of a transcript never controls the terminal", () => {
  const HOSTILE = [
    "\x1b]0;title\x07",
    "\x1b[2J",
    "&#x1b;[31m",
    "&#27;]0;x&#7;",
    "&#x9b;2J",
    "&#x202e;",
    "&lrm;",
    "&#xE0041;",
    "\x9b31m",
    "\r",
    "\x08",
  ]

  test.each(HOSTILE)("%j, at any place", (text) => {
    const everywhere = [
      text,
      `# ${text}`,
      `**${text}** \`${text}\` [${text}](http://a/${text} "${text}") ![${text}](${text})`,
      `- ${text}\n  > ${text}`,
      `| ${text} | b |\n|---|---|\n| ${text} | c |`,
      `\`\`\`${text}\n${text}\n\`\`\``,
      `\`\`\`js\n"${text}"\n\`\`\``,
      `<b ${text}>`,
      `[x]: http://a "${text}"`,
      `[^${text}]\n\n[^${text}]: ${text}`,
    ].join("\n\n")
    for (const screen of [plain, color]) {
      const shown = markdownLines(everywhere, screen).join("\n")
      expect(shown.replace(/\x1b\[\d+m/g, "")).not.toMatch(
        /[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u{e0000}-\u{e007f}]/u,
      )
      if (!screen.color) expect(shown).not.toContain("\x1b")
    }
  })
})

const fragments = fc.constantFrom(
  ..."- |# |**|*|`|```|\n|\n\n|  |> |1. |[a](b)|word |✅ |日本 |verylongwordthatgoeson|\\|a\\|b\\|\n\\|-\\|-\\|\n|<b>|~~|&amp;|---|x".split(
    /(?<!\\)\|/,
  ),
)

test("at any width no line is wider, and colours change no word", () => {
  fc.assert(
    fc.property(fc.array(fragments, { maxLength: 40 }), fc.integer({ min: 40, max: 200 }), (all, columns) => {
      const text = all.join("")
      for (const screen of [
        { ...plain, columns },
        { ...color, columns },
      ])
        for (const line of markdownLines(text, screen)) expect([line, widthOf(line) <= columns]).toEqual([line, true])
    }),
    { numRuns: 500 },
  )
})

test("the name of a language is matched in any case, and a long file of code has no colours", () => {
  expect(codeLines('{"a": 1}', "JSON", color)[0]).toContain("\x1b[")
  expect(codeLines("x = 1\n".repeat(10_000), "python", color)[0]).toBe("x = 1")
  expect(
    codeLines("a & b < c > d \"e\" 'f'", "js", color)
      .join("")
      .replace(/\x1b\[\d+m/g, ""),
  ).toBe("a & b < c > d \"e\" 'f'")
})
