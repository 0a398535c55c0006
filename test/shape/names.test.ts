import { sep } from "node:path"
import { expect, test } from "vitest"
import { readSource, sourceFiles } from "../support/source-files.ts"

const files = sourceFiles.map((file) => file.replaceAll(sep, "/"))
const read = (file: string) => readSource(file.replaceAll("/", sep))

const EXPORTED = /^export (?:async )?(?:function\*?|const|let|class|type|interface|enum) ([\w$]+)/gm

/** The names that several files may export, and which files. */
const SHARED: Record<string, RegExp> = {
  // Does a command's work. The command's declaration loads it on first use; nobody looks for it by this name.
  run: /^(?:tools\/[\w-]+\/run(?:-[\w-]+)?|answers\/[\w-]+\.run)\.ts$/,
  // In wiring.ts the name is in the text of a plugin for OpenCode, and installed plugins must not change.
  Dex: /^(?:tools\/context|agents\/opencode\/wiring)\.ts$/,
}

test("no two files export the same name", () => {
  const places = Map.groupBy(
    files.flatMap((file) =>
      [...new Set(Array.from(read(file).matchAll(EXPORTED), ([, name]) => name!))].map((name) => ({ name, file })),
    ),
    ({ name }) => name,
  )
  expect(places.size).toBeGreaterThan(1_000)
  const shared = [...places].filter(([, { length }]) => length > 1)
  const wrong = shared.filter(([name, among]) => !among.every(({ file }) => SHARED[name]?.test(file)))
  expect(wrong.map(([name, among]) => `${name}: ${among.map(({ file }) => file).join(", ")}`)).toEqual([])
  expect(Object.keys(SHARED).filter((name) => !shared.some(([one]) => one === name))).toEqual([])
})

/** Names that fit anything and so say nothing. Variables with a short scope may have them. */
const VAGUE = "(told|Told|asked|Asked|Answer|textOf|nameOf|usageOf)"
const VAGUE_FUNCTION = new RegExp(`\\bfunction\\*? ${VAGUE}\\b`, "g")
const VAGUE_ARROW = new RegExp(`\\bconst ${VAGUE} = (?:async )?(?:<\\w+>)?\\([^()]*\\)[^()\\n]* =>`, "g")
const VAGUE_TYPE = new RegExp(`^(?:export )?(?:type|interface|class) ${VAGUE}\\b`, "gm")

test("no function or type has one of the names that fit anything", () => {
  const wrong = files.flatMap((file) =>
    [VAGUE_FUNCTION, VAGUE_ARROW, VAGUE_TYPE].flatMap((declared) =>
      Array.from(read(file).matchAll(declared), ([, name]) => `${file}: ${name}`),
    ),
  )
  expect(wrong).toEqual([])
})
