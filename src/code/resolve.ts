import { posix } from "node:path"
import type { BoundUse, Definition, FileFacts, Import, Use } from "../core/code.ts"
import { LANGUAGES, type LanguageId } from "./languages.ts"

/**
 * Binds the uses of a file to its own definitions and imports. It does not follow scopes inside functions, so a local variable
 * with the name of an import or a definition is mistaken for it.
 */
export function bindUses({ definitions, imports, uses }: Omit<FileFacts, "has_errors">): BoundUse[] {
  const byName = new Map(imports.map((one, index) => [one.as, { ...one, index }]))
  const own = new Map<string, Definition[]>()
  for (const definition of definitions) {
    const same = own.get(definition.name)
    if (same) same.push(definition)
    else own.set(definition.name, [definition])
  }
  const classes = definitions.filter(({ kind }) => kind === "class")
  return uses.map((use) => {
    if (use.receiver === undefined) return bindPlain(use, byName.get(use.name), own.get(use.name))
    const imported = byName.get(use.receiver)
    if (imported) return { ...use, via: { type: "import", index: imported.index } }
    const around = /^(?:this|self|cls)$/.test(use.receiver) ? classAround(classes, use.line) : use.receiver
    const isOwn = own.get(use.name)?.some(({ container }) => container !== undefined && container === around)
    return { ...use, via: { type: isOwn ? "local" : "unknown" } }
  })
}

function bindPlain(use: Use, imported: (Import & { index: number }) | undefined, own: Definition[] = []): BoundUse {
  if (imported) {
    // A module that is called stands for its default export.
    const name = imported.name === "*" ? "default" : imported.name
    return { ...use, name, via: { type: "import", index: imported.index } }
  }
  return { ...use, via: { type: own.some(({ kind }) => kind !== "method") ? "local" : "unknown" } }
}

function classAround(classes: Definition[], line: number): string | undefined {
  return classes.findLast((one) => one.line <= line && line <= one.end_line)?.name
}

/** The parts of a project that are needed to resolve a module. Paths are relative, with forward slashes. */
export type ProjectPaths = {
  hasFile(path: string): boolean
  hasFolder(path: string): boolean
  /** The nearest go.mod above a file: its folder and the name of its module. */
  goModule(path: string): { folder: string; module: string } | undefined
}

/**
 * Resolves an import to a file of the project, or to a folder with a trailing slash for a Go package. Returns undefined if it is
 * neither.
 */
export function importTarget(
  importer: string,
  language: LanguageId,
  wanted: Pick<Import, "module" | "name">,
  project: ProjectPaths,
): string | undefined {
  const folder = posix.dirname(importer)
  switch (language) {
    case "typescript":
    case "tsx":
    case "javascript":
      return first(scriptPaths(folder, wanted.module), project)
    case "python":
      return pythonTarget(folder, wanted, project)
    case "go":
      return goTarget(importer, wanted.module, project)
    default:
      return first(includedPaths(folder, wanted.module, language), project)
  }
}

const SCRIPT_ENDINGS = ["ts", "tsx", "mts", "cts", "d.ts", "js", "jsx", "mjs", "cjs"]

function scriptPaths(folder: string, module: string): string[] {
  const bases = module.startsWith(".")
    ? [posix.join(folder, module)]
    : /^[@~]\//.test(module)
      ? [`src/${module.slice(2)}`, module.slice(2)] // most bundlers' templates map this to the source folder
      : []
  return bases.flatMap((base) => {
    // A TypeScript file may be imported under its compiled name.
    const written = /\.([mc]?)jsx?$/.test(base)
      ? [base.replace(/\.([mc]?)js(x?)$/, ".$1ts$2"), base.replace(/\.js$/, ".tsx")]
      : []
    return [
      ...[base, ...written],
      ...SCRIPT_ENDINGS.map((ending) => `${base}.${ending}`),
      ...SCRIPT_ENDINGS.map((ending) => posix.join(base, `index.${ending}`)),
    ]
  })
}

function pythonTarget(folder: string, { module, name }: Pick<Import, "module" | "name">, project: ProjectPaths) {
  const dots = /^\.*/.exec(module)![0].length
  const parts = module.slice(dots).split(".").filter(Boolean)
  const starts = dots > 0 ? [up(folder, dots - 1)] : pythonRoots(folder, project)
  for (const start of starts) {
    if (start === undefined) continue
    const base = posix.join(start, ...parts)
    const inside = name === "*" || name === "" ? [] : modulePaths(posix.join(base, name))
    const found = first([...inside, ...modulePaths(base)], project)
    if (found) return found
  }
  return undefined
}

const modulePaths = (base: string) => [`${base}.py`, posix.join(base, "__init__.py"), `${base}.pyi`]

/** The folders in which absolute names begin: folders above the file that are not packages, the nearest first, and `src`. */
function pythonRoots(folder: string, project: ProjectPaths): string[] {
  const roots: string[] = []
  for (let at: string | undefined = folder; at !== undefined; at = up(at, 1))
    if (!project.hasFile(posix.join(at, "__init__.py"))) roots.push(at)
  return [...roots, "src"]
}

function up(folder: string, levels: number): string | undefined {
  if (levels === 0) return folder
  return folder === "." ? undefined : up(posix.dirname(folder), levels - 1)
}

function goTarget(importer: string, module: string, project: ProjectPaths): string | undefined {
  const goModule = project.goModule(importer)
  if (!goModule || (module !== goModule.module && !module.startsWith(`${goModule.module}/`))) return undefined
  const folder = posix.join(goModule.folder, module.slice(goModule.module.length + 1))
  return project.hasFolder(folder) ? `${folder}/` : undefined
}

function includedPaths(folder: string, module: string, language: LanguageId): string[] {
  if (!module.startsWith(".")) return []
  const bases = [posix.join(folder, module)]
  if (language === "cpp") bases.push(posix.join("include", module), posix.join("src", module), posix.join(module))
  return bases.flatMap((base) => [base, ...LANGUAGES[language].endings.map((ending) => `${base}.${ending}`)])
}

function first(paths: string[], project: ProjectPaths): string | undefined {
  return paths.find((path) => !path.startsWith("../") && project.hasFile(path))
}
