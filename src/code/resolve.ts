import { posix } from "node:path"
import type { BoundUse, Definition, FileFacts, Import, Use } from "../core/code.ts"
import { LANGUAGES, type LanguageId } from "./languages.ts"

/**
 * Binds the uses of a file to its own definitions and imports. It does not follow scopes inside functions, so a local variable
 * with the name of an import or a definition is mistaken for it.
 */
export function bindUses({ definitions, imports, uses }: Omit<FileFacts, "has_errors">): BoundUse[] {
  const importsByName = new Map(imports.map((item, index) => [item.as, { ...item, index }]))
  const definitionsByName = new Map<string, Definition[]>()
  for (const definition of definitions) {
    const namesakes = definitionsByName.get(definition.name)
    if (namesakes) namesakes.push(definition)
    else definitionsByName.set(definition.name, [definition])
  }
  const classes = definitions.filter(({ kind }) => kind === "class")
  return uses.map((use) => {
    if (use.receiver === undefined)
      return bindUnqualified(use, importsByName.get(use.name), definitionsByName.get(use.name))
    const imported = importsByName.get(use.receiver)
    if (imported) return { ...use, via: { type: "import", index: imported.index } }
    const className = /^(?:this|self|cls)$/.test(use.receiver) ? enclosingClass(classes, use.line) : use.receiver
    const isLocal = definitionsByName
      .get(use.name)
      ?.some(({ container }) => container !== undefined && container === className)
    return { ...use, via: { type: isLocal ? "local" : "unknown" } }
  })
}

function bindUnqualified(
  use: Use,
  imported: (Import & { index: number }) | undefined,
  definitions: Definition[] = [],
): BoundUse {
  if (imported) {
    // Calling a module calls its default export.
    const name = imported.name === "*" ? "default" : imported.name
    return { ...use, name, via: { type: "import", index: imported.index } }
  }
  return { ...use, via: { type: definitions.some(({ kind }) => kind !== "method") ? "local" : "unknown" } }
}

function enclosingClass(classes: Definition[], line: number): string | undefined {
  return classes.findLast((definition) => definition.line <= line && line <= definition.end_line)?.name
}

/** The facts about a project that are needed to resolve a module. Paths are relative, with forward slashes. */
export type ProjectPaths = {
  hasFile(path: string): boolean
  hasFolder(path: string): boolean
  /** Returns the folder and the module name of the nearest go.mod above a file. */
  goModule(path: string): { folder: string; module: string } | undefined
}

/**
 * Resolves an import to a file of the project or, for a Go package, to a folder with a trailing slash. Returns undefined if the
 * project does not contain the module.
 */
export function importTarget(
  importer: string,
  language: LanguageId,
  imported: Pick<Import, "module" | "name">,
  project: ProjectPaths,
): string | undefined {
  const folder = posix.dirname(importer)
  switch (language) {
    case "typescript":
    case "tsx":
    case "javascript":
      return firstFile(scriptPaths(folder, imported.module), project)
    case "python":
      return pythonTarget(folder, imported, project)
    case "go":
      return goTarget(importer, imported.module, project)
    default:
      return firstFile(includedPaths(folder, imported.module, language), project)
  }
}

const SCRIPT_ENDINGS = ["ts", "tsx", "mts", "cts", "d.ts", "js", "jsx", "mjs", "cjs"]

function scriptPaths(folder: string, module: string): string[] {
  const bases = module.startsWith(".")
    ? [posix.join(folder, module)]
    : /^[@~]\//.test(module)
      ? [`src/${module.slice(2)}`, module.slice(2)] // most templates map `@/` and `~/` to the source folder
      : []
  return bases.flatMap((base) => {
    // A TypeScript file may be imported under the name of its compiled file.
    const sourcePaths = /\.([mc]?)jsx?$/.test(base)
      ? [base.replace(/\.([mc]?)js(x?)$/, ".$1ts$2"), base.replace(/\.js$/, ".tsx")]
      : []
    return [
      ...[base, ...sourcePaths],
      ...SCRIPT_ENDINGS.map((ending) => `${base}.${ending}`),
      ...SCRIPT_ENDINGS.map((ending) => posix.join(base, `index.${ending}`)),
    ]
  })
}

function pythonTarget(folder: string, { module, name }: Pick<Import, "module" | "name">, project: ProjectPaths) {
  const dotCount = /^\.*/.exec(module)![0].length
  const parts = module.slice(dotCount).split(".").filter(Boolean)
  const roots = dotCount > 0 ? [ancestor(folder, dotCount - 1)] : pythonRoots(folder, project)
  for (const root of roots) {
    if (root === undefined) continue
    const base = posix.join(root, ...parts)
    const submodulePaths = name === "*" || name === "" ? [] : modulePaths(posix.join(base, name))
    const file = firstFile([...submodulePaths, ...modulePaths(base)], project)
    if (file) return file
  }
  return undefined
}

const modulePaths = (base: string) => [`${base}.py`, posix.join(base, "__init__.py"), `${base}.pyi`]

/**
 * Returns the folders in which absolute module names begin: first the folders above the file that are not packages, nearest
 * first, then `src`.
 */
function pythonRoots(folder: string, project: ProjectPaths): string[] {
  const roots: string[] = []
  for (let current: string | undefined = folder; current !== undefined; current = ancestor(current, 1))
    if (!project.hasFile(posix.join(current, "__init__.py"))) roots.push(current)
  return [...roots, "src"]
}

function ancestor(folder: string, levels: number): string | undefined {
  if (levels === 0) return folder
  return folder === "." ? undefined : ancestor(posix.dirname(folder), levels - 1)
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

function firstFile(paths: string[], project: ProjectPaths): string | undefined {
  return paths.find((path) => !path.startsWith("../") && project.hasFile(path))
}
