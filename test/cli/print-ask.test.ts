import { expect, test } from "vitest"
import { printAsk } from "../../src/cli/print/ask.ts"

const terminal = { columns: 60, color: false, interactive: false } as Parameters<typeof printAsk>[1]["terminal"]
const REF = "claude_code:11111111-1111-4111-8111-111111111111#2"

const printed = (output: Partial<Parameters<typeof printAsk>[0]>) =>
  printAsk(
    { answer: "", sources: [], confidence: "low", probability: 0.3, extractive: true, ...output },
    { terminal, home: "", numbered: false },
  )

test("the confidence is the first line, and every quote stands above its source", () => {
  const { lines, listing } = printed({
    answer: "“It is 5.\n- or “more”” [1]\n“It was 3.” [2]",
    sources: [
      { n: 1, ref: REF, title: "Retries", origin: "agent", date: "2026-10-03" },
      { n: 2, ref: "README.md:4", title: "Use", origin: "document" },
    ],
  })
  expect(lines).toEqual([
    "Confidence: low. Exact quotes.",
    "",
    "  It is 5.",
    "  - or “more”",
    `[1]  ${REF}`,
    "     2026-10-03 · said by: agent · Retries",
    "",
    "  It was 3.",
    "[2]  README.md:4",
    "     said by: document · Use",
    "",
  ])
  expect(listing).toEqual([REF, "README.md:4"])
})

test("a table is shown without pipes, code without its fences, and control characters are removed", () => {
  const { lines } = printed({
    answer: "“| Flag | Meaning |\n|---|:-:|\n| `--a` | \u001b[2Jon |\n```sh\nrun | less\n```” [1]",
    sources: [{ n: 1, ref: REF, title: "", origin: "agent" }],
  })
  expect(lines.slice(2, 5)).toEqual(["  Flag · Meaning", "  `--a` · on", "  run | less"])
})

test("without an answer, the likeliest conversations are numbered for the next command, and stdout stays empty", () => {
  const { lines, notes, listing } = printed({
    answer: "No answer was found.",
    likely: [{ ref: REF, title: "Retries", date: "2026-10-03" }],
  })
  expect(lines).toEqual([])
  expect(notes).toEqual([
    "No answer was found.",
    "These conversations are the most likely to contain it:",
    `1  ${REF}`,
    "   2026-10-03 · Retries",
  ])
  expect(listing).toEqual([REF])
})
