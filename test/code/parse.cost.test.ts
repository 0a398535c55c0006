import { describe, expect, onTestFinished, test } from "vitest"
import type { LanguageId } from "../../src/code/languages.ts"
import { openParser } from "../../src/code/parse.ts"

describe("hostile texts", () => {
  const HOSTILE: [what: string, language: LanguageId, text: string][] = [
    ["100,000 open parentheses", "javascript", "(".repeat(100_000)],
    ["100,000 nested calls", "python", "f(".repeat(100_000) + ")".repeat(100_000)],
    ["100,000 nested blocks", "go", `package a\nfunc f() ${"{".repeat(100_000)}${"}".repeat(100_000)}`],
    ["50,000 nested classes", "typescript", "class A { m() { ".repeat(50_000)],
    ["a thousand indents", "python", Array.from({ length: 1_000 }, (_, i) => `${" ".repeat(i)}if x:`).join("\n")],
    ["generics that could be comparisons", "tsx", "a<b<c<d<e<".repeat(5_000)],
    ["templates within templates", "typescript", "`${".repeat(20_000)],
    ["heredocs", "bash", "cat <<A\n".repeat(20_000)],
    ["heredocs in Ruby", "ruby", "x(<<~A, <<~B)\n".repeat(5_000)],
    ["only a byte order mark", "typescript", "\uFEFF"],
    ["lone surrogates and nulls", "typescript", `const \uD800a = "\u0000\uDFFF"\nfunction ok() {}\n`],
    ["what bytes that are no UTF-8 become", "go", Buffer.from([0x70, 0xff, 0xfe, 0x80, 0x0a, 0xc3]).toString("utf8")],
    ["a comment of 900,000 characters", "rust", `/*${"* ".repeat(450_000)}*/\nfn ok() {}\n`],
    ["30,000 deprecated marks", "typescript", "// @deprecated(((((\n".repeat(30_000)],
  ]

  test.each(HOSTILE)("%s take little work, and the next text is read as usual", async (_what, language, text) => {
    const own = await openParser()
    try {
      const before = process.cpuUsage()
      await own.parse(language, text)
      expect(process.cpuUsage(before).user / 1e3).toBeLessThan(5_000)
      const next = await own.parse("typescript", "function after() {}")
      expect(next!.definitions).toMatchObject([{ line: 1, kind: "function", name: "after" }])
    } finally {
      own.close()
    }
  })

  test("a text that takes too much work is given up, and reported", async () => {
    const text = "const a = [1, 2, 3]\n".repeat(20_000)
    const [own, patient] = [await openParser({ maxSteps: 10 }), await openParser()]
    const work = async (parser: typeof own) => {
      const before = process.cpuUsage()
      const facts = await parser.parse("typescript", text)
      return { facts, micros: process.cpuUsage(before).user }
    }
    try {
      for (const parser of [own, patient]) await parser.parse("typescript", "const a = 1\n") // the grammar is loaded once
      const [given, complete] = [await work(own), await work(patient)]
      expect(given.facts).toBeUndefined()
      expect(complete.facts).toBeDefined()
      expect(given.micros).toBeLessThan(complete.micros / 3)
    } finally {
      own.close()
      patient.close()
    }
  })
})

test("two thousand texts leave no memory behind", async () => {
  const parser = await openParser()
  onTestFinished(() => parser.close())
  const text = "export function a(b: string) { return c(b) }\n".repeat(400)
  const held = () => process.memoryUsage().external + process.memoryUsage().arrayBuffers
  for (let i = 0; i < 20; i++) await parser.parse("typescript", text)
  const before = held()
  for (let i = 0; i < 2_000; i++) await parser.parse("typescript", text.slice(0, 450 + (i % 100)))
  expect(held() - before).toBeLessThan(8e6)
})
