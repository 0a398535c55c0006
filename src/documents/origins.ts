import { createHash } from "node:crypto"
import { realpath, stat } from "node:fs/promises"
import { basename, dirname, join, resolve } from "node:path"
import { DexError } from "../core/error.ts"
import { readText } from "../core/read-file.ts"
import { formatOf } from "./document.ts"

/**
 * A source of documents. If it consists of a single file in `root`, `only` is that file's name. `name` contains only characters
 * that are valid in a ref: letters, digits, `.`, `_` and `-`.
 */
export type CollectionOrigin = {
  kind: "folder" | "file" | "git" | "npm"
  root: string
  name: string
  version?: string
  only?: string
}

export type CopyRepository = (
  url: string,
  folder: string,
  options: { update?: boolean | undefined; timeoutMs?: number | undefined; signal?: AbortSignal | undefined },
) => Promise<string>

type Options = {
  cwd: string
  /** The folder for copies of repositories. */
  cacheDir: string
  /** Copies a repository and returns its version. */
  copyRepository: CopyRepository
  /** True to fetch the newest commit. Otherwise, dex uses an existing copy without updating it. */
  update?: boolean
  timeoutMs?: number
  signal?: AbortSignal
}

/**
 * Resolves a source of documents: a folder, a file, `npm:<package>` (the installed version), or the address of a git
 * repository.
 */
export async function resolveOrigin(spec: string, options: Options): Promise<CollectionOrigin> {
  if (spec.startsWith("npm:")) return npmOrigin(spec.slice(4), options.cwd)
  const url = gitUrl(spec)
  if (url) return gitOrigin(url, options)
  const path = resolve(options.cwd, spec)
  const resolvedPath = await realpath(path).catch(() => undefined)
  const stats = resolvedPath === undefined ? undefined : await stat(resolvedPath)
  if (resolvedPath === undefined || !stats)
    throw new DexError(
      "no_such_folder",
      `${path} does not exist. Name a folder, a file, npm:<package> or a git address.`,
    )
  if (stats.isDirectory()) return { kind: "folder", root: resolvedPath, name: safeName(basename(path)) }
  if (!stats.isFile() || !formatOf(resolvedPath))
    throw new DexError("not_a_document", `${path} is not a document. dex reads Markdown, MDX, HTML and plain text.`)
  const name = safeName(basename(path).replace(/\.[^.]+$/, ""))
  return { kind: "file", root: dirname(resolvedPath), name, only: basename(resolvedPath) }
}

async function npmOrigin(requestedName: string, cwd: string): Promise<CollectionOrigin> {
  const namePattern = "[a-zA-Z0-9_~-][a-zA-Z0-9._~-]*"
  const name = new RegExp(`^(?:@${namePattern}/)?${namePattern}$`).exec(requestedName)?.[0]
  if (name === undefined || name === "node_modules" || requestedName.length > 214) {
    const hint = "Write npm:react or npm:@scope/name. dex uses the installed version."
    throw new DexError("bad_package", `"${requestedName}" is not the name of a package. ${hint}`)
  }
  for (let folder = resolve(cwd); ; folder = dirname(folder)) {
    const root = await realpath(join(folder, "node_modules", name)).catch(() => undefined)
    const manifest = root && manifestIn(root)
    if (root && manifest !== undefined) {
      const version = versionIn(manifest)
      return { kind: "npm", root, name: safeName(name), version: version || undefined }
    }
    if (dirname(folder) === folder) break
  }
  const message = `${name} is not installed in ${cwd} or above it. Run \`npm install ${name}\` there; dex downloads nothing.`
  throw new DexError("not_installed", message)
}

const MAX_MANIFEST_BYTES = 4 << 20

function manifestIn(root: string): string | undefined {
  try {
    return readText(join(root, "package.json"), MAX_MANIFEST_BYTES)
  } catch {
    return undefined // there is no package here, or its manifest cannot be read
  }
}

function versionIn(manifest: string): string | undefined {
  try {
    const { version } = JSON.parse(manifest) as { version?: unknown }
    return typeof version === "string" ? version.slice(0, 100) : undefined
  } catch {
    return undefined // a damaged manifest; the documents can still be read
  }
}

/**
 * Returns the address of a git repository, or undefined if `spec` is a path. Throws if git would run a command for the address,
 * or if the address contains a secret.
 */
function gitUrl(spec: string): string | undefined {
  if (/^[\w.-]+@[\w][\w.-]*:(?!\/\/)[^\0\s:][^\0\s]*$/.test(spec) && !spec.startsWith("-")) return spec
  const scheme = /^([a-z][a-z0-9+.-]*)(?:::|:\/\/)/i.exec(spec)
  if (!scheme) return undefined
  const supported = "https://, ssh:// and file:// addresses, and git@host:path"
  if (!/^(https|ssh|file):\/\//.test(spec) || /[\0-\x20\x7f]/.test(spec))
    throw new DexError("bad_address", `dex cannot clone "${spec.slice(0, 200)}". It clones ${supported}.`)
  const url = URL.parse(spec)
  if (!url || url.hostname.startsWith("-") || (url.protocol !== "file:" && !url.hostname))
    throw new DexError("bad_address", `"${spec.slice(0, 200)}" is not an address. dex clones ${supported}.`)
  if (url.password || (url.protocol === "https:" && url.username)) {
    const hint = "Remove it and use ssh or git's credential helper: dex would store it in plain text."
    throw new DexError("secret_in_address", `The address contains a password or token. ${hint}`)
  }
  return spec
}

async function gitOrigin(url: string, { cacheDir, copyRepository, ...options }: Options): Promise<CollectionOrigin> {
  const lastPart =
    url
      .replace(/[?#].*$/, "")
      .replace(/\/+$/, "")
      .replace(/\.git$/, "")
      .split(/[/:]/)
      .at(-1) ?? ""
  const name = safeName(decodeName(lastPart))
  const id = createHash("sha256").update(url).digest("hex").slice(0, 10)
  const root = join(cacheDir, `${name}-${id}`)
  const version = await copyRepository(url, root, options)
  return { kind: "git", root: await realpath(root), name, version }
}

function decodeName(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}

function safeName(name: string): string {
  const cleaned = name.replace(/[^\p{L}\p{N}._-]+/gu, "-").replace(/^[.-]+|[.-]+$/g, "")
  return cleaned.slice(0, 60) || "docs"
}
