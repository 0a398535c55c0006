// node scripts/run.mjs eval/code/ctags.ts --typescript <folder> --python <folder> --go <folder> --javascript <folder> [--differences 20]
// With --compiler <typescript.js of TypeScript 5>, both are also held against what the TypeScript compiler says.
// Compares the definitions that dex finds with those of Universal Ctags: functions, methods, classes, interfaces, types,
// enumerations, and the variables and constants of a file. A definition agrees when both see its name on the same line.
import { spawnSync } from "node:child_process"
import { readFileSync, statSync } from "node:fs"
import { createRequire } from "node:module"
import { join, relative, resolve, sep } from "node:path"
import { parseArgs } from "node:util"
import { languageOf, MAX_CODE_BYTES, whyNotCode } from "../../src/code/languages.ts"
import { openParser } from "../../src/code/parse.ts"
import { listCodeFiles } from "../../src/ingest/project-code.ts"

/** ctags' letters for the kinds that are compared. Properties, parameters, locals, enumerators, imports and packages are not. */
const CTAGS = {
  typescript: { name: "TypeScript", kinds: "fcigmnvCGa" },
  python: { name: "Python", kinds: "cfmv" },
  go: { name: "Go", kinds: "fctvsina" },
  javascript: { name: "JavaScript", kinds: "fcmvgCGS" },
} as const
type Compared = keyof typeof CTAGS
type Tag = { path: string; name: string; line: number; kind: string }

const { values } = parseArgs({
  options: {
    typescript: { type: "string" },
    python: { type: "string" },
    go: { type: "string" },
    javascript: { type: "string" },
    compiler: { type: "string" },
    differences: { type: "string", default: "0" },
  },
})

if (spawnSync("ctags", ["--version"]).status !== 0) console.log("NOT RUN: ctags is not installed")
else
  for (const language of Object.keys(CTAGS) as Compared[]) {
    const folder = values[language]
    if (folder === undefined) console.log(`NOT RUN: ${language}, no folder was named`)
    else await compare(language, folder, Number(values.differences))
  }

async function compare(language: Compared, folder: string, shown: number): Promise<void> {
  const { tags: dex, paths } = await dexTags(language, folder)
  const ctags = ctagsTags(language, folder, paths)
  console.log(`${language}: ${paths.length} files`)
  hold(folder, shown, ["dex", dex], ["ctags", ctags])
  if (language !== "typescript" || values.compiler === undefined) return
  const compiler = compilerTags(folder, paths, createRequire(import.meta.url)(resolve(values.compiler)))
  hold(folder, shown, ["dex", dex], ["compiler", compiler])
  hold(folder, 0, ["ctags", ctags], ["compiler", compiler])
}

type Named = [who: string, tags: Tag[]]

function hold(folder: string, shown: number, [who, ours]: Named, [other, theirs]: Named): void {
  const key = ({ path, name, line }: Tag) => `${path}\n${name}\n${line}`
  const inOurs = new Set(ours.map(key))
  const inTheirs = new Set(theirs.map(key))
  const onlyOurs = ours.filter((tag) => !inTheirs.has(key(tag)))
  const onlyTheirs = theirs.filter((tag) => !inOurs.has(key(tag)))
  const both = inOurs.size - onlyOurs.length
  const percent = (part: number, whole: number) => `${((100 * part) / whole).toFixed(1)} %`
  console.log(
    `  ${who} ${inOurs.size}, ${other} ${inTheirs.size}, both ${both}:`,
    `${percent(both, inTheirs.size)} of ${other}'s, ${percent(both, inOurs.size)} of ${who}'s`,
  )
  for (const [only, tags] of [
    [who, onlyOurs],
    [other, onlyTheirs],
  ] as const) {
    const kinds = Object.entries(Object.groupBy(tags, ({ kind }) => kind)).map(
      ([kind, all]) => `${kind} ${all!.length}`,
    )
    console.log(`    ${only} only: ${kinds.join(", ") || "none"}`)
    for (let i = 0; i < Math.min(shown, tags.length); i++) {
      const { path, line, kind, name } = tags[Math.floor((i * tags.length) / Math.min(shown, tags.length))]!
      const source = readFileSync(join(folder, path), "utf8").split("\n")[line - 1]?.trim().slice(0, 100)
      console.log(`      ${path}:${line} ${kind} ${name} | ${source}`)
    }
  }
}

/**
 * The part of TypeScript 5's compiler that is used here. It is not a dependency: the version of this package has no such
 * interface.
 */
type TsNode = { kind: number; name?: TsNode; initializer?: TsNode; text?: string; parent: TsNode; getStart(): number }
type Ts = {
  SyntaxKind: Record<string, number>
  ScriptTarget: { Latest: number }
  createSourceFile(path: string, text: string, target: number, parents: boolean): TsNode & Lines
  forEachChild(node: TsNode, visit: (child: TsNode) => void): void
}
type Lines = { getLineAndCharacterOfPosition(at: number): { line: number } }

function compilerTags(folder: string, paths: string[], ts: Ts): Tag[] {
  const kind = ts.SyntaxKind
  const named = new Set(
    ["Function", "Class", "Interface", "TypeAlias", "Enum", "Module", "Method"]
      .map((name) => kind[`${name}Declaration`])
      .concat([kind.MethodSignature, kind.GetAccessor, kind.SetAccessor, kind.Constructor]),
  )
  const functions = new Set([kind.ArrowFunction, kind.FunctionExpression])
  const isTopLevel = (node: TsNode) => [kind.SourceFile, kind.ModuleBlock].includes(node.parent.parent.parent.kind)
  return paths.flatMap((path) => {
    const file = ts.createSourceFile(path, readFileSync(join(folder, path), "utf8"), ts.ScriptTarget.Latest, true)
    const tags: Tag[] = []
    const visit = (node: TsNode) => {
      const isVariable =
        node.kind === kind.VariableDeclaration && node.name?.kind === kind.Identifier && isTopLevel(node)
      const isField = node.kind === kind.PropertyDeclaration && functions.has(node.initializer?.kind)
      const name = node.kind === kind.Constructor ? "constructor" : (node.name?.text ?? "")
      if ((named.has(node.kind) || isVariable || isField) && name !== "" && name !== "_") {
        const line = file.getLineAndCharacterOfPosition((node.name ?? node).getStart()).line + 1
        const word = Object.keys(kind).find((key) => kind[key] === node.kind) ?? ""
        tags.push({ path, name, line, kind: word })
      }
      ts.forEachChild(node, visit)
    }
    visit(file)
    return unique(tags)
  })
}

async function dexTags(language: Compared, folder: string): Promise<{ tags: Tag[]; paths: string[] }> {
  const parser = await openParser()
  const tags: Tag[] = []
  const paths: string[] = []
  for (const path of (await listCodeFiles(folder)).paths) {
    if (languageOf(path) !== language || path.endsWith(".d.ts") || statSync(join(folder, path)).size > MAX_CODE_BYTES)
      continue
    const text = readFileSync(join(folder, path), "utf8")
    if (whyNotCode(text)) continue
    const facts = await parser.parse(language, text)
    if (!facts) continue
    paths.push(path)
    for (const { name, line, kind } of facts.definitions) tags.push({ path, name, line, kind })
  }
  parser.close()
  return { tags: unique(tags), paths }
}

function ctagsTags(language: Compared, folder: string, paths: string[]): Tag[] {
  const { name, kinds } = CTAGS[language]
  const run = spawnSync(
    "ctags",
    [
      "-L",
      "-",
      "-f",
      "-",
      "--output-format=json",
      "--fields=NFnKsZ",
      `--languages=${name}`,
      `--kinds-${name}=${kinds}`,
      "--map-TypeScript=+.mts",
    ],
    { cwd: folder, input: paths.join("\n"), encoding: "utf8", maxBuffer: 1 << 30 },
  )
  const tags = run.stdout.split("\n").flatMap((line): Tag[] => {
    if (!line.startsWith("{")) return []
    const tag: { name: string; path: string; line: number; kind: string; scopeKind?: string } = JSON.parse(line)
    // Variables count only if a file declares them; ctags also lists those of classes.
    if (language === "python" && tag.kind === "variable" && tag.scopeKind !== undefined) return []
    // Anonymous ones, by ctags' name or the language's.
    if (/^(?:__anon|AnonymousFunction|_$)/.test(tag.name)) return []
    return [
      {
        path: relative(folder, join(folder, tag.path)).split(sep).join("/"),
        name: tag.name,
        line: tag.line,
        kind: tag.kind,
      },
    ]
  })
  if (language !== "python") return unique(tags)
  // If it is assigned again, the first assignment is its definition.
  const firsts = new Map(
    unique(tags)
      .map(
        (tag) =>
          [
            tag.kind === "variable" ? `${tag.path}\n${tag.name}` : `${tag.path}\n${tag.name}\n${tag.line}`,
            tag,
          ] as const,
      )
      .reverse(),
  )
  return [...firsts.values()]
}

function unique(tags: Tag[]): Tag[] {
  return [...new Map(tags.map((tag) => [`${tag.path}\n${tag.name}\n${tag.line}`, tag])).values()]
}
