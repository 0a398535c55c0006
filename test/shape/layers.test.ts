import { readdirSync, readFileSync } from "node:fs"
import { dirname, join, sep } from "node:path"
import { expect, test } from "vitest"
import { sourceFiles as files, importedFile, readSource as read } from "../support/source-files.ts"

/** A folder may import from the lines above its own, but never from other folders on its own line or below. */
const LAYERS = [
  ["core", "net"],
  ["subprocess"],
  ["store/sqlite"],
  ["store/history"],
  ["agents/kit"],
  ["more-agents"],
  [
    "config",
    "redact",
    "agents",
    "store/index",
    "store/knowledge",
    "store/spending",
    "store/suggestions",
    "store/hub",
    "embed",
    "llm",
    "git",
    "code",
    "documents",
    "render",
    "trace",
    "usage",
  ],
  ["ingest", "search", "learn", "headless", "hub-client"],
  ["suggest"],
  ["tools"],
  ["answers"],
  ["app"],
  ["serve/mcp", "serve/http", "serve/hooks", "integrations", "watch"],
  ["view"],
  ["cli", "library", "testing"],
]

const SRC = join(import.meta.dirname, "../../src")
const rank = new Map(LAYERS.flatMap((names, i) => names.map((name) => [name, i] as const)))
/** The folder in LAYERS to which a file belongs: the first one or two parts of its path. */
const folderOf = (file: string) => {
  const [first, second] = file.split(sep)
  return rank.has(`${first}/${second}`) ? `${first}/${second}` : first!
}

test("a folder imports only from the layers below it", () => {
  expect(files.length).toBeGreaterThan(50)
  const wrong = files.flatMap((file) => {
    const from = folderOf(file)
    if (!rank.has(from)) return [`${from}/ has no layer`]
    const targets = [...read(file).matchAll(/(?:\bfrom\s+|\bimport\()\s*["'](\.[^"']+)["']/g)].map(([, target]) =>
      importedFile(file, target!),
    )
    return targets
      .filter((to) => !isReaderOfVariant(file, to))
      .map(folderOf)
      .filter((to) => to !== from && (rank.get(to) ?? 99) >= rank.get(from)!)
      .map((to) => `${file} imports ${to}/`)
  })
  expect([...new Set(wrong)]).toEqual([])
})

/** A variant is read and wired by the code of the agent whose format it has, and one file reads what all agents' hooks report. */
function isReaderOfVariant(from: string, to: string): boolean {
  return from === join("more-agents", "records.ts") && /^agents.(?:[a-z-]+.(?:connector|wiring)|hooks)\.ts$/.test(to)
}

test("only the registry names the agents of the other package", () => {
  const naming = files.filter((file) => !file.startsWith("more-agents") && read(file).includes("more-agents/"))
  expect(naming).toEqual([join("agents", "registry.ts")])
})

test("there are no import cycles, however long", () => {
  const graph = new Map(
    files.map((file) => [
      file,
      // Type imports cost nothing at run time, so they may be circular.
      [...read(file).matchAll(/^import (?!type)[^;]*?from "(\.[^"]+)"/gm)].map(([, target]) =>
        importedFile(file, target!),
      ),
    ]),
  )
  const done = new Set<string>()
  const cycles: string[] = []
  const walk = (file: string, path: string[]) => {
    if (path.includes(file)) return void cycles.push([...path.slice(path.indexOf(file)), file].join(" → "))
    if (done.has(file)) return
    for (const next of graph.get(file) ?? []) walk(next, [...path, file])
    done.add(file)
  }
  for (const file of files) walk(file, [])
  expect(cycles).toEqual([])
})

const SQL =
  /\b(select\s+[\w*(@'"]|insert\s+(or\s+\w+\s+)?into|update\s+\w+\s+set|delete\s+from|create\s+(virtual\s+)?(table|index))/i
const isOfAgents = (file: string) => file.startsWith(`agents${sep}`) || file.startsWith(`more-agents${sep}`)
/** Other programs' databases are read by the connector that knows them. */
const readingForeign = files
  .filter((file) => isOfAgents(file) && /"[\w./-]*foreign-sqlite\.ts"/.test(read(file)))
  .map((file) => dirname(file))
const readsForeign = (file: string) =>
  file === join("agents", "kit", "foreign-sqlite.ts") ||
  (dirname(file) !== join("agents", "kit") && readingForeign.includes(dirname(file)))

test("SQL is written only in store/, except in connectors that read other programs' databases", () => {
  const elsewhere = files.filter((file) => !file.startsWith(`store${sep}`) && !readsForeign(file))
  const wrong = elsewhere.filter((file) => stringsOf(read(file)).some((text) => SQL.test(text)))
  expect(wrong).toEqual([])
})

/** Outside store/, code may only mark a database as damaged, or remove it. */
const WITHOUT_A_HANDLE = ["markDamaged", "removeDatabase"]

test("no handle of dex's own databases leaves store/, and no other folder begins a transaction", () => {
  const elsewhere = files.filter((file) => !file.startsWith(`store${sep}`) && !readsForeign(file))
  const taken = elsewhere.flatMap((file) =>
    [
      ...read(file).matchAll(
        /(?:import|const) (?:type )?\{([^}]*)\} (?:from|= await import\() ?"[^"]*store\/sqlite\/(?:database|engine)/g,
      ),
    ]
      .flatMap(([, names]) => names!.split(","))
      .map((name) => `${file}: ${name.trim()}`),
  )
  expect(taken.filter((one) => !WITHOUT_A_HANDLE.some((name) => one.endsWith(`: ${name}`)))).toEqual([])
  const begins = elsewhere.filter((file) => /inTransaction|\.transaction\(|["'`]begin\b/.test(read(file)))
  expect(begins).toEqual([])
})

test("SQL is never built from values: only constants in capitals are inserted into it", () => {
  const wrong = files.flatMap((file) =>
    stringsOf(read(file))
      .filter((text) => SQL.test(text) && /\$\{/.test(text))
      .flatMap((text) =>
        [...text.matchAll(/\$\{([^}]*)\}/g)]
          .filter(([, inside]) => !/^[A-Z][A-Z_]*$/.test(inside!))
          .map(([whole]) => `${file}: ${whole}`),
      ),
  )
  expect(wrong).toEqual([])
})

/** The hub is a separate package that may import all of src/. Its SQL is in one folder too. */
const HUB = join(SRC, "../hub/src")
const hubFiles = readdirSync(HUB, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".ts"))
const readHub = (file: string) => readFileSync(join(HUB, file), "utf8")

test("nothing on a laptop imports the hub, and the hub's SQL is only in its store/ and never built from values", () => {
  expect(files.filter((file) => /from "(?:\.\.\/)+hub\/src\//.test(read(file)))).toEqual([])
  const withSql = hubFiles.filter((file) => stringsOf(readHub(file)).some((text) => SQL.test(text)))
  expect(withSql.length).toBeGreaterThan(3)
  expect(withSql.filter((file) => !file.startsWith(`store${sep}`))).toEqual([])
  const values = withSql.flatMap((file) =>
    stringsOf(readHub(file))
      .filter((text) => SQL.test(text))
      .flatMap((text) => [...text.matchAll(/\$\{([^}]*)\}/g)].map(([, inside]) => `${file}: ${inside}`)),
  )
  expect(values.filter((value) => !/: [A-Z][A-Z_]*(?:\.replace(?:All)?\("\w+\.?", "[\w.]+"\))?$/.test(value))).toEqual(
    [],
  )
})

/** An operator that joins expressions, or the star after a quoted expression. */
const FTS5 = /^.\s*(OR|AND|NOT)\s*.$|["})]\s+(OR|AND|NOT|NEAR)\s+["$({]|\}"\s*\*/

test("FTS5 expressions are built only in store/, and other folders pass terms", () => {
  expect(stringsOf(read("store/index/terms.ts")).some((text) => FTS5.test(text))).toBe(true)
  const elsewhere = files.filter((file) => !file.startsWith(`store${sep}`))
  expect(elsewhere.filter((file) => stringsOf(read(file)).some((text) => FTS5.test(text)))).toEqual([])
})

test("every write takes its lock first: no transaction begins without IMMEDIATE", () => {
  const homes = /db\.transaction\(work\)\.(immediate|deferred)\(\)/g
  const wrong = files.filter(
    (file) =>
      /\.transaction\(/.test(file.endsWith("store/sqlite/database.ts") ? read(file).replace(homes, "") : read(file)) ||
      /["'`]begin(?! (immediate|exclusive))/i.test(read(file)),
  )
  expect(wrong).toEqual([])
})

test("the entry file imports nothing that an old Node could not load", () => {
  expect([...read("cli/dex.ts").matchAll(/^import .*from "(.*)"/gm)].map(([, name]) => name)).toEqual([
    "node:module",
    "../app/version.ts",
    "./terminal/has-picker.ts",
  ])
  expect(read("cli/terminal/has-picker.ts")).not.toMatch(/^import /m)
})

function stringsOf(source: string): string[] {
  const code = source.replace(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, "")
  return [...code.matchAll(/`(?:[^`\\]|\\.)*`|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'/g)].map(([text]) => text)
}
