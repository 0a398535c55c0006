import { readdirSync, readFileSync } from "node:fs"
import { basename, join } from "node:path"
import { expect, test } from "vitest"

// Comments and names should be what one would say to a colleague. The limits are the current counts, and may only be lowered.

const ROOT = join(import.meta.dirname, "../..")
const files = ["src", "hub/src", "packages"].flatMap((folder) =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".ts") && !/node_modules|dist\//.test(file))
    .map((file) => join(folder, file)),
)

const TOKEN = /("(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`)|(\/\/.*|\/\*[\s\S]*?\*\/)/g

/** Every comment without its delimiters, and every identifier outside strings. */
function wordsIn(file: string): { comments: string[]; identifiers: string[] } {
  const comments: string[] = []
  const code = readFileSync(join(ROOT, file), "utf8").replaceAll(TOKEN, (_, text?: string, comment?: string) => {
    if (comment) comments.push(comment.replaceAll(/^\s*(?:\/\*\*?|\*\/|\/\/|\*)|\*\/$/gm, "").trim())
    return text === undefined ? " " : '""'
  })
  return { comments, identifiers: code.match(/[A-Za-z_$][\w$]*/g) ?? [] }
}

const found = files.map(wordsIn)
const comments = found.flatMap((one) => one.comments)
const OF_THE_DIALECT = /told|said|(?<!m)asked/i

test("hardly any comment begins with What, or contains the word where", () => {
  expect(comments.length).toBeGreaterThan(3_000)
  expect(comments.filter((text) => /^What\b/.test(text)).length).toBeLessThanOrEqual(1)
  expect(comments.filter((text) => /\bwhere\b/i.test(text)).length).toBeLessThanOrEqual(37)
})

test("hardly any name contains told, said or asked, and no file name does", () => {
  const names = found.flatMap((one) => one.identifiers).filter((name) => OF_THE_DIALECT.test(name))
  expect(names.length).toBeLessThanOrEqual(101)
  expect(files.filter((file) => OF_THE_DIALECT.test(basename(file)))).toEqual([])
})
